"""The dense path: chunks by meaning (Eq. 4)."""

from __future__ import annotations

import asyncio

import numpy as np

from hybrid_ir.dense.index import DenseIndex
from hybrid_ir.roles import Encoder, PathRanking, Query


class DensePath:
    """See :class:`hybrid_ir.roles.RetrievalPath`."""

    def __init__(self, index: DenseIndex, encoder: Encoder) -> None:
        self._index, self._encoder = index, encoder

    async def rank(self, query: Query, k: int) -> PathRanking:
        return await asyncio.to_thread(self.rank_now, query, k)

    def rank_now(self, query: Query, k: int) -> PathRanking:
        scores, ids = self._index.search(self._encoder.encode_queries([query.text]), k)
        found = np.flatnonzero(ids[0] >= 0)
        return PathRanking(chunks=tuple(ids[0, found].tolist()), scores=tuple(scores[0, found].tolist()))
