"""The sparse path: chunks by the words that they share with the query (BM25)."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from hybrid_ir.records import Filter
from hybrid_ir.roles import PathRanking, Query
from hybrid_ir.sparse.index import SparseIndex

Mask = NDArray[np.bool_]


class SparsePath:
    """See :class:`hybrid_ir.roles.RetrievalPath`."""

    def __init__(self, open_index: Callable[[], SparseIndex], allowed: Callable[[Filter | None], Mask | None]) -> None:
        """The index is opened when it is first asked: who never names this path never waits for it.

        ``allowed``: the chunks that a filter lets through, shape (chunks,); None: all.
        """
        self._open, self._allowed = open_index, allowed

    @cached_property
    def index(self) -> SparseIndex:
        return self._open()

    async def rank(self, query: Query, k: int) -> PathRanking:
        return await asyncio.to_thread(self.rank_now, query, k)

    def rank_now(self, query: Query, k: int) -> PathRanking:
        scores, chunks = self.index.search(query.text, k, self._allowed(query.filter))
        return PathRanking(chunks=tuple(chunks.tolist()), scores=tuple(scores.tolist()))
