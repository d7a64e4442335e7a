"""A node that goes while questions are asked: a simulated cluster of two, with a scorer's replica on each."""

from __future__ import annotations

import threading
import time

import httpx
import pytest
import ray
from ray import serve
from ray.cluster_utils import Cluster

from hybrid_ir.settings import Settings
from serve.run import APPLICATION, free_port, run

pytestmark = [pytest.mark.cluster, pytest.mark.slow, pytest.mark.timeout(600)]

LIGHT = {"num_cpus": 0.1, "max_ongoing_requests": 64}
MEMORY = 80 * 2**20


def replicas(name: str) -> int:
    """Of a deployment, those that run."""
    application = serve.status().applications.get(APPLICATION)
    deployment = application and application.deployments.get(name)
    return deployment.replica_states.get("RUNNING", 0) if deployment else 0


def wait_for(condition, seconds: float = 240.0) -> None:
    end = time.monotonic() + seconds
    while not condition() and time.monotonic() < end:
        time.sleep(0.1)
    assert condition()


def test_a_lost_node_loses_no_request(sample_root, monkeypatch):
    # A node has room for one replica of the dense scorer; the first holds all else before there is a second.
    serving = {name: LIGHT for name in ("graph_scorer", "sparse_scorer", "reasoner", "controller")}
    serving["dense_scorer"] = {"num_cpus": 1.5, "min_replicas": 2, "max_replicas": 2, "max_ongoing_requests": 16}
    port = free_port("127.0.0.1", 0)
    settings = Settings.model_validate({"serve": {"port": port, **serving}})
    cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 2, "object_store_memory": MEMORY})
    started = {}
    try:
        monkeypatch.setenv("RAY_ADDRESS", cluster.address)  # so that the port is Serve's to judge, which has it
        ray.init(address=cluster.address, log_to_driver=False, logging_level="ERROR")
        # Both nodes are this machine: the second one's proxy would share the port, and take its connections with it.
        serve.start(proxy_location="HeadOnly", http_options={"host": "127.0.0.1", "port": port})
        starting = threading.Thread(target=lambda: started.update(service=run(sample_root, settings)))
        starting.start()
        rest = ("GraphScorer", "SparseScorer", "Reasoner", "Controller", "DenseScorer")
        wait_for(lambda: all(replicas(name) == 1 for name in rest))
        node = cluster.add_node(num_cpus=2, object_store_memory=MEMORY)
        starting.join(timeout=240)
        assert replicas("DenseScorer") == 2
        url = started["service"].url
        body = {"query": "How does fluconazole change the INR of a patient on warfarin?", "k": 5}
        answered: list[dict] = []
        lost: list[str] = []
        expected = httpx.post(f"{url}/v1/retrieve", json=body, timeout=60, trust_env=False).json()["evidence"]
        stop = threading.Event()

        def ask() -> None:
            with httpx.Client(base_url=url, timeout=60, trust_env=False) as client:
                while not stop.is_set():
                    try:
                        response = client.post("/v1/retrieve", json=body)
                    except httpx.TransportError as error:
                        lost.append(repr(error))
                        continue
                    if response.status_code != 200:
                        lost.append(response.text)
                        continue
                    answered.append(response.json())

        asking = [threading.Thread(target=ask) for _ in range(3)]
        for one in asking:
            one.start()
        try:
            wait_for(lambda: len(answered) >= 20)
            cluster.remove_node(node, allow_graceful=False)
            wait_for(lambda: replicas("DenseScorer") == 1)
            count = len(answered)
            wait_for(lambda: len(answered) >= count + 20)
        finally:
            stop.set()
            for one in asking:
                one.join()
        assert not lost
        whole = [found for found in answered if not found["degraded"]]
        assert len(whole) >= 20
        assert all(found["evidence"] == expected for found in whole)
    finally:
        if "service" in started:
            started["service"].close()
        ray.shutdown()
        cluster.shutdown()
