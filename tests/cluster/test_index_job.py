"""The indexing job on a real Ray: repeatable, resumable after a kill, and honest about bad corpora."""

import gzip
import json
import subprocess
import sys
import time
from functools import partial
from pathlib import Path

import pytest
from killing import kill

from hybrid_ir.corpus.ranges import look
from hybrid_ir.errors import BadInput, NotFound
from hybrid_ir.index import inspection, layout, manifest, retention
from hybrid_ir.progress import Reporter
from hybrid_ir.settings import BuildSettings, Settings
from hybrid_ir.store import Store
from ray_jobs.index import index
from ray_jobs.pipeline import read_parts, shard_count

pytestmark = [pytest.mark.cluster, pytest.mark.slow, pytest.mark.usefixtures("shared_ray")]

SETTINGS = Settings(build=BuildSettings(shards=3))
TOPICS = ["Rabies virus", "Malaria", "Warfarin", "Metformin", "Amiodarone", "Linezolid", "Digoxin", "Abacavir"]


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
def whole(corpus, tmp_path_factory, shared_ray):
    """(root, manifest) of an undisturbed run."""
    root = tmp_path_factory.mktemp("whole")
    return root, index([corpus], str(root), SETTINGS, Reporter(quiet=True))


def files_of(root):
    store = Store(str(root))
    return {
        name: store.sha256(name) for name in store.files("builds") + store.files("segments") if "report" not in name
    }


def test_two_runs_write_the_same_bytes_and_the_third_has_nothing_to_do(corpus, whole, tmp_path, monkeypatch, capsys):
    """The second run reads the file in ranges, by several tasks."""
    root, done = whole
    with monkeypatch.context() as small:
        small.setattr("ray_jobs.given.look", partial(look, range_bytes=300))
        small.setattr("ray_jobs.pipeline.BYTES_PER_READ", 300)
        index([corpus], str(tmp_path / "b"), SETTINGS, Reporter(quiet=True))
    one, two = files_of(root), files_of(tmp_path / "b")
    readings = {name for name in two if "/done/read-" in name}
    assert len(readings) > 2
    assert {n: two[n] for n in two if n not in readings} == {n: one[n] for n in one if "/done/read-" not in n}
    assert done.counts.documents == len(TOPICS)
    assert done.counts.triples > 0
    store = Store(str(root))
    assert manifest.verify(store, done) == []
    assert not store.files("work")
    page = store.read(layout.report(done.build_id).replace(".json", ".html")).decode()
    assert "extract and encode" in page
    assert "<td>liver</td>" in page
    assert "<script" not in page
    start = time.monotonic()
    again = index([corpus], str(root), SETTINGS, Reporter())
    assert again == done
    assert "nothing to do" in capsys.readouterr().err
    assert time.monotonic() - start < 30


def test_a_killed_job_goes_on_where_it_was(corpus, whole, tmp_path):
    config = tmp_path / "c.yaml"
    config.write_text("build: {shards: 3}\n")
    root = tmp_path / "killed"
    command = [sys.executable, "-m", "ray_jobs.index", "--corpus", corpus, "--root", str(root), "--config", str(config)]
    job = subprocess.Popen(command, start_new_session=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        end = time.monotonic() + 240
        while not list(root.glob("segments/*/done/extract-*")):
            assert job.poll() is None, "the job ended before it could be killed"
            assert time.monotonic() < end
            time.sleep(0.05)
    finally:
        kill(job)
    with pytest.raises(NotFound, match="no index"):
        manifest.read(Store(str(root)))
    finished = {path: path.stat().st_mtime_ns for path in root.glob("segments/*/done/*")}
    resumed = subprocess.run(command, check=False, capture_output=True, text=True)
    assert resumed.returncode == 0, resumed.stderr
    assert json.loads(resumed.stdout)["documents"] == len(TOPICS)
    assert files_of(root) == files_of(whole[0])
    assert all(path.stat().st_mtime_ns == then for path, then in finished.items())


def test_one_bad_document_is_a_record_and_an_unusable_corpus_publishes_nothing(corpus, tmp_path):
    folder = tmp_path / "mixed"
    folder.mkdir()
    (folder / "good.jsonl").write_bytes(Path(corpus).read_bytes())
    (folder / "line3.jsonl").write_text(
        '{"id":"a","text":"Iron is a metal."}\n{"id":"b","text":"Lead is a metal."}\n{"id": oops}\n'
    )
    (folder / "empty.txt").write_text("  \n")
    (folder / "latin.txt").write_bytes(b"caf\xe9 au lait " * 5)
    (folder / "cut.jsonl.gz").write_bytes(gzip.compress(Path(corpus).read_bytes() * 50)[:-20])
    (folder / "dangling.txt").symlink_to(folder / "nowhere.txt")
    root = folder / "index"  # inside the corpus: a second run must not read the first one's files
    done = index([str(folder)], str(root), SETTINGS, Reporter(quiet=True))
    assert index([str(folder)], str(root), SETTINGS, Reporter(quiet=True)) == done
    store = Store(str(root))
    rows = inspection.errors(store, done)
    assert done.counts.documents >= len(TOPICS) + 2
    assert done.counts.errors == len(rows)
    by_file = {row["source"].rpartition("/")[2]: row["reason"] for row in rows}
    assert set(by_file) >= {"line3.jsonl", "empty.txt", "latin.txt", "cut.jsonl.gz", "dangling.txt"}
    assert "Line 3" in by_file["line3.jsonl"]

    bad = tmp_path / "bad"
    bad.mkdir()
    (bad / "x.bin").write_bytes(bytes(range(256)))
    with pytest.raises(BadInput, match=r"No document could be used; nothing was published.*\n.*x\.bin"):
        index([str(bad)], str(tmp_path / "none"), SETTINGS, Reporter(quiet=True))
    store = Store(str(tmp_path / "none"))
    assert manifest.current(store) is None
    assert not store.exists("LEASE")
    left = retention.garbage(store, keep=1)
    assert set(left.unfinished) == set(left.files) == set(store.files("")) != set()
    retention.collect(store, left)
    assert store.files("") == []


def test_shards_and_parts_depend_on_the_corpus_alone():
    from hybrid_ir.corpus.source import FileRange

    files = [FileRange(path=f"f{i:03d}", size=1_500_000) for i in range(60)]
    assert shard_count(BuildSettings(), files) == 172
    assert shard_count(BuildSettings(shards=7), files) == 7
    assert shard_count(BuildSettings(), []) == 1
    parts = read_parts(files)
    assert [file for _, group in parts for file in group] == files
    assert len({name for name, _ in parts}) == len(parts) == 3


def test_the_layout_names_what_the_manifest_lists(whole):
    root, done = whole
    on_disk = {n for n in files_of(root) if "/done/" not in n and not n.endswith("manifest.json")}
    assert on_disk == set(done.all_files())
    assert layout.manifest(done.build_id) in Store(str(root)).files("builds")
