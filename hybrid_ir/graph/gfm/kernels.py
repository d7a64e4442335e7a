"""The compiled inner loop of a pass: gather, multiply, sum, without a row in between.

Compiled by numba at first use and kept on disk; one thread a range of receivers, so that sums
are made in the same order whatever the number of threads.
"""

from __future__ import annotations

from typing import Any

import numba
import numpy as np
from numpy.typing import NDArray

Rows = NDArray[np.float32]


@numba.njit(parallel=True, fastmath=True, cache=True, nogil=True)
def aggregate(indptr: Any, source: Any, relation: Any, projected: Any, states: Any, first: int, out: Any) -> None:
    """out[i, q] = sum over messages e of receiver first + i of projected[relation[e]] * states[source[e], q].

    ``states`` and ``out`` are of shape (nodes, queries, dimension) and (receivers, queries, dimension);
    a relation's row is read once for all queries.
    """
    queries, dimension = states.shape[1], states.shape[2]
    for i in numba.prange(out.shape[0]):
        for q in range(queries):
            for d in range(dimension):
                out[i, q, d] = np.float32(0.0)
        for e in range(indptr[first + i], indptr[first + i + 1]):
            through = projected[relation[e]]
            for q in range(queries):
                heard = states[source[e], q]
                for d in range(dimension):
                    out[i, q, d] += through[d] * heard[d]


@numba.njit(cache=True, nogil=True)
def induced(indptr: Any, source: Any, relation: Any, rows: Any, active: Any, nodes: int) -> Any:
    """The messages that ``rows`` (of this CSR) hear from ``active`` nodes (ascending ids below ``nodes``).

    CSR by row, sources as places in ``active``.  A row's messages are read through, or where they are
    many, looked up for each active node: the cost of a hub is bounded by the number of active nodes.
    """
    count = len(active)
    place = np.zeros(nodes, np.int32)  # pages that are not touched cost nothing
    for i in range(count):
        place[active[i]] = i + 1
    starts = np.zeros(len(rows) + 1, np.int64)
    sources, relations = [np.int32(0)], [np.int32(0)]  # typed by their first, which is taken off below
    for i in range(len(rows)):
        first, end = indptr[rows[i]], indptr[rows[i] + 1]
        if end - first > 16 * count:
            for j in range(count):
                at = first + np.searchsorted(source[first:end], active[j])
                while at < end and source[at] == active[j]:
                    sources.append(np.int32(j))
                    relations.append(relation[at])
                    at += 1
        else:
            for at in range(first, end):
                j = place[source[at]]
                if j:
                    sources.append(np.int32(j - 1))
                    relations.append(relation[at])
        starts[i + 1] = len(sources) - 1
    return starts, np.array(sources)[1:], np.array(relations)[1:]


@numba.njit(cache=True, nogil=True)
def push_rows(indptr: Any, source: Any, rows: Any, part: Any, nodes: int) -> Any:
    """What the neighbours of ``rows`` are given, ``part`` along each edge: (ids, each once; their sums)."""
    mass = np.zeros(nodes, np.int64)  # pages that are not touched cost nothing
    reached = [np.int64(0)]
    for i in range(len(rows)):
        if part[i] == 0:
            continue
        for at in range(indptr[rows[i]], indptr[rows[i] + 1]):
            other = source[at]
            if mass[other] == 0:
                reached.append(np.int64(other))
            mass[other] += part[i]
    found = np.array(reached)[1:]
    return found, mass[found]


@numba.njit(parallel=True, fastmath=True, cache=True, nogil=True)
def resting_logits(hidden: Any, rows: Any, constant: Any, last: Any, bias: float) -> Any:
    """bias + last . relu(hidden[row] + constant) of each row; ``hidden``: bfloat16 bits, (nodes, width)."""
    width, count = len(constant), len(rows)
    out = np.empty(count, np.float32)
    blocks = (count + 63) // 64
    for block in numba.prange(blocks):
        bits = np.empty(width, np.uint32)
        values = bits.view(np.float32)
        for i in range(64 * block, min(64 * block + 64, count)):
            of_row = hidden[rows[i]]
            for d in range(width):
                bits[d] = np.uint32(of_row[d]) << np.uint32(16)
            total = np.float32(0.0)
            for d in range(width):
                total += last[d] * max(values[d] + constant[d], np.float32(0.0))
            out[i] = total + np.float32(bias)
    return out
