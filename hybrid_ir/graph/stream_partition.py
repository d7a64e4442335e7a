"""A graph too large for METIS, divided in a few passes over its rows, in compiled code."""

from __future__ import annotations

from typing import Any

import numba
import numpy as np
from numpy.typing import NDArray

PASSES = 10
"""The first pass sees only what came before a node; the later ones (restreaming) see all its neighbours."""
_GAMMA = 1.5


def fennel(
    indptr: NDArray[Any],
    indices: NDArray[Any],
    weight: NDArray[Any],
    parts: int,
    capacity: int,
    before: NDArray[np.int32] | None = None,
) -> NDArray[np.int32]:
    """The part of each node of a symmetric CSR graph, shape (nodes,); -1 for a node without edges.

    Nodes that have a part in ``before`` (the others: -1) keep it.

    Fennel (Tsourakakis et al. 2014): node v goes to the part i with the largest
    w(v, S_i) - alpha gamma |S_i|^(gamma - 1), alpha = m parts^(gamma - 1) / n^gamma, among those
    with fewer than ``capacity`` nodes; ties to the lowest i.  Passes after the first move each
    node by the same rule (Nishimura and Ugander 2013).
    """
    nodes = len(indptr) - 1
    alpha = float(weight.sum()) / 2 * parts ** (_GAMMA - 1) / max(nodes, 1) ** _GAMMA
    # The cost of a part by its size, so that the inner loop takes no power.
    cost = alpha * _GAMMA * np.arange(capacity + 1, dtype=np.float64) ** (_GAMMA - 1)
    part = np.full(nodes, -1, np.int32) if before is None else before.astype(np.int32)
    return np.asarray(_pass_over(indptr, indices, weight, cost, parts, PASSES, part, np.flatnonzero(part < 0)))


@numba.njit(cache=True)
def _pass_over(
    indptr: Any, indices: Any, weight: Any, cost: Any, parts: int, passes: int, part: Any, nodes: Any
) -> Any:  # pragma: no cover
    capacity = len(cost) - 1
    size = np.zeros(parts, np.int64)
    for there in part:
        if there >= 0:
            size[there] += 1
    near = np.zeros(parts, np.float64)
    for _ in range(passes):
        for node in nodes:
            first, last = indptr[node], indptr[node + 1]
            if first == last:
                continue
            if part[node] >= 0:
                size[part[node]] -= 1
            for edge in range(first, last):
                there = part[indices[edge]]
                if there >= 0:
                    near[there] += weight[edge]
            best, most = -1, -np.inf
            for i in range(parts):
                if size[i] < capacity and near[i] - cost[size[i]] > most:
                    best, most = i, near[i] - cost[size[i]]
                near[i] = 0.0
            part[node] = best
            size[best] += 1
    return part
