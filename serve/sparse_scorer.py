"""The sparse path as a deployment: the postings of one build."""

from __future__ import annotations

from hybrid_ir.opened import open_index
from hybrid_ir.roles import PathRanking, Query
from hybrid_ir.settings import Settings
from serve.pinned import WARM_UP, require


class SparseScorer:
    """Ready means warm: the postings are open and have been searched once.  There only where the build has them."""

    def __init__(self, root: str, build_id: str, settings: Settings) -> None:
        self._build_id = build_id
        self._path = open_index(root, settings, build_id).sparse_path
        self._path.rank_now(Query(text=WARM_UP), 1)

    async def rank(self, build_id: str, query: Query, k: int) -> PathRanking:
        require(build_id, self._build_id, "sparse scorer")
        return await self._path.rank(query, k)

    async def ready(self, build_id: str) -> None:
        require(build_id, self._build_id, "sparse scorer")
