"""The bounded pass of the GFM: walks at owners, the choice of active nodes, backgrounds."""

from __future__ import annotations

import itertools
import json
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from test_gfm import small_network

from hybrid_ir.errors import Conflict, NotFound
from hybrid_ir.graph.gfm.active import Active
from hybrid_ir.graph.gfm.background import Background, bytes_needed, compute, open_background, write
from hybrid_ir.graph.gfm.bounded import BoundedGFM
from hybrid_ir.graph.gfm.exact import ExactGFM
from hybrid_ir.graph.gfm.network import GFM
from hybrid_ir.graph.gfm.owner import LocalOwners, PartitionOwner
from hybrid_ir.graph.gfm.projection import Projected
from hybrid_ir.graph.gfm.walk import UNITS, walk
from hybrid_ir.graph.messages import MessageGraph, message_graph
from hybrid_ir.graph.push import Pusher
from hybrid_ir.store import Store


def random_graph(nodes: int, edges: int, relations: int, seed: int = 3) -> MessageGraph:
    random = np.random.default_rng(seed)
    head, tail = random.integers(0, nodes, (2, edges))
    return message_graph(head, random.integers(0, relations, edges), tail, nodes, relations)


def owners_of(graph: MessageGraph, background: Background, cuts: tuple[int, ...] = ()) -> LocalOwners:
    """The graph's nodes in ranges, one for each owner."""
    owners = []
    for first, end in itertools.pairwise((0, *cuts, graph.nodes)):
        at = slice(graph.indptr[first], graph.indptr[end])
        rows = graph.indptr[first : end + 1] - graph.indptr[first]
        own = MessageGraph(rows, graph.source[at], graph.relation[at], graph.relations)
        arrays = [
            [None if held is None else held[first:end] for held in kind]
            for kind in (background.states, background.heard)
        ]
        owners.append(PartitionOwner(first, graph.nodes, own, Background(*arrays, background.hidden[first:end])))
    return LocalOwners(owners, graph.nodes)


@given(st.integers(0, 99), st.lists(st.integers(0, 80), max_size=3), st.integers(1, 40))
@settings(max_examples=25, deadline=None)
def test_several_owners_give_the_ids_and_scores_of_one(seed: int, cuts: list[int], active: int) -> None:
    graph, network, vectors = random_graph(80, 200, 5, seed), small_network(), torch.randn(10, 12)
    exact = ExactGFM(Projected(network, vectors), graph)
    background, question = compute(exact), torch.randn(12)
    seeds = {int(node): 0.5 for node in np.random.default_rng(seed).integers(0, 80, 3)}
    one, several = (
        BoundedGFM(exact.projected, owners_of(graph, background, tuple(sorted(at))), active).score(question, seeds)
        for at in ((), cuts)
    )
    np.testing.assert_array_equal(one[0], several[0])
    np.testing.assert_array_equal(one[1], several[1])


def test_the_walk_loses_no_mass_and_finds_what_a_fine_push_finds() -> None:
    graph = random_graph(300, 900, 3)
    exact = ExactGFM(Projected(small_network(), torch.randn(6, 12)), graph)
    owners, seeds = owners_of(graph, compute(exact), (50, 200)), {4: 1.0, 250: 3.0}
    ids, mass = walk(owners, seeds, 0.5, 1e-6)
    # Parts are rounded down to whole units; what is lost by that is far below any score.
    assert UNITS - int(mass.sum()) < 1e-9 * UNITS
    degree = np.diff(graph.indptr)
    share = np.repeat(1.0 / np.maximum(degree, 1), degree).astype(np.float32)
    reached, rank = Pusher(graph.indptr, graph.source, share).push(seeds, 0.5, 1e-8)
    wanted = np.zeros(300)
    wanted[reached] = rank
    np.testing.assert_allclose(mass / UNITS, wanted[ids], atol=1e-4)


def test_with_every_node_active_the_bounded_pass_is_the_exact_one() -> None:
    graph, network, vectors = random_graph(120, 400, 5), small_network(), torch.randn(10, 12)
    exact = ExactGFM(Projected(network, vectors), graph)
    bounded = BoundedGFM(exact.projected, owners_of(graph, compute(exact)), active=120, tolerance=1e-9)
    seeds, question = {3: 0.5, 77: 1.0}, torch.randn(12)
    nodes, scores = bounded.score(question, seeds)
    wanted = exact.score(question[None], [seeds])[0]
    reachable = len(nodes)
    assert reachable > 100
    np.testing.assert_allclose(scores, wanted[nodes], atol=0.03)  # bfloat16 keeps 8 bits
    assert bounded.score(question, {})[0].size == 0


@given(st.integers(0, 99), st.lists(st.integers(0, 80), max_size=3))
@settings(max_examples=15, deadline=None)
def test_nodes_that_no_seed_moves_have_the_exact_score_of_no_seeds(seed: int, cuts: list[int]) -> None:
    graph, network, vectors = random_graph(80, 200, 5, seed), small_network(seed), torch.randn(10, 12)
    exact, question = ExactGFM(Projected(network, vectors), graph), torch.randn(12)
    owners = owners_of(graph, compute(exact), tuple(sorted(cuts)))
    nodes = np.random.default_rng(seed).permutation(80)[:30]
    resting = BoundedGFM(exact.projected, owners, 8).resting(question, nodes)
    np.testing.assert_allclose(resting, exact.score(question[None], [{}])[0][nodes], atol=0.03)


def test_of_a_hubs_neighbours_those_behind_the_loudest_relation_are_active() -> None:
    """Node 0 is a hub of 300; its walk alone gives each neighbour the same, the first layer does not."""
    network, nodes, relations = small_network(), 301, 4
    relation = np.arange(300) % 4
    graph = message_graph(np.zeros(300, np.int64), relation, np.arange(1, 301), nodes, relations)
    exact = ExactGFM(Projected(network, torch.randn(8, 12)), graph)
    question, seeds = torch.randn(12), {0: 1.0}
    with torch.inference_mode():
        q = exact.projected.question(question)
        first = ExactGFM(Projected(network_of_one_layer(network), torch.randn(8, 12)), graph)
        first.projected.relations, first.projected.layers = exact.projected.relations, exact.projected.layers[:1]
        moved = np.linalg.norm(first.states(q[None], [seeds])[:, 0] - exact.projected.layers[0].idle().numpy(), axis=1)
        chosen = BoundedGFM(exact.projected, owners_of(graph, compute(exact), (40,)), 81).nearest(q, seeds).nodes
    strongest = np.lexsort((np.arange(nodes), -moved))
    strongest = strongest[strongest != 0][:20]
    assert len({int(relation[node - 1]) for node in strongest}) == 1
    assert set(strongest.tolist()) <= set(chosen.tolist())
    assert len(chosen) <= 81


@pytest.mark.parametrize("cuts", [(), (3, 500)])
def test_what_a_hub_hears_back_is_told_by_a_sample_of_its_neighbours(cuts: tuple[int, ...]) -> None:
    """The seed changes a hub of 900 neighbours, each of which says so to the hub again."""
    nodes = 902
    heads, tails = np.concatenate([[0], np.ones(900, np.int64)]), np.concatenate([[1], np.arange(2, nodes)])
    relation = np.random.default_rng(0).integers(0, 4, 901)
    graph, seeds = message_graph(heads, relation, tails, nodes, 4), {0: 1.0}
    torch.manual_seed(2)
    exact = ExactGFM(Projected(small_network(), torch.randn(8, 12)), graph)
    bounded = BoundedGFM(exact.projected, owners_of(graph, compute(exact), cuts), 120)
    errors = np.zeros(2)
    for question in torch.randn(8, 12):
        with torch.inference_mode():
            q = exact.projected.question(question)
            active = bounded.nearest(q, seeds)
            assert len(active.nodes) <= 120
            (sample,) = (one for one in active.samples if one.hub == 1)
            outside = 900 - np.isin(np.arange(2, nodes), np.setdiff1d(active.nodes, sample.neighbours)).sum()
            assert sample.times == pytest.approx(outside / len(sample.neighbours))
            told, alone = (bounded.states(one, q, seeds) for one in (active, Active(active.nodes)))
            wanted = exact.states(q[None], [seeds])[active.nodes, 0]
        at = int(np.searchsorted(active.nodes, 1))
        errors += [np.linalg.norm(states[at].numpy() - wanted[at]) for states in (told, alone)]
    assert errors[0] < 0.4 * errors[1]


def network_of_one_layer(network: GFM) -> GFM:
    return small_network(config=network.config.model_copy(update={"layers": 1}))


def test_more_active_nodes_err_less() -> None:
    graph = random_graph(2000, 6000, 5)
    torch.manual_seed(1)
    exact = ExactGFM(Projected(small_network(), torch.randn(10, 12)), graph)
    owners, questions = owners_of(graph, compute(exact)), torch.randn(6, 12)
    errors = {8: 0.0, 64: 0.0, 1000: 0.0}
    for number, question in enumerate(questions):
        seeds = {3 + number: 1.0, 700 + number: 1.0}
        wanted = exact.score(question[None], [seeds])[0]
        for active in errors:
            nodes, scores = BoundedGFM(exact.projected, owners, active).score(question, seeds)
            assert len(nodes) <= active
            assert set(seeds) <= set(nodes.tolist())
            errors[active] += float(np.abs(scores - wanted[nodes]).mean())
    assert errors[1000] < errors[64] < errors[8]


def test_a_stored_background_is_bound_to_its_weights_and_graph(tmp_path: Path) -> None:
    graph, network, vectors = random_graph(50, 100, 3), small_network(), torch.randn(6, 12)
    exact, store = ExactGFM(Projected(network, vectors), graph), Store(str(tmp_path))
    files = write(store, "gfm", exact, (0, 20, 50), weights="w1", graph="g1")
    arrays = [entry.bytes for name, entry in files.items() if name.endswith(".npy")]
    assert len(arrays) == 2 * 5  # states and heard of layers 2 and 3, and the hidden layer of the score
    assert sum(arrays) - 10 * 128 == bytes_needed(network.config, 50)
    parts = [open_background(store, "gfm", "w1", "g1", number) for number in (0, 1)]
    whole = compute(exact)
    np.testing.assert_array_equal(whole.hidden, np.concatenate([part.hidden for part in parts]))
    for ours, *theirs in zip(whole.states[1:], *(part.states[1:] for part in parts), strict=True):
        np.testing.assert_array_equal(ours, np.concatenate(theirs))
    with pytest.raises(Conflict, match="made with the weights w1, not w2"):
        open_background(store, "gfm", "w2", "g1")
    with pytest.raises(Conflict, match="made with the graph g1, not g2"):
        open_background(store, "gfm", "w1", "g2")
    with pytest.raises(NotFound, match="no background"):
        open_background(store, "elsewhere", "w1", "g1")
    old = {"weights": "w1", "graph": "g1", "starts": [0, 20, 50], "dimension": 8, "layers": 3}
    (tmp_path / "gfm" / "background.json").write_text(json.dumps(old))
    with pytest.raises(Conflict, match="another version"):
        open_background(store, "gfm", "w1", "g1")
