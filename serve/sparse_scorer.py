"""The sparse path as a deployment: the postings of one build, or of a group of its shards."""

from __future__ import annotations

from functools import partial

from hybrid_ir.index.shard_groups import EVERYTHING, ShardGroup
from hybrid_ir.opened import Index
from hybrid_ir.retrieval.sparse_path import SparsePath
from hybrid_ir.roles import PathRanking, Query
from hybrid_ir.settings import Settings
from serve.builds import Builds
from serve.pinned import WARM_UP, longest_request_s


class SparseScorer:
    """Ready means warm: the postings are open and have been searched once.  There only where the build has them."""

    def __init__(self, root: str, build_id: str, settings: Settings, group: ShardGroup = EVERYTHING) -> None:
        self._builds = Builds(root, settings, build_id, partial(_opened, group), longest_request_s(settings))

    async def rank(self, build_id: str, query: Query, k: int) -> PathRanking:
        return await (await self._builds.get(build_id)).rank(query, k)

    async def ready(self, build_id: str) -> None:
        await self._builds.get(build_id)


def _opened(group: ShardGroup, index: Index) -> SparsePath:
    path = index.sparse_group(group)
    path.rank_now(Query(text=WARM_UP), 1)
    return path
