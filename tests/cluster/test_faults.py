"""Things that really die: workers in every stage, a node, a disk.  No row lost, none twice, the same build."""

import json
import os
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest
import ray
from ray.cluster_utils import Cluster

from hybrid_ir.errors import Failed
from hybrid_ir.index import layout, manifest
from hybrid_ir.progress import Reporter
from hybrid_ir.settings import JobSettings, Settings, StageResources
from hybrid_ir.store import Store
from ray_jobs import stages
from ray_jobs.index import index

pytestmark = [
    pytest.mark.cluster,
    pytest.mark.slow,
    pytest.mark.timeout(600),
    pytest.mark.usefixtures("shared_ray"),
]

QUIET = Reporter(quiet=True)
TASKS, ACTORS = ("read", "chunk", "synonym_tile"), ("Extract", "Encode", "EncodeNames", "Neighbours")


def die_once(folder, name):
    """End this process at once, as the kernel would, the first time that it comes here."""
    try:
        os.close(os.open(f"{folder}/{name}", os.O_CREAT | os.O_EXCL))
    except FileExistsError:
        return
    os._exit(137)


def mortal_task(real, folder):
    def task(row, plan):
        die_once(folder, f"{real.__name__}-before")
        result = real(row, plan)
        die_once(folder, f"{real.__name__}-after")
        return result

    return task


def mortal_actor(real, folder):
    def call(self, row):
        die_once(folder, f"{real.__name__}-before")
        result = real.__call__(self, row)
        die_once(folder, f"{real.__name__}-after")
        return result

    return type(real.__name__, (real,), {"__call__": call})


@pytest.fixture(scope="module")
def corpus(tmp_path_factory):
    path = tmp_path_factory.mktemp("corpus") / "notes.jsonl"
    rows = [
        {"id": f"n{i}", "text": f"Drug{i} inhibits enzyme E{i % 5}. Enzyme E{i % 5} is found in the liver."}
        for i in range(40)
    ]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return str(path)


@pytest.fixture(scope="module")
def settings(tmp_path_factory):
    """Triples from a file: workers die in the same stage, and are back without a parser to be loaded."""
    path = tmp_path_factory.mktemp("graph") / "graph.csv"
    lines = [f"n{i},drug{i},inhibits,enzyme e{i % 5}\n" for i in range(40)]
    path.write_text("document_id,head,relation,tail\n" + "".join(lines))
    extractor = {"kind": "imported", "path": str(path)}
    return Settings.model_validate({"build": {"shards": 4, "extractor": extractor}})


def files_of(root):
    store = Store(str(root))
    names = [n for n in store.files("builds") + store.files("segments") if "/report." not in n]
    return {name: store.sha256(name) for name in names}


def assert_nothing_lost_or_twice(root, made):
    store, ids = Store(str(root)), []
    for segment in made.segments:
        for shard in range(segment.shards):
            ids += store.read_table(layout.shard(segment.id, "chunks", shard), ["id"])["id"].to_pylist()
    assert sorted(ids) == sorted(f"n{i}#0" for i in range(40))
    assert made.counts.errors == 0


@pytest.fixture(scope="module")
def undisturbed(corpus, settings, tmp_path_factory, shared_ray):
    root = tmp_path_factory.mktemp("undisturbed")
    assert index([corpus], str(root), settings, QUIET).counts.triples == 40
    return files_of(root)


def test_a_worker_dies_in_every_stage_before_and_after_its_work(corpus, settings, undisturbed, tmp_path, monkeypatch):
    ray.cloudpickle.register_pickle_by_value(sys.modules[__name__])
    deaths = tmp_path / "deaths"
    deaths.mkdir()
    for name in TASKS:
        monkeypatch.setattr(stages, name, mortal_task(getattr(stages, name), str(deaths)))
    for name in ACTORS:
        monkeypatch.setattr(stages, name, mortal_actor(getattr(stages, name), str(deaths)))
    made = index([corpus], str(tmp_path / "root"), settings, QUIET)
    expected = {f"{name}-{when}" for name in (*TASKS, *ACTORS) for when in ("before", "after")}
    assert {path.name for path in deaths.iterdir()} == expected
    assert_nothing_lost_or_twice(tmp_path / "root", made)
    assert files_of(tmp_path / "root") == undisturbed


def test_a_worker_that_always_dies_ends_the_job_with_a_sentence(corpus, settings, tmp_path, monkeypatch):
    ray.cloudpickle.register_pickle_by_value(sys.modules[__name__])

    def always(row, plan):
        with open(tmp_path / "tries", "a") as tries:  # noqa: PTH123
            tries.write(f"{row['group']}\n")
        os._exit(137)

    monkeypatch.setattr(stages, "chunk", always)
    twice = settings.model_copy(update={"job": JobSettings(read=StageResources(max_retries=1))})
    with pytest.raises(Failed, match="died more often than it is restarted"):
        index([corpus], str(tmp_path / "root"), twice, QUIET)
    assert manifest.current(Store(str(tmp_path / "root"))) is None
    assert 2 <= len((tmp_path / "tries").read_text().splitlines()) <= 2 * 4


def test_a_full_disk_ends_the_job_and_room_lets_it_go_on(corpus, settings, undisturbed, tmp_path):
    root = tmp_path / "small-disk"
    root.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=60k", "tmpfs", str(root)]
    if subprocess.run(mount, check=False, capture_output=True).returncode:
        pytest.skip("this machine does not let the test mount a small disk")
    brief = settings.model_copy(update={"job": JobSettings(lease_s=5)})  # a full disk takes no release of a lease
    try:
        with pytest.raises(Failed, match="No space left on device"):
            index([corpus], str(root), brief, QUIET)
        assert manifest.current(Store(str(root))) is None
        subprocess.run(["mount", "-o", "remount,size=50m", str(root)], check=True)
        made = index([corpus], str(root), brief, QUIET, wait_s=30)
        assert_nothing_lost_or_twice(root, made)
        assert files_of(root) == undisturbed
        assert not [path for path in Path(root).rglob(".*") if path.suffix != ".lock"]
    finally:
        subprocess.run(["umount", str(root)], check=True)


def test_a_node_is_lost_in_the_middle(corpus, settings, undisturbed, tmp_path, no_ray):
    root = tmp_path / "root"
    cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 1, "object_store_memory": 80 * 2**20})
    try:
        node = cluster.add_node(num_cpus=2, object_store_memory=80 * 2**20)
        ray.init(address=cluster.address, log_to_driver=False, logging_level="ERROR")
        cluster.wait_for_nodes()
        result = {}
        job = threading.Thread(target=lambda: result.update(made=index([corpus], str(root), settings, QUIET)))
        job.start()
        end = time.monotonic() + 300
        while not list(root.glob("segments/*/done/extract-*")):
            assert job.is_alive()
            assert time.monotonic() < end
            time.sleep(0.05)
        cluster.remove_node(node, allow_graceful=False)
        cluster.add_node(num_cpus=1, object_store_memory=80 * 2**20)
        job.join(timeout=400)
        assert_nothing_lost_or_twice(root, result["made"])
        assert files_of(root) == undisturbed
    finally:
        ray.shutdown()
        cluster.shutdown()
