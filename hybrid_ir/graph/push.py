"""Personalised PageRank by forward push: its cost depends on the tolerance, not on the graph.

R. Andersen, F. Chung, K. Lang: Local graph partitioning using PageRank vectors, 2006 (Algorithm
ApproximatePageRank), for the walk p = (1 - d) s + d P p that :mod:`pagerank` iterates.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import numba
import numpy as np
from numpy.typing import NDArray

Ids = NDArray[np.int64]

LEFT, RANK, DEGREE, TOUCHED = range(4)
"""Columns of the scratch: what a node still holds, what it keeps, its edges (negative while it waits), whether seen."""


class Pusher:
    """One graph's pushes.

    A push works on a scratch of 16 bytes a node, side by side, since a miss of the cache for each
    edge is where its time goes.  The scratch is kept from push to push (fresh pages cost more than
    the push) and the system maps only the pages that were written; pushes at the same time take
    one each.
    """

    def __init__(self, indptr: NDArray[Any], target: NDArray[Any], share: NDArray[np.float32]) -> None:
        """CSR by the node that gives; ``share``: the part of a node's mass that goes along each edge, 1 in
        sum for a node with edges."""
        self._graph = (indptr, target, share)
        self._nodes = len(indptr) - 1
        self._idle: list[NDArray[np.float32]] = []
        self._idle_tallies: list[NDArray[np.float64]] = []

    def push(self, seeds: Mapping[int, float], damping: float, tolerance: float) -> tuple[Ids, NDArray[np.float32]]:
        """The nodes that were reached, in the order of first touch, and their scores (> 0).

        A node is settled while it holds more than ``tolerance`` x its edges, so that a score errs
        by less than tolerance x edges, and 1 / ((1 - d) x tolerance) edges are walked at most.  In
        the end every node keeps its part of what it still holds and passes nothing on: scores stay
        below the walk's, and come closer.  What a node without edges would pass on goes back to
        the seeds.
        """
        nodes = np.array(sorted(node for node, weight in seeds.items() if weight > 0), np.int64)
        weight = np.array([seeds[int(node)] for node in nodes], np.float64)
        total = weight.sum()
        if not total > 0 or not np.isfinite(total):
            return np.zeros(0, np.int64), np.zeros(0, np.float32)
        with self._scratch() as scratch:
            reached, score = _push(*self._graph, scratch, nodes, weight / total, damping, tolerance)
        found = score > 0
        return reached[found], score[found]

    def meet(
        self, seeds: Ids, weights: NDArray[np.float64], below: int, least: float, damping: float, tolerance: float
    ) -> tuple[Ids, NDArray[np.float64]]:
        """The nodes under ``below`` that a push from any seed reaches, and how well they meet there.

        sum over seeds i of weights_i x log(p_i + least), p_i the score by a push from seed i alone.
        No node where no two seeds reach the same one.
        """
        tally = self._idle_tallies.pop() if self._idle_tallies else np.zeros((self._nodes, 2))
        with self._scratch() as scratch:
            nodes, together = _meet(*self._graph, scratch, tally, seeds, weights, below, least, damping, tolerance)
        self._idle_tallies.append(tally)
        return nodes, together + float(np.log(least) * weights.sum())

    @contextmanager
    def _scratch(self) -> Iterator[NDArray[np.float32]]:
        """All zero, and left so."""
        scratch = self._idle.pop() if self._idle else np.zeros((self._nodes, 4), np.float32)
        yield scratch
        self._idle.append(scratch)  # not after an error: it may hold something then


@numba.njit(cache=True, nogil=True)
def _push(
    indptr: Any, target: Any, share: Any, scratch: Any, seeds: Any, weight: Any, damping: float, tolerance: float
) -> Any:  # pragma: no cover - compiled
    reached = [seeds[0]]
    queue = [seeds[0]]
    for i in range(len(seeds)):
        node = seeds[i]
        scratch[node, LEFT] = weight[i]
        scratch[node, DEGREE] = -max(indptr[node + 1] - indptr[node], 1)
        scratch[node, TOUCHED] = 1
        if i:
            reached.append(node)
            queue.append(node)
    at = 0
    while at < len(queue):
        node = queue[at]
        at += 1
        degree = -scratch[node, DEGREE]
        scratch[node, DEGREE] = degree
        mass = scratch[node, LEFT]
        if mass <= tolerance * degree:
            continue
        scratch[node, LEFT] = 0.0
        scratch[node, RANK] += (1.0 - damping) * mass
        moved = damping * mass
        first, end = indptr[node], indptr[node + 1]
        if end == first:
            for i in range(len(seeds)):
                other = seeds[i]
                held = scratch[other, LEFT] + moved * weight[i]
                scratch[other, LEFT] = held
                if held > tolerance * scratch[other, DEGREE] > 0.0:
                    scratch[other, DEGREE] = -scratch[other, DEGREE]
                    queue.append(other)
            continue
        for e in range(first, end):
            other = np.int64(target[e])
            held = scratch[other, LEFT] + moved * share[e]
            scratch[other, LEFT] = held
            if scratch[other, TOUCHED] == 0.0:
                scratch[other, TOUCHED] = 1.0
                scratch[other, DEGREE] = max(indptr[other + 1] - indptr[other], 1)
                reached.append(other)
            if held > tolerance * scratch[other, DEGREE] > 0.0:
                scratch[other, DEGREE] = -scratch[other, DEGREE]
                queue.append(other)
    nodes = np.array(reached)
    score = np.empty(len(nodes), np.float32)
    for i in range(len(nodes)):
        node = nodes[i]
        score[i] = scratch[node, RANK] + (1.0 - damping) * scratch[node, LEFT]
        scratch[node] = 0.0
    return nodes, score


@numba.njit(cache=True, nogil=True)
def _meet(
    indptr: Any,
    target: Any,
    share: Any,
    scratch: Any,
    tally: Any,
    seeds: Any,
    weights: Any,
    below: int,
    least: float,
    damping: float,
    tolerance: float,
) -> Any:  # pragma: no cover - compiled
    one, met, meeting = np.ones(1), [seeds[0]], False
    met.pop()
    for i in range(len(seeds)):
        nodes, scores = _push(indptr, target, share, scratch, seeds[i : i + 1], one, damping, tolerance)
        for j in range(len(nodes)):
            node = nodes[j]
            if node >= below or not scores[j] > 0.0:
                continue
            tally[node, 0] += 1.0
            tally[node, 1] += weights[i] * np.log1p(scores[j] / least)
            if tally[node, 0] == 1.0:
                met.append(node)
            else:
                meeting = True
    found = np.array(met)
    together = np.empty(len(found))
    for i in range(len(found)):
        together[i] = tally[found[i], 1]
        tally[found[i]] = 0.0
    if not meeting:
        return found[:0], together[:0]
    return found, together
