"""Partitions behind handles, in Serve's local mode: what a query finds does not depend on who owns what."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest
import torch
from ray import serve
from test_gfm import small_network
from test_gfm_bounded import owners_of, random_graph

from hybrid_ir.errors import BadInput, Damaged
from hybrid_ir.graph.gfm.background import compute
from hybrid_ir.graph.gfm.bounded import BoundedGFM
from hybrid_ir.graph.gfm.exact import ExactGFM
from hybrid_ir.graph.gfm.owner import LocalOwners
from hybrid_ir.graph.gfm.projection import Projected
from hybrid_ir.index.shard_groups import ShardGroup
from hybrid_ir.settings import Settings
from serve.graph_owner import HandleOwners, check

CUTS = (40, 41, 150, 260)
NODES = 300


class Owned:
    """A group's partitions, already open."""

    def __init__(self, owners: LocalOwners, broken: bool = False) -> None:
        self.owners, self.broken = owners, broken

    async def ask(self, build_id: str, method: str, *arguments: object) -> object:
        assert build_id == "b1"
        if self.broken:
            raise Damaged("partition-00001: cut short")
        return getattr(self.owners, method)(*arguments)


def behind_handles(whole: LocalOwners, groups: int, broken: bool = False) -> HandleOwners:
    prepared = SimpleNamespace(starts=tuple(whole.starts.tolist()), sizes=np.diff(whole.starts).tolist())
    parts = [ShardGroup(n, groups).held(prepared.sizes) for n in range(groups)]
    deployed = serve.deployment(Owned)
    handles = [
        serve.run(
            deployed.bind(LocalOwners(whole._owners[held.start : held.stop], NODES), broken),
            name=f"owner{groups}{number}",
            route_prefix=None,
            _local_testing_mode=True,
        )
        for number, held in enumerate(parts)
    ]
    return HandleOwners(handles, "b1", prepared)  # type: ignore[arg-type]


@pytest.mark.parametrize("groups", [1, 2, 4, 7])
def test_groups_give_the_ids_and_scores_of_one_owner_of_all(groups: int) -> None:
    graph, vectors = random_graph(NODES, 900, 5), torch.randn(10, 12)
    exact = ExactGFM(Projected(small_network(), vectors), graph)
    whole = owners_of(graph, compute(exact), CUTS)
    near, far = (BoundedGFM(exact.projected, owners, 60) for owners in (whole, behind_handles(whole, groups)))
    for number, question in enumerate(torch.randn(3, 12)):
        seeds = {3 + number: 0.5, 200 + number: 1.0}
        for ours, theirs in zip(near.score(question, seeds), far.score(question, seeds), strict=True):
            np.testing.assert_array_equal(ours, theirs)
        resting = [one.resting(question, np.array([299, 4, 40, 41])) for one in (near, far)]
        np.testing.assert_array_equal(*resting)


def test_a_damaged_partition_is_named() -> None:
    graph, vectors = random_graph(NODES, 900, 5), torch.randn(10, 12)
    exact = ExactGFM(Projected(small_network(), vectors), graph)
    broken = behind_handles(owners_of(graph, compute(exact), CUTS), 2, broken=True)
    with pytest.raises(Damaged, match="partition-00001"):
        BoundedGFM(exact.projected, broken, 60).score(torch.randn(12), {3: 1.0})


def test_owners_are_for_the_bounded_scorer_alone() -> None:
    with pytest.raises(BadInput, match="mode: bounded"):
        check(Settings())
