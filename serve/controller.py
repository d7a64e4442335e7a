"""The ingress: HTTP in, the retrieve-reason loop over handles, an answer out."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from fastapi import FastAPI
from ray.serve.handle import DeploymentHandle

from hybrid_ir.opened import Index, open_index
from hybrid_ir.records import PathName
from hybrid_ir.settings import Settings
from hybrid_ir.store import Store
from serve.api import create_app
from serve.circuit import circuits
from serve.gateway import log_to_stderr
from serve.handles import HandlePath, HandleReasoner, HandleReranker
from serve.metrics import Metrics
from serve.service import Service
from serve.switch import Follower, Served


class Controller:
    """Holds the chunks; everything that needs a model is behind a handle."""

    def __init__(
        self,
        root: str,
        build_id: str,
        settings: Settings,
        scorers: Mapping[PathName, DeploymentHandle[Any]],
        reasoner: DeploymentHandle[Any],
        reranker: DeploymentHandle[Any] | None = None,
        follow: bool = True,
    ) -> None:
        """``scorers``: one for each path of the build; ``follow``: let a build that is published later take over."""
        self._follow, self._metrics = follow, Metrics()
        self._root, self._settings = root, settings
        self._scorers, self._reasoner, self._reranker = scorers, reasoner, reranker
        self._served = Served(self._service(open_index(root, settings, build_id)))

    def _service(self, index: Index) -> Service:
        """Of one build: every call it makes names that build."""
        build_id = index.build_id
        handles = {
            name: HandlePath(scorer, build_id, f"{name} scorer")
            for name, scorer in self._scorers.items()
            if name in index.path_names
        }
        paths = circuits(handles)
        reasoner = HandleReasoner(self._reasoner, build_id)
        reranker = HandleReranker(self._reranker, build_id) if self._reranker else None
        checks = {f"{name} scorer": path.ready for name, path in handles.items()} | {"reasoner": reasoner.ready}
        if reranker is not None:
            checks["reranker"] = reranker.ready
        return Service(index.manifest, index.settings, index.chunks, paths, reasoner, checks, reranker, self._metrics)

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
        return create_app(self._served, follower, self._metrics, says_id=False)  # Serve's proxy does
