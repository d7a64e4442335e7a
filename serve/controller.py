"""The ingress: HTTP in, the retrieve-reason loop over handles, an answer out."""

from __future__ import annotations

from typing import Any

from fastapi import FastAPI
from ray.serve.handle import DeploymentHandle

from hybrid_ir.opened import open_index
from hybrid_ir.settings import Settings
from serve.api import create_app
from serve.handles import HandlePath, HandleReasoner
from serve.service import Service


class Controller:
    """Holds the chunks; everything that needs a model is behind a handle."""

    def __init__(
        self,
        root: str,
        build_id: str,
        settings: Settings,
        graph_scorer: DeploymentHandle[Any],
        dense_scorer: DeploymentHandle[Any],
        reasoner: DeploymentHandle[Any],
    ) -> None:
        index = open_index(root, settings, build_id)
        graph = HandlePath(graph_scorer, build_id, "graph scorer")
        dense = HandlePath(dense_scorer, build_id, "dense scorer")
        thinker = HandleReasoner(reasoner, build_id)
        self._service = Service(
            manifest=index.manifest,
            settings=index.settings,
            chunks=index.chunks,
            paths={"graph": graph, "dense": dense},
            reasoner=thinker,
            checks={"graph scorer": graph.ready, "dense scorer": dense.ready, "reasoner": thinker.ready},
        )

    def __serve_build_asgi_app__(self) -> FastAPI:
        """Called by Serve, after the constructor."""
        return create_app(self._service)
