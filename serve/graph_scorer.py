"""The graph path as a deployment: the graph of one build, its entity vectors and their models."""

from __future__ import annotations

from hybrid_ir.opened import open_index
from hybrid_ir.roles import PathRanking, Query
from hybrid_ir.settings import Settings
from serve.pinned import WARM_UP, require


class GraphScorer:
    """Ready means warm: the graph is open, and extractor and encoder have run once."""

    def __init__(self, root: str, build_id: str, settings: Settings) -> None:
        self._build_id = build_id
        self._path = open_index(root, settings, build_id).graph_path
        self._path.rank_now(Query(text=WARM_UP), 1)
        self._path.rank_now(Query(text=WARM_UP, entities=(WARM_UP,)), 1)  # no such entity: links by vector

    async def rank(self, build_id: str, query: Query, k: int) -> PathRanking:
        require(build_id, self._build_id, "graph scorer")
        return await self._path.rank(query, k)

    async def ready(self, build_id: str) -> None:
        require(build_id, self._build_id, "graph scorer")
