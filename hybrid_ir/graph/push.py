"""Personalised PageRank by forward push: its cost depends on the tolerance, not on the graph.

R. Andersen, F. Chung, K. Lang: Local graph partitioning using PageRank vectors, 2006 (Algorithm
ApproximatePageRank), for the walk p = (1 - d) s + d P p that :mod:`pagerank` iterates.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numba
import numpy as np
from numpy.typing import NDArray

Ids = NDArray[np.int64]


def push(
    indptr: NDArray[Any],
    target: NDArray[Any],
    share: NDArray[np.float32],
    seeds: Mapping[int, float],
    damping: float,
    tolerance: float,
) -> tuple[Ids, NDArray[np.float32]]:
    """The nodes that were reached, in the order of first touch, and their scores (> 0).

    CSR by the node that gives; ``share``: the part of a node's mass that goes along each edge, 1 in
    sum for a node with edges.  A node is settled while it holds more than ``tolerance`` x its edges,
    so that a score errs by less than tolerance x edges, and 1 / ((1 - d) x tolerance) edges are
    walked at most.  In the end every node keeps its part of what it still holds and passes nothing
    on: scores stay below the walk's, and come closer.  What a node without edges would pass on goes
    back to the seeds.
    """
    nodes = np.array(sorted(node for node, weight in seeds.items() if weight > 0), np.int64)
    weight = np.array([seeds[int(node)] for node in nodes], np.float64)
    total = weight.sum()
    if not total > 0 or not np.isfinite(total):
        return np.zeros(0, np.int64), np.zeros(0, np.float32)
    reached, settled = _push(indptr, target, share, nodes, weight / total, damping, tolerance)
    found = settled > 0
    return reached[found], settled[found]


@numba.njit(cache=True, nogil=True)
def _push(
    indptr: Any, target: Any, share: Any, seeds: Any, weight: Any, damping: float, tolerance: float
) -> Any:  # pragma: no cover - compiled
    size = len(indptr) - 1
    # Untouched pages of these cost nothing: the system maps them when they are written.
    rank, left, waiting = np.zeros(size, np.float32), np.zeros(size, np.float32), np.zeros(size, np.uint8)
    reached = [seeds[0]]
    queue = [seeds[0]]
    for i in range(len(seeds)):
        node = seeds[i]
        left[node] = weight[i]
        waiting[node] = 1
        if i:
            reached.append(node)
            queue.append(node)
    at = 0
    while at < len(queue):
        node = queue[at]
        at += 1
        waiting[node] = 0
        first, end = indptr[node], indptr[node + 1]
        mass = left[node]
        if mass <= tolerance * max(end - first, 1):
            continue
        left[node] = 0.0
        rank[node] += (1.0 - damping) * mass
        moved = damping * mass
        if end == first:
            for i in range(len(seeds)):
                other = seeds[i]
                left[other] += moved * weight[i]
                if not waiting[other] and left[other] > tolerance * max(indptr[other + 1] - indptr[other], 1):
                    waiting[other] = 1
                    queue.append(other)
            continue
        for e in range(first, end):
            other = target[e]
            # Few arrays are touched here: each is a miss of the cache, and those are the time.
            before = left[other]
            held = before + moved * share[e]
            left[other] = held
            if before == 0.0 and held > 0.0 and rank[other] == 0.0:
                reached.append(other)
            if not waiting[other] and held > tolerance * (indptr[other + 1] - indptr[other]):
                waiting[other] = 1
                queue.append(other)
    nodes = np.array(reached)
    return nodes, rank[nodes] + np.float32(1.0 - damping) * left[nodes]
