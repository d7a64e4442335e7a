"""The graph path as a deployment: the graph of one build, its entity vectors and their models."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from ray import serve
from ray.serve.handle import DeploymentHandle
from ray.util.metrics import Histogram

from hybrid_ir.extraction.specific import is_listed
from hybrid_ir.opened import Index
from hybrid_ir.retrieval.graph_path import GraphPath
from hybrid_ir.roles import PathRanking, Query
from hybrid_ir.settings import Settings
from serve.builds import Builds
from serve.graph_audit import GraphAudit, audit_of
from serve.grouped import together
from serve.handles import call
from serve.pinned import WARM_UP, longest_request_s
from serve.query_encoder import encode_by

MOST_TOGETHER = 8
WAIT_S = 0.0
"""A request that comes alone does not wait for others."""


class GraphScorer:
    """Ready means warm: the graph is open, and extractor and encoder have run once."""

    def __init__(
        self,
        root: str,
        build_id: str,
        settings: Settings,
        encoder: DeploymentHandle[Any] | None = None,
        owners: Sequence[DeploymentHandle[Any]] = (),
    ) -> None:
        """``encoder``: the query encoder's deployment, which then links mentions by vector.  ``owners``: those of the
        graph's partitions, group by group."""
        self._seconds = Histogram(
            "hybrid_ir_graph_batch_seconds",
            description="Seconds of one batch of the graph scorer, by the number of its queries.",
            boundaries=[0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10],
            tag_keys=("queries",),
        )
        self._owners = owners
        self._builds = Builds(root, settings, build_id, partial(_opened, encoder, owners), longest_request_s(settings))

    async def rank(self, build_id: str, query: Query, k: int) -> PathRanking:
        found: PathRanking | Exception = await self._batched((await self._builds.get(build_id), query, k))
        if isinstance(found, Exception):
            raise found
        return found

    @serve.batch(max_batch_size=MOST_TOGETHER, batch_wait_timeout_s=WAIT_S)
    async def _batched(self, calls: list[Call]) -> list[PathRanking | Exception]:
        """Requests that come while another is scored are scored together, those of one build in one pass."""
        start = time.monotonic()
        found = await asyncio.to_thread(_ranked, calls)
        self._seconds.observe(time.monotonic() - start, {"queries": str(len(calls))})
        for (opened, query, _), result in zip(calls, found, strict=True):
            if opened.audit is not None and isinstance(result, PathRanking):
                opened.audit.offer(query)
        return found

    async def ready(self, build_id: str) -> None:
        """With its owners: a build that is coming is opened by their replicas too before it serves."""
        await together([call(owner, "ready", build_id, who="graph owner") for owner in self._owners])
        await self._builds.get(build_id)


@dataclass(frozen=True)
class Opened:
    """Of one build."""

    path: GraphPath
    audit: GraphAudit | None


Call = tuple[Opened, Query, int]


def _opened(encoder: DeploymentHandle[Any] | None, owners: Sequence[DeploymentHandle[Any]], index: Index) -> Opened:
    encode_by(index, encoder)
    if owners:
        from serve.graph_owner import HandleOwners  # torch-geometric belongs to an extra of its own

        index.own_by(partial(HandleOwners, owners, index.build_id))
    path = index.graph_path
    path.rank_now(Query(text=WARM_UP), 1)
    path.rank_now(Query(text=WARM_UP, entities=(WARM_UP,)), 1)  # no such entity: links by vector
    is_listed(WARM_UP)  # opens the vocabularies, which the first query with a plain name would wait for
    return Opened(path, audit_of(path, index.settings.graph_path))


def _ranked(calls: Sequence[Call]) -> list[PathRanking | Exception]:
    results: dict[int, PathRanking | Exception] = {}
    for opened in {id(opened): opened for opened, _, _ in calls}.values():
        places = [place for place, call in enumerate(calls) if call[0] is opened]
        results |= zip(places, _of_one(opened.path, [calls[place][1:] for place in places]), strict=True)
    return [results[place] for place in range(len(calls))]


def _of_one(path: GraphPath, calls: Sequence[tuple[Query, int]]) -> list[PathRanking | Exception]:
    try:
        return [*path.rank_many([query for query, _ in calls], [k for _, k in calls])]
    except Exception as error:
        if len(calls) == 1:
            return [error]
    # One of them is at fault: each alone, so that the others get their answers.
    return [found for call in calls for found in _of_one(path, [call])]
