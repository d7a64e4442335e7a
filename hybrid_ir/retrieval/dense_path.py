"""The dense path: chunks by meaning (Eq. 4)."""

from __future__ import annotations

from collections.abc import Collection, Sequence

import numpy as np

from hybrid_ir.dense.groups import DenseGroup, Found
from hybrid_ir.dense.index import DenseIndex
from hybrid_ir.index.chunk_filter import Allowed
from hybrid_ir.retrieval.together import Together
from hybrid_ir.roles import Encoder, PathRanking, Query, Vectors


class DensePath:
    """See :class:`hybrid_ir.roles.RetrievalPath`."""

    def __init__(self, index: DenseIndex, encoder: Encoder, allowed: Allowed) -> None:
        self._index, self._encoder, self._allowed = index, encoder, allowed
        self._together = Together(self.rank_many)

    async def rank(self, query: Query, k: int) -> PathRanking:
        return await self._together.ask((query, k))

    def rank_now(self, query: Query, k: int) -> PathRanking:
        return self.rank_many([(query, k)])[0]

    def rank_many(self, asked: Sequence[tuple[Query, int]]) -> list[PathRanking]:
        """Several queries, each with its k, by one call of the encoder."""
        vectors = self._encoder.encode_queries([query.text for query, _ in asked])
        return [self.rank_by(vectors[i : i + 1], query, k) for i, (query, k) in enumerate(asked)]

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
