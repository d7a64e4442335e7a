"""The dense path: chunks by meaning (Eq. 4)."""

from __future__ import annotations

import asyncio
from collections.abc import Collection

import numpy as np

from hybrid_ir.dense.groups import DenseGroup, Found
from hybrid_ir.dense.index import DenseIndex
from hybrid_ir.index.chunk_filter import Allowed
from hybrid_ir.roles import Encoder, PathRanking, Query, Vectors


class DensePath:
    """See :class:`hybrid_ir.roles.RetrievalPath`."""

    def __init__(self, index: DenseIndex, encoder: Encoder, allowed: Allowed) -> None:
        self._index, self._encoder, self._allowed = index, encoder, allowed

    async def rank(self, query: Query, k: int) -> PathRanking:
        return await asyncio.to_thread(self.rank_now, query, k)

    def rank_now(self, query: Query, k: int) -> PathRanking:
        return self.rank_by(self._encoder.encode_queries([query.text]), query, k)

    def rank_by(self, vectors: Vectors, query: Query, k: int) -> PathRanking:
        """With the query's vector from elsewhere, shape (1, dimension)."""
        scores, ids = self._index.search(vectors, k, self._allowed(query.filter))
        found = np.flatnonzero(ids[0] >= 0)
        return PathRanking(chunks=tuple(ids[0, found].tolist()), scores=tuple(scores[0, found].tolist()))


class DenseGroupPath:
    """The dense path over a group of the shards; what the groups found is for :func:`hybrid_ir.dense.groups.merged`."""

    def __init__(self, group: DenseGroup, encoder: Encoder, allowed: Allowed) -> None:
        self._group, self._encoder, self._allowed = group, encoder, allowed

    def find_now(self, query: Query, k: int, everywhere: Collection[str] = ()) -> list[Found]:
        return self.find_by(self._encoder.encode_queries([query.text]), query, k, everywhere)

    def find_by(self, vectors: Vectors, query: Query, k: int, everywhere: Collection[str] = ()) -> list[Found]:
        """With the query's vector from elsewhere, shape (1, dimension)."""
        return self._group.find(vectors, k, self._allowed(query.filter), everywhere)
