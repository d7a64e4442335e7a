"""A Ray of this process's own, which no other machine reaches."""

from __future__ import annotations

import importlib
from typing import Any

import ray
from ray._private import ray_constants

HOST = "127.0.0.1"


def start(**options: Any) -> None:
    """``ray.init`` with every port on loopback and without a dashboard."""
    allowed = ray_constants.ENABLE_RAY_CLUSTER
    ray_constants.ENABLE_RAY_CLUSTER = False  # else Ray takes the machine's own address for 127.0.0.1
    try:
        ray.init(
            address="local",
            include_dashboard=False,
            _node_ip_address=HOST,
            runtime_env={"worker_process_setup_hook": f"{__name__}.{replicas_on_loopback.__name__}"},
            **options,
        )
    finally:
        ray_constants.ENABLE_RAY_CLUSTER = allowed


def replicas_on_loopback() -> None:
    """In every process of that Ray.

    A replica opens a port for its peers on all addresses, and unpickles what comes: see ``Replica._on_initialized``.
    """
    replica: Any = importlib.import_module("ray.serve._private.replica")
    bind = replica.add_port_to_grpc_server
    replica.add_port_to_grpc_server = lambda server, address: bind(server, address.replace("[::]", HOST))
