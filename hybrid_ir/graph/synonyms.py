"""Entity resolution: which entity names mean the same (an ``equivalent`` edge).

Two entities whose vectors' cosine exceeds tau are joined (Hybrid-IR, offline stage).  All
pairs are compared, as matrix products over tiles of ids, so that a tile can be a task of its
own and is repeatable.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

TILE = 4096
"""Entities a side; a tile's product takes 64 MB."""

_NUMBERS = re.compile(r"\d+(?:[.,]\d+)*")


def tiles(entities: int) -> Iterator[tuple[int, int]]:
    """The upper triangle of the all-pairs comparison: (row, column) numbers of id ranges of TILE entities."""
    count = -(-entities // TILE)
    for row in range(count):
        for column in range(row, count):
            yield row, column


def similar_pairs(
    left: NDArray[np.float32], right: NDArray[np.float32], first_left: int, first_right: int, threshold: float
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.float32]]:
    """All pairs a < b with a in the left range and b in the right one whose cosine exceeds the threshold.

    ``left`` and ``right`` hold the ranges' vectors, shape (entities of the range, dimension), and
    begin at the entity numbers ``first_left`` and ``first_right``.  Rows need not be of unit
    length; a zero row is similar to nothing.  Returns (a, b, cosine), sorted by (a, b).
    """
    product = _unit(left) @ _unit(right).T
    a, b = np.nonzero(product > threshold)
    cosine = product[a, b]
    a, b = a + first_left, b + first_right
    keep = a < b
    return a[keep].astype(np.int64), b[keep].astype(np.int64), cosine[keep].astype(np.float32)


def numbers_agree(a: str, b: str) -> bool:
    """Do two names hold the same numbers?  Vectors hardly tell IL-2 from IL-6 or type 1 from type 2."""
    return sorted(_NUMBERS.findall(a)) == sorted(_NUMBERS.findall(b))


def _unit(vectors: NDArray[np.float32]) -> NDArray[np.float32]:
    block = np.asarray(vectors, dtype=np.float32)
    length = np.linalg.norm(block, axis=1, keepdims=True)
    return np.asarray(block / np.where(length > 0, length, 1.0), dtype=np.float32)
