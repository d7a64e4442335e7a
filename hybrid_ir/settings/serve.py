"""The HTTP service and its deployments."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from hybrid_ir.settings.group import Group, Positive


class DeploymentSettings(Group):
    """One kind of Serve deployment."""

    num_cpus: Annotated[float, Field(ge=0)] = 0.5
    num_gpus: Annotated[float, Field(ge=0)] = 0.0
    min_replicas: Positive = 1
    max_replicas: Positive = 1
    max_ongoing_requests: Positive = 16
    max_queued_requests: Positive = 64


class ServeSettings(Group):
    """The HTTP service."""

    host: str = "127.0.0.1"
    port: Annotated[int, Field(ge=0, le=65535)] = 8000
    max_question_chars: Positive = 20_000
    follow_s: Annotated[float, Field(ge=0)] = 5.0
    """Seconds between looks for a newer published build, which then takes over; 0: serve the first one for ever."""
    keys: str | None = None
    """A file made by ``hybrid-ir keys add``, on every node; without one only loopback is served."""
    trusted_network: bool = False
    """Serve every address without keys, because a proxy in front asks who it is."""
    dense_scorer: DeploymentSettings = DeploymentSettings()
    graph_scorer: DeploymentSettings = DeploymentSettings()
    sparse_scorer: DeploymentSettings = DeploymentSettings()
    reranker: DeploymentSettings = DeploymentSettings()
    """There only where ``rerank`` names a model."""
    reasoner: DeploymentSettings = DeploymentSettings()
    controller: DeploymentSettings = DeploymentSettings(max_ongoing_requests=64)

    @property
    def most_replicas(self) -> int:
        """Of any of the deployments that hold a build."""
        kinds = (self.dense_scorer, self.graph_scorer, self.sparse_scorer, self.reranker, self.reasoner)
        return max(kind.max_replicas for kind in kinds)
