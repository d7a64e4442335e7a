"""Joining a Ray cluster, or starting one on this machine alone."""

from __future__ import annotations

import logging
import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import ray
import ray.data
from ray._private import ray_constants

from hybrid_ir.settings import JobSettings


@contextmanager
def connected(settings: JobSettings) -> Iterator[None]:
    """Within: a cluster.

    ``RAY_ADDRESS`` (which ``ray job submit`` sets) names one to join; otherwise a Ray of this
    process's own is started on loopback, without a dashboard, and ended after.
    """
    if ray.is_initialized():
        yield
        return
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    quiet: dict[str, Any] = {"logging_level": logging.ERROR, "log_to_driver": bool(os.environ.get("HYBRID_IR_DEBUG"))}
    if os.environ.get("RAY_ADDRESS"):
        ray.init(**quiet)
    else:
        # Ray Data's actors always draw an alarming but harmless line about their constructor arguments.
        os.environ.setdefault("RAY_BACKEND_LOG_LEVEL", "fatal")
        # Ray reports the line above on stderr; its errors are exceptions.
        with _native_stderr_closed(), _loopback():
            ray.init(
                address="local",
                # One logical CPU is one worker; with fewer than two, two stages could not stream.
                num_cpus=max(2, os.cpu_count() or 2),
                object_store_memory=settings.object_store_mb * 2**20,
                include_dashboard=False,
                _node_ip_address="127.0.0.1",
                **quiet,
            )
    context = ray.data.DataContext.get_current()
    context.enable_progress_bars = False
    logging.getLogger("ray.data").setLevel(logging.ERROR)
    try:
        yield
    finally:
        ray.shutdown()


@contextmanager
def _loopback() -> Iterator[None]:
    """Within, Ray takes 127.0.0.1 as it is; else it takes the machine's own address for it, and listens on that."""
    allowed = ray_constants.ENABLE_RAY_CLUSTER
    ray_constants.ENABLE_RAY_CLUSTER = False
    try:
        yield
    finally:
        ray_constants.ENABLE_RAY_CLUSTER = allowed


@contextmanager
def _native_stderr_closed() -> Iterator[None]:
    """Silence what libraries write to file descriptor 2 themselves."""
    kept, nothing = os.dup(2), os.open(os.devnull, os.O_WRONLY)
    os.dup2(nothing, 2)
    try:
        yield
    finally:
        os.dup2(kept, 2)
        os.close(kept)
        os.close(nothing)
