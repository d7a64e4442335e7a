"""The dense path as a deployment: vectors of one build and the encoder of its queries."""

from __future__ import annotations

from hybrid_ir.opened import Index
from hybrid_ir.retrieval.dense_path import DensePath
from hybrid_ir.roles import PathRanking, Query
from hybrid_ir.settings import Settings
from serve.builds import Builds
from serve.pinned import WARM_UP, longest_request_s


class DenseScorer:
    """Ready means warm: the shards are open and the encoder has run once."""

    def __init__(self, root: str, build_id: str, settings: Settings) -> None:
        self._builds = Builds(root, settings, build_id, _opened, longest_request_s(settings))

    async def rank(self, build_id: str, query: Query, k: int) -> PathRanking:
        return await (await self._builds.get(build_id)).rank(query, k)

    async def ready(self, build_id: str) -> None:
        await self._builds.get(build_id)


def _opened(index: Index) -> DensePath:
    path = index.dense_path
    path.rank_now(Query(text=WARM_UP), 1)
    return path
