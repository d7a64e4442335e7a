"""The dense path: chunks by meaning (Eq. 4)."""

from __future__ import annotations

import asyncio

import numpy as np

from hybrid_ir.dense.index import DenseIndex
from hybrid_ir.index.chunk_filter import Allowed
from hybrid_ir.roles import Encoder, PathRanking, Query


class DensePath:
    """See :class:`hybrid_ir.roles.RetrievalPath`."""

    def __init__(self, index: DenseIndex, encoder: Encoder, allowed: Allowed) -> None:
        self._index, self._encoder, self._allowed = index, encoder, allowed

    async def rank(self, query: Query, k: int) -> PathRanking:
        return await asyncio.to_thread(self.rank_now, query, k)

    def rank_now(self, query: Query, k: int) -> PathRanking:
        vectors = self._encoder.encode_queries([query.text])
        scores, ids = self._index.search(vectors, k, self._allowed(query.filter))
        found = np.flatnonzero(ids[0] >= 0)
        return PathRanking(chunks=tuple(ids[0, found].tolist()), scores=tuple(scores[0, found].tolist()))
