"""The ingress: HTTP in, the retrieve-reason loop over handles, an answer out."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from fastapi import FastAPI
from ray.serve.handle import DeploymentHandle

from hybrid_ir.opened import open_index
from hybrid_ir.records import PathName
from hybrid_ir.settings import Settings
from serve.api import create_app
from serve.gateway import log_to_stderr
from serve.handles import HandlePath, HandleReasoner, HandleReranker
from serve.service import Service


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
    ) -> None:
        """``scorers``: one for each path of the build."""
        index = open_index(root, settings, build_id)
        paths = {name: HandlePath(scorer, build_id, f"{name} scorer") for name, scorer in scorers.items()}
        thinker = HandleReasoner(reasoner, build_id)
        reader = HandleReranker(reranker, build_id) if reranker else None
        checks = {f"{name} scorer": path.ready for name, path in paths.items()} | {"reasoner": thinker.ready}
        if reader is not None:
            checks["reranker"] = reader.ready
        self._service = Service(
            manifest=index.manifest,
            settings=index.settings,
            chunks=index.chunks,
            paths=paths,
            reasoner=thinker,
            checks=checks,
            reranker=reader,
        )

    def __serve_build_asgi_app__(self) -> FastAPI:
        """Called by Serve, after the constructor."""
        log_to_stderr()
        return create_app(self._service)
