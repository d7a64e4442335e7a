"""The indexing job on a cluster."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from hybrid_ir.settings.group import Group, Positive


class StageResources(Group):
    """What one worker of a stage takes, and how many workers there may be."""

    num_cpus: Annotated[float, Field(ge=0)] = 1.0
    num_gpus: Annotated[float, Field(ge=0)] = 0.0
    min_workers: Positive = 1
    max_workers: Positive | None = None
    """``None``: as many as the cluster has room for, one for each CPU or GPU the stage asks."""
    max_retries: Annotated[int, Field(ge=0)] = 3
    """How often a worker that died is started again, and its work given to another."""


class JobSettings(Group):
    """The indexing job's stages on the cluster."""

    read: StageResources = StageResources()
    extract: StageResources = StageResources()
    encode: StageResources = StageResources()
    lease_s: Annotated[float, Field(gt=0)] = 60.0
    """A job that shows no life for so long loses its root to the next."""
    object_store_mb: Positive = 512
    """For a Ray that the command itself starts."""
