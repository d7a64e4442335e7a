"""A retriever whose every query is filtered: what asks it need not know."""

from __future__ import annotations

from collections.abc import Sequence

from hybrid_ir.records import Filter, PathName, Retrieval
from hybrid_ir.roles import Query, Retriever


class FilteredRetriever:
    """See :class:`hybrid_ir.roles.Retriever`."""

    def __init__(self, retriever: Retriever, filter: Filter) -> None:
        self._retriever, self._filter = retriever, filter

    async def retrieve(
        self, query: Query, k: int, paths: Sequence[PathName] | None = None, timeout_s: float | None = None
    ) -> Retrieval:
        filtered = query.model_copy(update={"filter": self._filter})
        return await self._retriever.retrieve(filtered, k, paths, timeout_s)
