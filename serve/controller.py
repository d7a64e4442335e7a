"""The ingress: HTTP in, the retrieve-reason loop over handles, an answer out."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

from fastapi import FastAPI
from ray.serve.handle import DeploymentHandle

from hybrid_ir.opened import Index, open_index
from hybrid_ir.records import PathName
from hybrid_ir.settings import Settings
from hybrid_ir.store import Store
from serve.api import create_app
from serve.circuit import circuits
from serve.drain import Drain
from serve.gateway import log_to_stderr
from serve.grouped import GroupedDensePath, GroupedSparsePath
from serve.handles import HandlePath, HandleReasoner, HandleReranker, call
from serve.metrics import Metrics
from serve.service import Service
from serve.switch import Follower, Served
from serve.tracing import Tracing, exporter_of


class Controller:
    """Holds the chunks; everything that needs a model is behind a handle."""

    def __init__(
        self,
        root: str,
        build_id: str,
        settings: Settings,
        scorers: Mapping[PathName, Sequence[DeploymentHandle[Any]]],
        reasoner: DeploymentHandle[Any],
        reranker: DeploymentHandle[Any] | None = None,
        encoder: DeploymentHandle[Any] | None = None,
        follow: bool = True,
    ) -> None:
        """``scorers``: for each path of the build its groups; ``encoder``: what they ask, here for its health alone.

        ``follow``: let a build that is published later take over.
        """
        self._follow, self._metrics, self._drain = follow, Metrics(), Drain()
        exporter = exporter_of(settings.serve.traces)
        self._tracing = Tracing(exporter) if exporter else None
        self._root, self._settings = root, settings
        self._scorers, self._reasoner, self._reranker, self._encoder = scorers, reasoner, reranker, encoder
        self._served = Served(self._service(open_index(root, settings, build_id)))

    def _service(self, index: Index) -> Service:
        """Of one build: every call it makes names that build."""
        build_id = index.build_id
        handles = {
            name: _path(name, groups, build_id) for name, groups in self._scorers.items() if name in index.path_names
        }
        paths = circuits(handles)
        reasoner = HandleReasoner(self._reasoner, build_id)
        reranker = HandleReranker(self._reranker, build_id) if self._reranker else None
        checks = {f"{name} scorer": path.ready for name, path in handles.items()} | {"reasoner": reasoner.ready}
        if reranker is not None:
            checks["reranker"] = reranker.ready
        if self._encoder is not None:
            checks["query encoder"] = partial(call, self._encoder, "ready", build_id, who="query encoder")
        serving = index.settings.serve
        resting = [f"{name} scorer" for name in handles if not getattr(serving, f"{name}_scorer").min_replicas]
        return Service(
            index.manifest,
            index.settings,
            index.chunks,
            paths,
            reasoner,
            checks,
            reranker,
            self._metrics,
            resting,
            self._tracing,
        )

    def __serve_build_asgi_app__(self) -> FastAPI:
        """Called by Serve, after the constructor."""
        log_to_stderr()
        wanted = self._settings.serve
        follower = None
        if wanted.follow_s and self._follow:
            follower = Follower(
                self._served,
                Store(self._root),
                lambda found: self._service(open_index(self._root, self._settings, found.build_id)),
                lambda service: service.warm(wanted.most_replicas),
                wanted.follow_s,
            )
        # Serve's proxy says the id.
        return create_app(self._served, follower, self._metrics, False, self._tracing, self._drain)

    async def drain(self) -> None:
        """Refuse new requests; return when those in progress are answered, which needs the scorers to live on."""
        await self._drain.close()
        if self._tracing is not None:
            await asyncio.to_thread(self._tracing.flush)


def _path(
    name: PathName, groups: Sequence[DeploymentHandle[Any]], build_id: str
) -> HandlePath | GroupedDensePath | GroupedSparsePath:
    who = f"{name} scorer"
    if len(groups) == 1:
        return HandlePath(groups[0], build_id, who)
    return (GroupedDensePath if name == "dense" else GroupedSparsePath)(groups, build_id, who)
