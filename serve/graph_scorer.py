"""The graph path as a deployment: the graph of one build, its entity vectors and their models."""

from __future__ import annotations

import asyncio
import time

from ray import serve
from ray.util.metrics import Histogram

from hybrid_ir.opened import open_index
from hybrid_ir.roles import PathRanking, Query
from hybrid_ir.settings import Settings
from serve.graph_audit import audit_of
from serve.pinned import WARM_UP, require

MOST_TOGETHER = 8
WAIT_S = 0.0
"""A request that comes alone does not wait for others."""


class GraphScorer:
    """Ready means warm: the graph is open, and extractor and encoder have run once."""

    def __init__(self, root: str, build_id: str, settings: Settings) -> None:
        self._build_id = build_id
        self._seconds = Histogram(
            "hybrid_ir_graph_batch_seconds",
            description="Seconds of one batch of the graph scorer, by the number of its queries.",
            boundaries=[0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10],
            tag_keys=("queries",),
        )
        self._path = open_index(root, settings, build_id).graph_path
        self._audit = audit_of(self._path, settings.graph_path)
        self._path.rank_now(Query(text=WARM_UP), 1)
        self._path.rank_now(Query(text=WARM_UP, entities=(WARM_UP,)), 1)  # no such entity: links by vector

    async def rank(self, build_id: str, query: Query, k: int) -> PathRanking:
        require(build_id, self._build_id, "graph scorer")
        found: PathRanking | Exception = await self._batched((query, k))
        if isinstance(found, Exception):
            raise found
        return found

    @serve.batch(max_batch_size=MOST_TOGETHER, batch_wait_timeout_s=WAIT_S)
    async def _batched(self, calls: list[tuple[Query, int]]) -> list[PathRanking | Exception]:
        """Requests that come while another is scored are scored together."""
        start = time.monotonic()
        found = await asyncio.to_thread(self._rank, calls)
        self._seconds.observe(time.monotonic() - start, {"queries": str(len(calls))})
        if self._audit is not None:
            for (query, _), result in zip(calls, found, strict=True):
                if isinstance(result, PathRanking):
                    self._audit.offer(query)
        return found

    def _rank(self, calls: list[tuple[Query, int]]) -> list[PathRanking | Exception]:
        try:
            return [*self._path.rank_many([query for query, _ in calls], [k for _, k in calls])]
        except Exception as error:
            if len(calls) == 1:
                return [error]
        # One of them is at fault: each alone, so that the others get their answers.
        return [found for call in calls for found in self._rank([call])]

    async def ready(self, build_id: str) -> None:
        require(build_id, self._build_id, "graph scorer")
