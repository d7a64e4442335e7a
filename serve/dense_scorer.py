"""The dense path as a deployment: vectors of one build and, where no deployment of its own has it, the encoder."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Generic, TypeVar

from ray.serve.handle import DeploymentHandle

from hybrid_ir.dense.groups import Found
from hybrid_ir.index.shard_groups import ShardGroup
from hybrid_ir.opened import Index
from hybrid_ir.retrieval.dense_path import DenseGroupPath, DensePath
from hybrid_ir.roles import PathRanking, Query
from hybrid_ir.settings import Settings
from serve.builds import Builds
from serve.pinned import WARM_UP, longest_request_s
from serve.query_encoder import HandleEncoder, encode_by

T = TypeVar("T")
Encoding = DeploymentHandle[Any] | None
"""The query encoder's deployment, where there is one."""


@dataclass(frozen=True)
class Opened(Generic[T]):
    """Of one build."""

    path: T
    encoder: HandleEncoder | None


class DenseScorer:
    """Ready means warm: the shards are open and have been searched once, by an encoder that has run."""

    def __init__(self, root: str, build_id: str, settings: Settings, encoder: Encoding = None) -> None:
        self._builds = Builds(root, settings, build_id, partial(_opened, encoder), longest_request_s(settings))

    async def rank(self, build_id: str, query: Query, k: int) -> PathRanking:
        opened = await self._builds.get(build_id)
        if opened.encoder is None:
            return await opened.path.rank(query, k)
        vectors = await opened.encoder.queries([query.text])
        return await asyncio.to_thread(opened.path.rank_by, vectors, query, k)

    async def ready(self, build_id: str) -> None:
        await self._builds.get(build_id)


class DenseGroupScorer:
    """As :class:`DenseScorer`, over the shards of one group."""

    def __init__(
        self, root: str, build_id: str, settings: Settings, group: ShardGroup, encoder: Encoding = None
    ) -> None:
        make = partial(_opened_group, encoder, group)
        self._builds = Builds(root, settings, build_id, make, longest_request_s(settings))

    async def find(self, build_id: str, query: Query, k: int, everywhere: Sequence[str]) -> list[Found]:
        opened = await self._builds.get(build_id)
        if opened.encoder is None:
            return await asyncio.to_thread(opened.path.find_now, query, k, everywhere)
        vectors = await opened.encoder.queries([query.text])
        return await asyncio.to_thread(opened.path.find_by, vectors, query, k, everywhere)

    async def ready(self, build_id: str) -> None:
        await self._builds.get(build_id)


def _opened(encoder: Encoding, index: Index) -> Opened[DensePath]:
    asked = encode_by(index, encoder)
    path = index.dense_path
    path.rank_now(Query(text=WARM_UP), 1)
    return Opened(path, asked)


def _opened_group(encoder: Encoding, group: ShardGroup, index: Index) -> Opened[DenseGroupPath]:
    asked = encode_by(index, encoder)
    path = index.dense_group(group)
    path.find_now(Query(text=WARM_UP), 1)
    return Opened(path, asked)
