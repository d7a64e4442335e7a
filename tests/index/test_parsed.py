"""From reading tasks to shards: nothing is read twice, and how files were divided leaves no trace."""

import json

import pytest

from hybrid_ir.corpus.ranges import look
from hybrid_ir.corpus.source import FileRange
from hybrid_ir.index import layout, parsed, shard
from hybrid_ir.index.shard import SegmentPlan
from hybrid_ir.records import SourceFile
from hybrid_ir.settings import BuildSettings, ReaderSettings
from hybrid_ir.store import Store


class CountingStore(Store):
    """Remembers which tables were opened."""

    def __init__(self, uri):
        super().__init__(uri)
        self.opened = []

    def read_table(self, name, columns=None, where=None):
        self.opened.append(name)
        return super().read_table(name, columns, where)


@pytest.fixture
def corpus(tmp_path):
    path = tmp_path / "notes.jsonl"
    lines = [json.dumps({"id": f"d{i}", "title": "β", "text": f"Bats number {i}. " * (i % 40 + 1)}) for i in range(900)]
    lines[100:100] = ["{oops", "", json.dumps({"text": "This one has no id."})]
    path.write_text("\r\n".join(lines))
    return SourceFile(path=str(path), size=path.stat().st_size)


def made(root, ranges, shards, tasks):
    """The plan after reading by so many tasks, and chunking."""
    plan = SegmentPlan(CountingStore(str(root)), "seg", shards, BuildSettings())
    per_task = -(-len(ranges) // tasks)
    for task, first in enumerate(range(0, len(ranges), per_task)):
        shard.read(plan, f"part{task}", ranges[first : first + per_task])
    for group in range(parsed.group_count(shards)):
        shard.chunk(plan, group)
    return plan


def test_however_a_file_is_divided_the_shards_get_the_same_bytes(corpus, tmp_path, monkeypatch):
    roots = {}
    for size, tasks, held in ((10**9, 1, 10**9), (10_000, 7, 10**9), (3_000, 3, 5_000), (1_000, 100, 10**9)):
        monkeypatch.setattr(parsed, "CHARACTERS_AT_A_TIME", held)
        _, ranges = look(corpus, ReaderSettings(), size)
        plan = made(tmp_path / f"{size}", ranges, 5, tasks)
        names = [name for name in plan.store.files("segments") if "/done/read-" not in name]
        roots[size] = {name: plan.store.sha256(name) for name in names}
    one = roots[10**9]
    assert len(one) == 5 * 5
    assert all(other == one for other in roots.values())
    errors = [row for n in range(5) for row in plan.store.read_table(layout.shard("seg", "errors-read", n)).to_pylist()]
    assert ["Line 101 of" in row["reason"] for row in errors] == [True]
    ids = {i for n in range(5) for i in plan.store.read_table(layout.shard("seg", "documents", n))["id"].to_pylist()}
    assert {"d0", "d899"} < ids
    assert any(i.endswith("notes:103") for i in ids)


def test_every_piece_is_written_once_and_read_once(corpus, tmp_path, monkeypatch):
    monkeypatch.setattr(parsed, "SHARDS_PER_GROUP", 4)
    _, ranges = look(corpus, ReaderSettings(), corpus.size // 20)
    shards = 32
    plan = made(tmp_path / "root", ranges, shards, tasks=20)
    pieces = plan.store.files("work")
    assert sorted(plan.store.opened) == pieces
    assert len(pieces) <= 20 * parsed.group_count(shards) == 20 * 8 < 20 * shards
    before = len(plan.store.opened)
    shard.chunk(plan, 3)  # all is done
    plan.store.local(layout.marker("seg", "chunk", 21)).unlink()
    expected = plan.store.sha256(layout.shard("seg", "chunks", 21))
    results = shard.chunk(plan, 5)
    assert [result.shard for result in results if not result.skipped] == [21]
    assert plan.store.sha256(layout.shard("seg", "chunks", 21)) == expected
    assert plan.store.opened[before:] == [name for name in pieces if "group-00005" in name]


def test_a_file_without_records_is_read_and_leaves_nothing(tmp_path):
    (tmp_path / "a.json").write_text("[]")
    plan = made(tmp_path / "root", [FileRange(path=str(tmp_path / "a.json"), size=2)], 2, 1)
    assert plan.store.files("work") == []
    assert [r.rows for r in shard.chunk(plan, 0)] == [0, 0]
