"""The steps of a search: shards asked, candidates compared by their rows, lists merged."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import faiss
import numpy as np

from hybrid_ir.dense.shards import Ids, Mask, OpenShard, Scores, Vectors

TIES = 16
"""FAISS keeps any of several equal scores at the end of a list; with so many more asked for, ids decide."""


def search_flat(shard: OpenShard, queries: Vectors, k: int, allowed: Mask | None) -> tuple[Scores, Ids]:
    selector, count = shard.selected(allowed)
    if not count or not shard.index.ntotal:
        return nothing(len(queries), 0)
    parameters = faiss.SearchParameters(sel=selector) if selector is not None else None  # type: ignore[call-arg]
    scores, ids = shard.index.search(queries, min(k + TIES, count), params=parameters)
    return _numbered(shard, scores, ids)


def search_lists(
    shard: OpenShard, selector: Any, turned: Vectors, lists: Ids, near: Scores, wanted: int
) -> tuple[Scores, Ids]:
    """Scores (RaBitQ's are estimates) and ids of shape (queries, wanted)."""
    parameters: Any
    if isinstance(shard.index, faiss.IndexIVFRaBitQ):
        parameters = faiss.IVFRaBitQSearchParameters()
        parameters.qb = shard.index.qb
    else:
        parameters = faiss.SearchParametersIVF()
    parameters.nprobe = lists.shape[1]
    if selector is not None:
        parameters.sel = selector
    scores = np.empty((len(turned), wanted), np.float32)
    ids = np.empty((len(turned), wanted), np.int64)
    # The C++ method itself: its Python wrapper takes no parameters.
    given, into = [faiss.swig_ptr(array) for array in (lists, near)], [faiss.swig_ptr(array) for array in (scores, ids)]
    shard.index.search_preassigned_c(len(turned), faiss.swig_ptr(turned), wanted, *given, *into, False, parameters)
    return _numbered(shard, scores, ids)


def by_rows(
    shards: Sequence[OpenShard], ranges: Vectors, queries: Vectors, candidates: Ids, k: int
) -> tuple[Scores, Ids]:
    """The k best of each query's candidates by their rows: q (low + step * row)."""
    low, step = ranges
    constant, scaled = queries @ low, queries * step
    scores = np.full(candidates.shape, -np.inf, np.float32)
    for shard in shards:
        here = (candidates >= shard.offset) & (candidates < shard.offset + shard.size)
        for query in np.flatnonzero(here.any(axis=1)).tolist():
            places = np.flatnonzero(here[query])
            places = places[np.argsort(candidates[query, places])]  # the disk is read in one direction
            rows = shard.rows[candidates[query, places] - shard.offset]
            scores[query, places] = rows.astype(np.float32) @ scaled[query] + constant[query]
    return best([(scores, candidates)], len(queries), k)


def _numbered(shard: OpenShard, scores: Scores, ids: Ids) -> tuple[Scores, Ids]:
    return scores, np.where(ids >= 0, ids + shard.offset, -1)


def nothing(queries: int, k: int) -> tuple[Scores, Ids]:
    return np.full((queries, k), -np.inf, np.float32), np.full((queries, k), -1, np.int64)


def best(found: Sequence[tuple[Scores, Ids]], queries: int, k: int) -> tuple[Scores, Ids]:
    """The k best of several lists for each query, by score and then by id."""
    if len(found) == 1 and _in_order(*found[0], k):
        return found[0][0][:, :k], found[0][1][:, :k]
    some = [*found, nothing(queries, k)]
    scores, ids = (np.concatenate([part[i] for part in some], axis=1) for i in range(2))
    scores = np.where(ids >= 0, scores, -np.inf).astype(np.float32)
    order = np.lexsort((np.where(ids >= 0, ids, np.iinfo(np.int64).max), -scores), axis=1)[:, :k]
    return np.take_along_axis(scores, order, 1), np.take_along_axis(ids, order, 1)


def _in_order(scores: Scores, ids: Ids, k: int) -> bool:
    """Whether the first k are there, best first, and nothing behind them is their equal, or better."""
    if not ids.shape[1] >= k > 0 or (ids[:, :k] < 0).any():
        return False
    before, after = scores[:, :-1], scores[:, 1:]
    return bool((after[:, :k] < before[:, :k]).all() and (after[:, k:] <= before[:, k:]).all())
