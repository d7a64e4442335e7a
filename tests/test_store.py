import numpy as np
import pyarrow as pa
import pytest

from hybrid_ir.errors import BadInput, Damaged, NotFound
from hybrid_ir.index import layout
from hybrid_ir.store import Store


def test_what_is_written_is_read_and_its_entry_is_true(tmp_path):
    store = Store(str(tmp_path))
    entry = store.write("a/b.txt", b"abc")
    assert store.read("a/b.txt") == b"abc"
    assert store.sha256("a/b.txt") == (entry.bytes, entry.sha256)
    table = pa.table({"x": list(range(1000))})
    assert store.write_table("t.parquet", table).rows == 1000
    assert store.read_table("t.parquet").equals(table)
    assert store.read_table("t.parquet", where=[("x", "=", 700)])["x"].to_pylist() == [700]
    store.write_array("n.npy", np.arange(5))
    assert store.array("n.npy").tolist() == [0, 1, 2, 3, 4]
    store.write_array("empty.npy", np.zeros((0, 3), np.float32))
    assert store.array("empty.npy").shape == (0, 3)
    assert store.files("a") == ["a/b.txt"]
    assert store.files("no-such-folder") == []


def test_a_write_that_fails_leaves_the_old_file_and_no_litter(tmp_path, monkeypatch):
    store = Store(str(tmp_path))
    store.write("x", b"old")

    def full(_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.fsync", full)
    with pytest.raises(OSError, match="No space"):
        store.write("x", b"new")
    assert store.read("x") == b"old"
    assert [path.name for path in tmp_path.iterdir()] == ["x"]


def test_missing_and_damaged_files_are_named(tmp_path):
    store = Store(str(tmp_path))
    with pytest.raises(NotFound, match="nothing"):
        store.read("nothing")
    for name, read in (("p.parquet", store.read_table), ("n.npy", store.array)):
        with pytest.raises(Damaged, match=name):
            read(name)
        (tmp_path / name).write_bytes(b"half a fi")
        with pytest.raises(Damaged, match=name):
            read(name)
    (tmp_path / "file").write_text("x")
    with pytest.raises(BadInput, match="is a file"):
        Store(str(tmp_path / "file"))
    with pytest.raises(BadInput, match="nowhere"):
        Store("nowhere://bucket/x")


def test_the_same_table_gives_the_same_bytes(tmp_path):
    store = Store(str(tmp_path))
    table = pa.table({"a": ["x", "y"] * 500, "b": list(range(1000))})
    assert store.write_table("one.parquet", table) == store.write_table("two.parquet", table)


def test_shards_depend_on_the_id_alone_and_spread():
    counts = [0] * 8
    for number in range(4000):
        counts[layout.shard_of(f"doc-{number}", 8)] += 1
    assert min(counts) > 400
    assert layout.shard_of("29768149", 8) == layout.shard_of("29768149", 8)
