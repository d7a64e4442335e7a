"""The indexing job with its root in an object store: the same build as in a folder, throttled or not."""

import json
import subprocess
import sys
import time

import pytest
from killing import kill
from object_store import ObjectStore

import hybrid_ir
from hybrid_ir.errors import Conflict, NotFound
from hybrid_ir.index import manifest
from hybrid_ir.lease import held
from hybrid_ir.progress import Reporter
from hybrid_ir.settings import BuildSettings, Settings
from hybrid_ir.store import Store
from ray_jobs.cluster import connected
from ray_jobs.index import index

pytestmark = [pytest.mark.cluster, pytest.mark.slow]

SETTINGS = Settings(build=BuildSettings(shards=2))
TOPICS = ["Rabies virus", "Malaria", "Warfarin", "Metformin", "Amiodarone", "Linezolid"]


@pytest.fixture(scope="module")
def server(tmp_path_factory, no_ray):
    """An object store, and a Ray whose workers know where it is."""
    with ObjectStore() as server, pytest.MonkeyPatch.context() as patch:
        for name, value in server.environment(tmp_path_factory.mktemp("cache")).items():
            patch.setenv(name, value)
        server.make_bucket("medical")
        with connected(SETTINGS.job):
            yield server


@pytest.fixture(scope="module")
def corpus(tmp_path_factory):
    path = tmp_path_factory.mktemp("corpus") / "notes.jsonl"
    rows = [
        {"id": f"n{i}", "title": topic, "text": f"{topic} affects the liver. The liver metabolises {topic.lower()}."}
        for i, topic in enumerate(TOPICS)
    ]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return str(path)


@pytest.fixture(scope="module")
def whole(server, corpus, tmp_path_factory):
    """(root, manifest) of an undisturbed run in a folder."""
    root = str(tmp_path_factory.mktemp("whole"))
    return root, index([corpus], root, SETTINGS, Reporter(quiet=True))


def test_a_folder_and_an_object_store_get_the_same_build_also_when_throttled(server, corpus, whole):
    server.reset()
    root, local = whole
    server.every_third(503, "SlowDown")
    remote = index([corpus], "s3://medical/throttled", SETTINGS, Reporter(quiet=True))
    failed, requests = server.failed, len(server.requests)
    server.fault = None
    print(f"{failed} of {requests} requests were throttled")
    assert failed > 20
    assert local == remote  # names, rows, bytes and checksums of every file
    assert local.counts.triples > 0
    store = Store("s3://medical/throttled")
    assert manifest.verify(store, remote) == []
    assert manifest.current(store) == local.build_id
    assert not store.files("work")
    question = "What affects the liver?"
    here, there = (
        [(found.chunk.id, found.score) for found in hybrid_ir.open(root).retrieve(question).evidence]
        for root in (root, store.uri)
    )
    assert here == there != []


def test_a_second_job_is_told_and_writes_nothing(server, corpus):
    server.reset()
    store = Store("s3://medical/two")
    with held(store):
        with pytest.raises(Conflict, match=r"s3://medical/two is being written by .* its lease ends in \d+ s"):
            index([corpus], store.uri, SETTINGS, Reporter(quiet=True))
        assert store.files("") == ["LEASE"]


def test_a_killed_job_frees_its_root_and_the_next_goes_on(server, corpus, whole, tmp_path):
    server.reset()
    config = tmp_path / "c.yaml"
    config.write_text("build: {shards: 2}\n")
    store = Store("s3://medical/killed")
    command = [sys.executable, "-m", "ray_jobs.index", "--corpus", corpus, "--root", store.uri, "--config", str(config)]
    job = subprocess.Popen(command, start_new_session=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        end = time.monotonic() + 240
        while not any("/done/chunk-" in name for name in store.files("segments")):
            assert job.poll() is None, "the job ended before it could be killed"
            assert time.monotonic() < end
            time.sleep(0.1)
    finally:
        kill(job)
    with pytest.raises(NotFound, match="no index"):
        manifest.read(store)
    done = index([corpus], store.uri, SETTINGS, Reporter(quiet=True), wait_s=0)
    assert done == whole[1]
