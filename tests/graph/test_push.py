"""Forward push against the same walk solved directly."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from hybrid_ir.graph.push import Pusher


def solved(matrix: np.ndarray, seeds: dict[int, float], damping: float) -> np.ndarray:
    """p = (1 - d) s + d P p by a linear solve in float64; P sends a node without edges back to the seeds."""
    nodes = len(matrix)
    start = np.zeros(nodes)
    for node, weight in seeds.items():
        start[node] = weight
    start /= start.sum()
    degree = matrix.sum(1)
    moves = np.where(degree[:, None] > 0, matrix / np.where(degree == 0, 1, degree)[:, None], start[None, :])
    return np.linalg.solve(np.eye(nodes) - damping * moves.T, (1 - damping) * start)


def csr(matrix: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    row, target = np.nonzero(matrix)
    weight = matrix[row, target] / matrix.sum(1)[row]
    indptr = np.concatenate([[0], np.cumsum(np.bincount(row, minlength=len(matrix)))])
    return indptr.astype(np.int64), target.astype(np.int64), weight.astype(np.float32)


@given(st.integers(1, 12), st.integers(0, 30), st.integers(0, 99), st.sampled_from([0.5, 0.85]))
@settings(max_examples=60, deadline=None)
def test_a_fine_tolerance_gives_the_walks_scores(nodes: int, edges: int, seed: int, damping: float) -> None:
    random = np.random.default_rng(seed)
    matrix = np.zeros((nodes, nodes))
    for a, b in random.integers(0, nodes, (edges, 2)):
        matrix[a, b] = matrix[b, a] = random.uniform(0.5, 3.0)
    seeds = {int(node): float(random.uniform(0.1, 1)) for node in random.integers(0, nodes, 2)}
    reached, rank = Pusher(*csr(matrix)).push(seeds, damping, 1e-7)
    found = np.zeros(nodes)
    found[reached] = rank
    np.testing.assert_allclose(found, solved(matrix, seeds, damping), atol=1e-4)
    assert len(set(reached.tolist())) == len(reached)


def test_a_score_errs_by_less_than_tolerance_times_edges() -> None:
    random = np.random.default_rng(1)
    matrix = (random.random((300, 300)) < 0.02).astype(float)
    matrix = np.maximum(matrix, matrix.T)
    reached, rank = Pusher(*csr(matrix)).push({5: 1.0}, 0.5, 1e-4)
    found = np.zeros(300)
    found[reached] = rank
    error = solved(matrix, {5: 1.0}, 0.5) - found
    assert (error > -1e-6).all()
    assert (error <= 1e-4 * np.maximum(matrix.astype(bool).sum(1), 1) + 1e-6).all()
    assert 1 < len(reached) < 300


def test_no_seed_reaches_nothing() -> None:
    indptr, target, share = csr(np.ones((2, 2)))
    for seeds in ({}, {0: 0.0}):
        reached, rank = Pusher(indptr, target, share).push(seeds, 0.5, 1e-6)
        assert len(reached) == len(rank) == 0


def test_pushes_one_after_the_other_and_at_the_same_time_leave_nothing_behind() -> None:
    random = np.random.default_rng(2)
    matrix = (random.random((200, 200)) < 0.03).astype(float)
    matrix = np.maximum(matrix, matrix.T)
    shared = Pusher(*csr(matrix))
    asked = [{int(a): 1.0, int(b): 0.5} for a, b in random.integers(0, 200, (40, 2))]
    alone = [Pusher(*csr(matrix)).push(seeds, 0.5, 1e-5) for seeds in asked]
    with ThreadPoolExecutor(4) as pool:
        for _ in range(3):
            for (nodes, score), (expected, expected_score) in zip(
                pool.map(lambda seeds: shared.push(seeds, 0.5, 1e-5), asked), alone, strict=True
            ):
                np.testing.assert_array_equal(nodes, expected)
                np.testing.assert_array_equal(score, expected_score)


@given(st.integers(2, 15), st.integers(1, 40), st.integers(0, 99))
@settings(max_examples=40, deadline=None)
def test_walks_meet_where_pushes_reach_and_two_meet(nodes: int, edges: int, seed: int) -> None:
    random = np.random.default_rng(seed)
    matrix = np.zeros((nodes, nodes))
    for a, b in random.integers(0, nodes, (edges, 2)):
        matrix[a, b] = matrix[b, a] = 1.0
    pusher, seeds = Pusher(*csr(matrix)), random.permutation(nodes)[:3].astype(np.int64)
    weights, below = random.dirichlet(np.ones(len(seeds))), int(random.integers(1, nodes + 1))
    found, logs = pusher.meet(seeds, weights, below, 1e-12, 0.5, 1e-4)
    alone = np.zeros((len(seeds), nodes))
    for row, one in enumerate(seeds.tolist()):
        reached, score = pusher.push({one: 1.0}, 0.5, 1e-4)
        alone[row, reached] = score
    reached = (alone[:, :below] > 0).sum(0)
    assert sorted(found.tolist()) == np.flatnonzero(reached if (reached > 1).any() else reached > 1).tolist()
    np.testing.assert_allclose(logs, weights @ np.log(alone[:, found] + 1e-12), rtol=1e-5)
