"""The HTTP service and its deployments."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from hybrid_ir.settings.group import Group, Positive

Traces = Literal["off", "console", "otlp"]


class DeploymentSettings(Group):
    """One kind of Serve deployment."""

    num_cpus: Annotated[float, Field(ge=0)] = 0.5
    num_gpus: Annotated[float, Field(ge=0)] = 0.0
    min_replicas: Positive = 1
    max_replicas: Positive = 1
    max_ongoing_requests: Positive = 16
    max_queued_requests: Positive = 64
    upscale_delay_s: Annotated[float, Field(ge=0)] = 20.0
    """More replicas come when there has been more work than for those there are, for so long."""
    downscale_delay_s: Annotated[float, Field(ge=0)] = 300.0
    """A replica goes when there has been too little work for it, for so long."""
    cold_start_s: Annotated[float, Field(ge=0)] = 60.0
    """What a replica takes until it is ready, at most: ``downscale_delay_s`` must be twice as long, or replicas would
    spend their time starting."""


class QueryEncoderSettings(DeploymentSettings):
    """The models that turn queries into vectors, as a deployment of their own."""

    max_ongoing_requests: Positive = 64
    max_batch: Positive = 32
    """Requests whose texts are encoded in one call."""
    wait_s: Annotated[float, Field(ge=0)] = 0.005
    """A request waits so long for others: the sub-questions of a round come at the same time, from several replicas."""


class ScorerSettings(DeploymentSettings):
    """A retrieval path's deployment."""

    min_replicas: Annotated[int, Field(ge=0)] = 1
    """0: where nobody asks for ``downscale_delay_s`` none is kept, and the next request waits until one has started."""


class GroupedScorerSettings(ScorerSettings):
    """A scorer whose shards can be divided among several deployments."""

    groups: Positive = 1
    """Each is a deployment that opens its part of the shards alone; a query asks all of them."""


class GraphOwnerSettings(DeploymentSettings):
    """Owners of the graph's partitions, for the bounded GFM."""

    max_ongoing_requests: Positive = 64
    """A query asks each owner about ten times, one after the other."""
    groups: Positive = 1
    """Each is a deployment that opens its part of the partitions alone."""


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
    traces: Traces = "off"
    """Of OpenTelemetry: to the controller's standard output as JSON, or to a collector."""
    query_encoder: QueryEncoderSettings | None = None
    """``None``: each scorer replica holds the models itself."""
    dense_scorer: GroupedScorerSettings = GroupedScorerSettings()
    graph_scorer: ScorerSettings = ScorerSettings()
    graph_owner: GraphOwnerSettings | None = None
    """``None``: a replica of the graph scorer opens all partitions itself.  Else ``graph_path.gfm.mode`` must be
    ``bounded``."""
    sparse_scorer: GroupedScorerSettings = GroupedScorerSettings()
    reranker: DeploymentSettings = DeploymentSettings()
    """There only where ``rerank`` names a model."""
    reasoner: DeploymentSettings = DeploymentSettings()
    controller: DeploymentSettings = DeploymentSettings(max_ongoing_requests=64)

    @property
    def most_replicas(self) -> int:
        """Of any of the deployments that hold a build."""
        kinds = (self.dense_scorer, self.graph_scorer, self.sparse_scorer, self.reranker, self.reasoner)
        held = (*kinds, *(kind for kind in (self.query_encoder, self.graph_owner) if kind))
        return max(kind.max_replicas for kind in held)

    @property
    def scales_to_zero(self) -> bool:
        """Whether a retrieval may have to wait for the start of a replica."""
        return not all(kind.min_replicas for kind in (self.dense_scorer, self.graph_scorer, self.sparse_scorer))
