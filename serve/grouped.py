"""A path whose shards are divided among several deployments: all are asked, and what they found is merged."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Sequence
from typing import Any, TypeVar, cast

from ray.serve.handle import DeploymentHandle

from hybrid_ir.dense.groups import Found, merged
from hybrid_ir.retrieval.merging import merged_rankings
from hybrid_ir.roles import PathRanking, Query
from serve.handles import call

T = TypeVar("T")


class _Groups:
    """One handle for each group, in order.  A group that fails fails the path: half a list would pass for a whole."""

    def __init__(self, handles: Sequence[DeploymentHandle[Any]], build_id: str, who: str) -> None:
        self._handles, self._build_id, self._who = handles, build_id, who

    async def ready(self) -> None:
        await self._all("ready")

    async def _all(self, method: str, *arguments: Any) -> list[Any]:
        return await together(
            [
                call(handle, method, self._build_id, *arguments, who=f"{self._who} (group {place})")
                for place, handle in enumerate(self._handles, 1)
            ]
        )


class GroupedDensePath(_Groups):
    """See :class:`hybrid_ir.roles.RetrievalPath`; the list is that of one index over all shards, id for id."""

    async def rank(self, query: Query, k: int) -> PathRanking:
        scores, ids, short = merged(await self._found(query, k, ()), k)
        if short:
            scores, ids, _ = merged(await self._found(query, k, tuple(short)), k)
        return PathRanking(chunks=tuple(ids.tolist()), scores=tuple(scores.tolist()))

    async def _found(self, query: Query, k: int, everywhere: Sequence[str]) -> list[list[Found]]:
        return cast(list[list[Found]], await self._all("find", query, k, everywhere))


class GroupedSparsePath(_Groups):
    """See :class:`hybrid_ir.roles.RetrievalPath`; scores do not depend on how the shards are divided."""

    async def rank(self, query: Query, k: int) -> PathRanking:
        return merged_rankings(await self._all("rank", query, k), k)


async def together(calls: Sequence[Coroutine[Any, Any, T]]) -> list[T]:
    """All results, in order; where one fails, or the caller leaves, the others are cancelled."""
    tasks = [asyncio.ensure_future(one) for one in calls]
    try:
        return await asyncio.gather(*tasks)
    finally:
        for task in tasks:
            task.cancel()
