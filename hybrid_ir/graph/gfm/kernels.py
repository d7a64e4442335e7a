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
