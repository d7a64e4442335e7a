"""Entity resolution: which entity names mean the same (an ``equivalent`` edge).

Two entities whose vectors' cosine exceeds tau are joined (Hybrid-IR, offline stage).  All
pairs are compared, as matrix products over tiles, so that a tile can be a task of its own and
is repeatable.  A pair's cosine is computed again in double precision from its two vectors
alone: what it is does not depend on the tile it was found in.
"""

from __future__ import annotations

import re
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hybrid_ir.graph.knowledge_graph import Numbers

MARGIN = 1e-4
"""By which a single-precision product may be off."""

_NUMBERS = re.compile(r"\d+(?:[.,]\d+)*")


def similar_pairs(
    left_ids: Numbers,
    left: NDArray[np.float32],
    right_ids: Numbers,
    right: NDArray[np.float32],
    threshold: float,
) -> tuple[Numbers, Numbers, NDArray[np.float32]]:
    """All pairs of one entity of the left and another of the right whose cosine exceeds the threshold.

    ``left`` and ``right`` have shape (entities, dimension); rows need not be of unit length, a
    zero row is similar to nothing.  Returns (a, b, cosine) with a < b, sorted, each pair once.
    """
    left, right = _unit(left), _unit(right)
    rows, columns = np.nonzero(left @ right.T > threshold - MARGIN)
    a, b = left_ids[rows], right_ids[columns]
    keep = a != b
    rows, columns, a, b = rows[keep], columns[keep], a[keep], b[keep]
    swap = a > b
    a, b = np.where(swap, b, a), np.where(swap, a, b)
    one = np.where(swap[:, None], right[columns], left[rows]).astype(np.float64)
    two = np.where(swap[:, None], left[rows], right[columns]).astype(np.float64)
    cosine = np.einsum("ij,ij->i", one, two)
    return distinct(a[cosine > threshold], b[cosine > threshold], cosine[cosine > threshold].astype(np.float32))


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


def _unit(vectors: NDArray[np.float32]) -> NDArray[Any]:
    block = np.asarray(vectors, dtype=np.float32)
    length = np.linalg.norm(block, axis=1, keepdims=True)
    return np.asarray(block / np.where(length > 0, length, 1.0), dtype=np.float32)
