"""Which pairs of vectors may have a cosine above a threshold: dense products, block by block, in the fast precision.

The filter never misses a pair and lets some through that are not close enough; whoever asks
verifies them.  So which precision the filter computes in changes its time, not the result.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from hybrid_ir.graph.knowledge_graph import Numbers

Precision = Literal["auto", "float32", "bfloat16"]

MARGIN = {"float32": 1e-4, "bfloat16": 0.01}
"""By which a product of two unit vectors may be too small.  bfloat16 keeps 8 bits: rounding both vectors
moves it by at most 2^-8 (2 x 2^-9, by Cauchy-Schwarz), rounding the product below 1 by 2^-9: 0.0059."""
_FLAGS = {"amx_bf16", "avx512_bf16"}
_ROWS, _COLUMNS = 8192, 512
"""Of a block: its product is compared while it is in the cache."""
_UNITS = 256
"""Rows brought to unit length at a time, for the same reason."""
_PATIENCE = 2e11
"""Multiply-adds in float32 (some 3 s) before a process that has no torch loads it (some 3 s)."""


def above(
    left: NDArray[np.float32], right: NDArray[np.float32], threshold: float, precision: Precision = "auto"
) -> tuple[Numbers, Numbers]:
    """(rows, columns) with at least all pairs of rows whose cosine exceeds the threshold.

    ``left`` and ``right`` have shape (rows, dimension); where they are one object, a pair is
    looked for once, not in both orders.  ``auto``: bfloat16 where the CPU has instructions for
    it and a measurement finds it faster.
    """
    used = _precision(left, right) if precision == "auto" else precision
    limit = threshold - MARGIN[used]
    if limit <= 0:  # everything not opposed passes: nothing to gain, and bits compare as numbers only above 0
        used, limit = "float32", threshold - MARGIN["float32"]
    find = _find_bfloat16 if used == "bfloat16" else _find_float32
    found = list(find(left, right, limit))
    none = np.zeros(0, np.int64)
    return np.concatenate([rows for rows, _ in found] or [none]), np.concatenate([c for _, c in found] or [none])


def unit(vectors: NDArray[np.float32]) -> NDArray[np.float32]:
    """Rows at unit length, each computed from itself alone; a zero row stays zero."""
    block = np.ascontiguousarray(vectors, np.float32)
    length = np.sqrt(np.einsum("ij,ij->i", block, block))[:, None]
    return np.asarray(block / np.where(length > 0, length, np.float32(1)), np.float32)


def _find_float32(
    left: NDArray[np.float32], right: NDArray[np.float32], limit: float
) -> Iterator[tuple[Numbers, Numbers]]:
    one = unit(left)
    two = one if right is left else unit(right)
    for row, column in _blocks(left, right):
        yield _where(one[row] @ two[column].T > limit, row, column)


def _find_bfloat16(
    left: NDArray[np.float32], right: NDArray[np.float32], limit: float
) -> Iterator[tuple[Numbers, Numbers]]:
    import torch

    def rounded(vectors: NDArray[np.float32]) -> torch.Tensor:
        out = torch.empty(vectors.shape, dtype=torch.bfloat16)
        for start in range(0, len(vectors), _UNITS):
            out[start : start + _UNITS] = torch.from_numpy(unit(vectors[start : start + _UNITS]))
        return out

    one = rounded(left)
    two = one if right is left else rounded(right)
    # Positive floats are ordered as their bits are; cutting the limit's bits off only lowers it.
    bits = np.int16(np.float32(limit).view(np.int32) >> 16)
    for row, column in _blocks(left, right):
        product = torch.matmul(one[row], two[column].T)
        yield _where(product.view(torch.int16).numpy() > bits, row, column)


def _blocks(left: NDArray[Any], right: NDArray[Any]) -> Iterator[tuple[slice, slice]]:
    for start in range(0, len(right), _COLUMNS):
        column = slice(start, min(start + _COLUMNS, len(right)))
        rows = column.stop if right is left else len(left)  # up to the diagonal
        for first in range(0, rows, _ROWS):
            yield slice(first, min(first + _ROWS, rows)), column


def _where(mask: NDArray[np.bool_], row: slice, column: slice) -> tuple[Numbers, Numbers]:
    # On a flat mask NumPy skips over stretches of False; on a matrix it does not.
    rows, columns = np.divmod(np.flatnonzero(mask), mask.shape[1])
    return rows + row.start, columns + column.start


class _Work:
    """What this process has multiplied in float32 so far."""

    done = 0.0


def _precision(left: NDArray[Any], right: NDArray[Any]) -> Literal["float32", "bfloat16"]:
    if not _has_bfloat16():
        return "float32"
    if "torch" not in sys.modules and _Work.done < _PATIENCE:
        _Work.done += float(len(left)) * len(right) * left.shape[1]
        return "float32"
    return _faster()


@cache
def _has_bfloat16() -> bool:
    try:
        return not _FLAGS.isdisjoint(Path("/proc/cpuinfo").read_text().split())
    except OSError:
        return False


@cache
def _faster() -> Literal["float32", "bfloat16"]:
    """The precision that this machine multiplies faster in, measured once a process."""
    try:
        import torch
    except ImportError:
        return "float32"
    exact = np.random.default_rng(0).standard_normal((_ROWS, 384)).astype(np.float32)
    rough = torch.tensor(exact).bfloat16()
    return "bfloat16" if _seconds(lambda: rough @ rough.T) < _seconds(lambda: exact @ exact.T) else "float32"


def _seconds(run: Callable[[], Any]) -> float:
    """The best of five."""
    taken = []
    for _ in range(5):
        begun = time.perf_counter()
        run()
        taken.append(time.perf_counter() - begun)
    return min(taken)
