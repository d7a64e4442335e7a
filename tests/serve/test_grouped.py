"""Groups of shards behind handles, in Serve's local mode."""

from __future__ import annotations

import asyncio

import numpy as np
import pytest
from ray import serve

from hybrid_ir.dense.groups import Found
from hybrid_ir.errors import Damaged
from hybrid_ir.roles import PathRanking, Query
from serve.grouped import GroupedDensePath, GroupedSparsePath, together

BUILD = "0123456789ab"


class Group:
    """Finds what it holds; of the folder ``inverted`` all of it only when all lists are looked into."""

    def __init__(self, scores: dict[int, float], folder: str = "", error: Exception | None = None) -> None:
        self.scores, self.folder, self.error, self.asked = scores, folder, error, []

    async def find(self, build_id: str, query: Query, k: int, everywhere: tuple[str, ...]) -> list[Found]:
        self.asked.append((build_id, k, tuple(everywhere)))
        if self.error:
            raise self.error
        near = self.folder == "" or self.folder in everywhere
        best = sorted(self.scores, key=lambda i: (-self.scores[i], i))[: k if near else 1]
        passing = 4 if self.folder else 0
        scores = np.array([self.scores[i] for i in best], np.float32)
        return [Found(self.folder, passing, k, scores, np.array(best, np.int64), None)]

    async def rank(self, build_id: str, query: Query, k: int) -> PathRanking:
        best = sorted(self.scores, key=lambda i: (-self.scores[i], i))[:k]
        return PathRanking(chunks=tuple(best), scores=tuple(self.scores[i] for i in best))

    async def seen(self) -> list:
        return self.asked


def handles(*groups: tuple) -> list:
    deployed = serve.deployment(Group)
    return [
        serve.run(deployed.bind(*given), name=f"group{i}", route_prefix=None, _local_testing_mode=True)
        for i, given in enumerate(groups)
    ]


def test_what_groups_found_is_one_list_by_score_and_number():
    groups = handles(({5: 0.5, 1: 0.9},), ({2: 0.5, 3: 0.1},), ({},))
    for kind in (GroupedDensePath, GroupedSparsePath):
        found = asyncio.run(kind(groups, BUILD, "scorer").rank(Query(text="bats"), 3))
        assert found.chunks == (1, 2, 5)
        assert found.scores == pytest.approx((0.9, 0.5, 0.5))


def test_where_the_nearest_lists_hold_too_few_all_are_looked_into():
    groups = handles(({5: 0.5, 1: 0.9}, "one"), ({2: 0.5, 3: 0.1}, "one"))
    path = GroupedDensePath(groups, BUILD, "scorer")
    assert asyncio.run(path.rank(Query(text="bats"), 2)).chunks == (1, 2)
    assert asyncio.run(path.rank(Query(text="bats"), 4)).chunks == (1, 2, 5, 3)
    asked = groups[0].seen.remote().result()
    assert asked == [(BUILD, 2, ()), (BUILD, 4, ()), (BUILD, 4, ("one",))]


def test_half_a_list_does_not_pass_for_a_whole():
    groups = handles(({1: 0.9},), ({2: 0.5}, "", Damaged("shard 3 is no whole FAISS index.")))
    with pytest.raises(Damaged, match="shard 3"):
        asyncio.run(GroupedDensePath(groups, BUILD, "scorer").rank(Query(text="bats"), 3))


def test_where_one_fails_or_the_caller_leaves_the_others_are_cancelled():
    ended = []

    async def slow() -> None:
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            ended.append("slow")
            raise

    async def failing() -> None:
        await asyncio.sleep(0)
        raise Damaged("gone")

    async def main() -> None:
        with pytest.raises(Damaged):
            await together([slow(), failing()])
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.05):
                await together([slow(), slow()])
        await asyncio.sleep(0)

    asyncio.run(main())
    assert ended == ["slow"] * 3
