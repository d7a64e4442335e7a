"""The graph's partitions as deployments, where ``serve.graph_owner`` is set: the bounded GFM asks them.

A replica then opens its group's partitions and their background alone, and the graph scorer none.
What is exchanged are ids, whole numbers and rows of active entities, so that the groups change no
result.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from functools import partial
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from ray.serve.handle import DeploymentHandle

from hybrid_ir.errors import BadInput, Unavailable
from hybrid_ir.graph.gfm.owner import Owners, Pushed, Rows
from hybrid_ir.graph.gfm.prepared import PreparedGraph
from hybrid_ir.graph.gfm.projection import Head
from hybrid_ir.graph.knowledge_graph import Numbers
from hybrid_ir.index.shard_groups import ShardGroup
from hybrid_ir.opened import Index
from hybrid_ir.settings import Settings
from serve.builds import Builds
from serve.grouped import together
from serve.handles import call
from serve.pinned import longest_request_s

Method = Literal["push", "hearers", "neighbours", "gather", "resting"]

MOST_S = 60.0
"""A scorer's thread waits no longer for one answer."""
WHO = "graph owner"


class GraphOwner:
    """The partitions of one group."""

    def __init__(self, root: str, build_id: str, settings: Settings, group: ShardGroup) -> None:
        self._builds = Builds(root, settings, build_id, partial(_opened, group), longest_request_s(settings))

    async def ask(self, build_id: str, method: Method, *arguments: Any) -> Any:
        """See :class:`hybrid_ir.graph.gfm.owner.Owners`."""
        owners = await self._builds.get(build_id)
        return await asyncio.to_thread(getattr(owners, method), *arguments)

    async def ready(self, build_id: str) -> None:
        await self._builds.get(build_id)


def check(settings: Settings) -> None:
    """Raises BadInput where no scorer would ask an owner."""
    gfm = settings.graph_path.gfm
    if settings.graph_path.scorer != "gfm" or gfm is None or gfm.mode != "bounded":
        raise BadInput("serve.graph_owner owns partitions for graph_path: {scorer: gfm, gfm: {mode: bounded}}.")


def _opened(group: ShardGroup, index: Index) -> Owners:
    return index.graph_owners(group)


class HandleOwners:
    """See :class:`hybrid_ir.graph.gfm.owner.Owners`; pinned to one build.  For threads: its methods block."""

    def __init__(self, handles: Sequence[DeploymentHandle[Any]], build_id: str, graph: PreparedGraph) -> None:
        """``handles``: of the groups, in their order."""
        self._build_id, self.starts = build_id, np.array(graph.starts, np.int64)
        groups = [(handle, ShardGroup(n, len(handles)).held(graph.sizes)) for n, handle in enumerate(handles)]
        self._groups = [(handle, held) for handle, held in groups if held]

    def push(self, ids: Sequence[Numbers], mass: Sequence[Numbers], damping: float, least: float) -> list[Pushed]:
        """Only groups that hold mass are asked."""
        asked = [sum(len(ids[number]) for number in held) > 0 for _, held in self._groups]
        found = iter(
            self._ask(
                "push",
                [
                    (handle, (list(ids[held.start : held.stop]), list(mass[held.start : held.stop]), damping, least))
                    for (handle, held), some in zip(self._groups, asked, strict=True)
                    if some
                ],
            )
        )
        answers = [
            next(found) if some else [_NOTHING] * len(held) for (_, held), some in zip(self._groups, asked, strict=True)
        ]
        return [pushed for answer in answers for pushed in answer]

    def hearers(self, seeds: Numbers) -> tuple[Numbers, Numbers, Numbers]:
        seed, hearer, relation = zip(*self._ask_all("hearers", seeds), strict=True)
        return np.concatenate(seed), np.concatenate(hearer), np.concatenate(relation)

    def neighbours(self, ids: Numbers, most: int) -> tuple[Numbers, Numbers, Numbers]:
        node, neighbour, messages = zip(*self._ask_all("neighbours", ids, most), strict=True)
        return np.concatenate(node), np.concatenate(neighbour), np.concatenate(messages)

    def gather(self, active: Numbers) -> list[Rows]:
        return [rows for found in self._ask_all("gather", active) for rows in found]

    def resting(self, ids: Numbers, head: Head) -> NDArray[np.float32]:
        return np.concatenate(self._ask_all("resting", ids, head))

    def _ask_all(self, method: Method, *arguments: Any) -> list[Any]:
        return self._ask(method, [(handle, arguments) for handle, _ in self._groups])

    def _ask(self, method: Method, asked: Sequence[tuple[DeploymentHandle[Any], tuple[Any, ...]]]) -> list[Any]:
        async def limited() -> list[Any]:
            async with asyncio.timeout(MOST_S):
                return await together(
                    [call(handle, "ask", self._build_id, method, *given, who=WHO) for handle, given in asked]
                )

        try:
            return asyncio.run(limited())
        except TimeoutError as error:
            raise Unavailable(f"The {WHO} did not answer within {MOST_S:g} s.") from error


_NONE = np.zeros(0, np.int64)
_NOTHING = Pushed(np.zeros(0, np.bool_), _NONE, _NONE, _NONE, 0)
