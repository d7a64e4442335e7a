"""The sparse path: chunks by the words that they share with the query (BM25)."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import cached_property

from hybrid_ir.index.chunk_filter import Allowed
from hybrid_ir.roles import PathRanking, Query
from hybrid_ir.sparse.index import SparseIndex


class SparsePath:
    """See :class:`hybrid_ir.roles.RetrievalPath`."""

    def __init__(self, open_index: Callable[[], SparseIndex], allowed: Allowed) -> None:
        """The index is opened when it is first asked: who never names this path never waits for it."""
        self._open, self._allowed = open_index, allowed

    @cached_property
    def index(self) -> SparseIndex:
        return self._open()

    async def rank(self, query: Query, k: int) -> PathRanking:
        return await asyncio.to_thread(self.rank_now, query, k)

    def rank_now(self, query: Query, k: int) -> PathRanking:
        scores, chunks = self.index.search(query.text, k, self._allowed(query.filter))
        return PathRanking(chunks=tuple(chunks.tolist()), scores=tuple(scores.tolist()))
