"""Entity resolution: which entity names mean the same (an ``equivalent`` edge).

Two entities whose vectors' cosine exceeds tau are joined (Hybrid-IR, offline stage).  All
pairs are compared, as matrix products over tiles, so that a tile can be a task of its own and
is repeatable; a fast product finds the pairs that may be close enough.  Their cosine is
computed again in double precision from the two vectors alone: what it is does not depend on the
tile it was found in.
"""

from __future__ import annotations

import re
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hybrid_ir.graph.candidates import Precision, above, unit
from hybrid_ir.graph.knowledge_graph import Numbers

_PAIRS = 1024
"""Verified at a time: their vectors stay in the cache."""

_NUMBERS = re.compile(r"\d+(?:[.,]\d+)*")


def similar_pairs(
    left_ids: Numbers,
    left: NDArray[np.float32],
    right_ids: Numbers,
    right: NDArray[np.float32],
    threshold: float,
    precision: Precision = "auto",
) -> tuple[Numbers, Numbers, NDArray[np.float32]]:
    """All pairs of one entity of the left and another of the right whose cosine exceeds the threshold.

    ``left`` and ``right`` have shape (entities, dimension); rows need not be of unit length, a
    zero row is similar to nothing.  Pass one object as both to compare a tile with itself.
    ``precision`` is that of the filter (see ``candidates``) and does not change the result.
    Returns (a, b, cosine) with a < b, sorted, each pair once.
    """
    if right is left and right_ids is not left_ids:
        right = right.view()  # two tiles that happen to hold the same vectors
    rows, columns = above(left, right, threshold, precision)
    a, b = left_ids[rows], right_ids[columns]
    keep = a != b
    rows, columns, a, b = rows[keep], columns[keep], a[keep], b[keep]
    cosine = _cosine(left, rows, right, columns)
    keep = cosine > threshold
    return distinct(np.minimum(a, b)[keep], np.maximum(a, b)[keep], cosine[keep].astype(np.float32))


def _cosine(left: NDArray[Any], rows: Numbers, right: NDArray[Any], columns: Numbers) -> NDArray[np.float64]:
    """Of single pairs, in double precision."""
    cosine = np.empty(len(rows), np.float64)
    for start in range(0, len(rows), _PAIRS):
        some = slice(start, start + _PAIRS)
        one, two = (unit(x).astype(np.float64) for x in (left[rows[some]], right[columns[some]]))
        cosine[some] = np.einsum("ij,ij->i", one, two)
    return cosine


def distinct(a: Numbers, b: Numbers, cosine: NDArray[np.float32]) -> tuple[Numbers, Numbers, NDArray[np.float32]]:
    """The pairs in order, each once."""
    order = np.lexsort((b, a))
    a, b, cosine = a[order], b[order], cosine[order]
    keep = np.ones(len(a), bool)
    keep[1:] = (a[1:] != a[:-1]) | (b[1:] != b[:-1])
    return a[keep].astype(np.int64), b[keep].astype(np.int64), cosine[keep]


def numbers_agree(a: str, b: str) -> bool:
    """Do two names hold the same numbers?  Vectors hardly tell IL-2 from IL-6 or type 1 from type 2."""
    return sorted(_NUMBERS.findall(a)) == sorted(_NUMBERS.findall(b))
