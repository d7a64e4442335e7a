"""FAISS shards with explicit ids, searched together."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import faiss
import numpy as np
from numpy.typing import NDArray

from hybrid_ir.errors import BadInput, Conflict, Damaged
from hybrid_ir.store import FileEntry, Store

Scores = NDArray[np.float32]
Ids = NDArray[np.int64]


def write_shard(store: Store, name: str, vectors: NDArray[np.float32], ids: Ids) -> FileEntry:
    """A flat inner-product index; vectors of shape (n, dimension), ids of shape (n,)."""
    if not np.isfinite(vectors).all():
        raise BadInput(f"{name}: vectors hold NaN or infinite values; the encoder is at fault.")
    index = faiss.IndexIDMap2(faiss.IndexFlatIP(vectors.shape[1]))
    index.add_with_ids(np.ascontiguousarray(vectors, np.float32), np.ascontiguousarray(ids, np.int64))
    return store.write_with(name, lambda path: faiss.write_index(index, path), len(ids))


@dataclass(frozen=True)
class Shard:
    """A file of the store, and what to add to its ids to make them the build's."""

    name: str
    offset: int = 0


class DenseIndex:
    """All shards of a build as one index."""

    def __init__(self, store: Store, shards: Sequence[Shard], dead: Ids | None = None) -> None:
        """``dead``: ids, ascending, that no search finds."""
        dead = np.zeros(0, np.int64) if dead is None else dead
        self._shards: list[tuple[Any, int, Any]] = []
        for shard in shards:
            try:
                index = faiss.read_index(str(store.local(shard.name)))
            except RuntimeError as error:
                raise Damaged(f"{store.path(shard.name)}: not a whole FAISS index; index the corpus again.") from error
            here = dead[dead >= shard.offset] - shard.offset
            alive = faiss.IDSelectorNot(faiss.IDSelectorBatch(here)) if len(here) else None
            self._shards.append((index, shard.offset, faiss.SearchParameters(sel=alive) if alive else None))  # type: ignore[call-arg]

    def __len__(self) -> int:
        return sum(index.ntotal for index, _, _ in self._shards)

    def search(self, queries: NDArray[np.float32], k: int) -> tuple[Scores, Ids]:
        """The k best of all shards for each query: scores and ids of shape (queries, k).

        Best first, equal scores by id, so that the number of shards changes nothing; where
        fewer than k exist, id -1 and score -inf.
        """
        queries = np.ascontiguousarray(queries, np.float32)
        if not np.isfinite(queries).all():
            raise BadInput("A query vector holds NaN or infinite values; the encoder is at fault.")
        scores = np.full((len(queries), 0), -np.inf, np.float32)
        ids = np.full((len(queries), 0), -1, np.int64)
        for index, offset, alive in self._shards:
            if index.d != queries.shape[1]:
                raise Conflict(
                    f"The index holds vectors of {index.d} dimensions, the query's has {queries.shape[1]}: "
                    "it was built with another encoder. Use the settings it was built with, or index again."
                )
            if index.ntotal == 0:
                continue
            shard_scores, shard_ids = index.search(queries, min(k, index.ntotal), params=alive)
            shard_ids = np.where(shard_ids >= 0, shard_ids + offset, -1)
            scores = np.concatenate([scores, shard_scores], axis=1)
            ids = np.concatenate([ids, shard_ids], axis=1)
        scores = np.where(ids >= 0, scores, -np.inf).astype(np.float32)
        order = np.lexsort((ids, -scores), axis=1)[:, :k]
        scores, ids = np.take_along_axis(scores, order, 1), np.take_along_axis(ids, order, 1)
        short = k - scores.shape[1]
        if short > 0:
            scores = np.pad(scores, ((0, 0), (0, short)), constant_values=-np.inf)
            ids = np.pad(ids, ((0, 0), (0, short)), constant_values=-1)
        return scores, ids
