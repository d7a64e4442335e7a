"""What jobs that failed left behind: the lease is gone, the rest is counted and freed."""

import json

import pytest
from typer.testing import CliRunner

from hybrid_ir.cli import app
from hybrid_ir.errors import BadInput, Conflict, NotFound
from hybrid_ir.index import layout, manifest, retention
from hybrid_ir.index.manifest import Counts, Fingerprints, Manifest, Segment
from hybrid_ir.lease import held
from hybrid_ir.settings import BuildSettings, Settings
from hybrid_ir.store import Store


@pytest.fixture
def store(tmp_path):
    return Store(str(tmp_path / "root"))


def left_behind(store):
    """A job that failed after reading: what is in its root then."""

    def job():
        with held(store):
            for name in ("work/s/parsed/group-00000/p-00000.parquet", layout.marker("s", "read-p", 0)):
                store.write(name, b"0123456789")
            raise BadInput("the corpus cannot be used")

    with pytest.raises(BadInput):
        job()


def gc(store, *more):
    return CliRunner().invoke(app, ["gc", "--root", store.uri, *more])


def test_a_failed_job_leaves_no_lease_and_gc_frees_the_rest_and_says_so(store):
    left_behind(store)
    assert not store.exists("LEASE")
    before = store.files("")
    assert len(before) == 2
    said = gc(store)
    assert said.exit_code == 0
    assert "kept builds: none; builds to go: none; 2 files, 20 bytes" in said.output
    assert "2 of the files were left by jobs that did not finish" in said.output
    assert store.files("") == before
    assert json.loads(gc(store, "--json").stdout)["unfinished"] == before
    with held(store):
        assert isinstance(gc(store, "--yes").exception, Conflict)
        assert set(before) < set(store.files(""))
    assert gc(store, "--yes").exit_code == 0
    assert store.files("") == []
    assert isinstance(gc(store).exception, NotFound)


def build(store, build_id, parent, segment_id):
    """Write a build over one segment of one file."""
    name = layout.shard(segment_id, "chunks", 0)
    segment = Segment(
        id=segment_id,
        shards=1,
        chunks_per_shard=(0,),
        dense_shards=0,
        documents=0,
        errors=0,
        files={name: store.write(name, b"x")},
    )
    made = Manifest(
        build_id=build_id,
        parent=parent,
        settings=BuildSettings(),
        fingerprints=Fingerprints(extractor={}, chunk_encoder={}, entity_encoder={}),
        segments=(segment,),
        counts=Counts.model_validate(dict.fromkeys(Counts.model_fields, 0)),
    )
    store.write(layout.manifest(build_id), made.model_dump_json().encode())
    return made


def test_what_builds_need_is_not_left_over(store):
    left_behind(store)
    old, new = build(store, "b1", None, "s1"), build(store, "b2", "b1", "s2")
    with pytest.raises(BadInput, match=r"whole builds \(b1, b2\) and none is published"):
        retention.garbage(store, 1)
    manifest.publish(store, new, None)
    found = retention.garbage(store, keep=1)
    assert found.builds == ("b1",)
    assert sorted(found.unfinished) == sorted(name for name in found.files if name.split("/")[1] == "s")
    assert set(found.files) - set(found.unfinished) == {layout.manifest("b1"), *old.all_files()}
    retention.collect(store, found)
    assert manifest.verify(store, new) == []
    assert retention.garbage(store, keep=1).files == {}


def test_a_second_writer_is_refused_before_the_corpus_is_looked_at(store):
    from hybrid_ir.progress import Reporter
    from ray_jobs.index import index

    with held(store), pytest.raises(Conflict, match=r"is being written by .* Wait for it with --wait"):
        index(["/nowhere/at/all"], store.uri, Settings(), Reporter(quiet=True))
    with pytest.raises(BadInput, match="/nowhere/at/all"):
        index(["/nowhere/at/all"], store.uri, Settings(), Reporter(quiet=True))
