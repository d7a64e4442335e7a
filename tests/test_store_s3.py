"""A root in an object store: the real client against a real server whose answers can be made to fail."""

import multiprocessing
import os
import pickle

import faiss
import numpy as np
import pyarrow as pa
import pytest
from object_store import ObjectStore

from hybrid_ir import remote_errors
from hybrid_ir.errors import BadInput, Conflict, Damaged, NotFound, Unavailable
from hybrid_ir.index import manifest
from hybrid_ir.settings import BuildSettings
from hybrid_ir.store import Store

ROWS = 5000
LARGE = 40_000_000
"""Bytes; three parts."""


@pytest.fixture(scope="module")
def server():
    with ObjectStore() as server:
        server.make_bucket("medical")
        yield server


@pytest.fixture
def s3(server, monkeypatch, tmp_path):
    server.reset()
    for name, value in server.environment(tmp_path / "cache").items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(remote_errors, "FIRST_PAUSE_S", 0.01)
    return server


@pytest.fixture
def store(s3, tmp_path):
    return Store(f"s3://medical/{tmp_path.name}")


def test_every_method_says_the_same_as_on_a_folder(store, tmp_path):
    told = []
    for root in (store, Store(str(tmp_path / "folder"))):
        table = pa.table({"x": list(range(ROWS)), "text": [f"row {i}" for i in range(ROWS)]})
        entries = [
            root.write("a/b.txt", b"abc"),
            root.write("a/.hidden", b"not listed"),
            root.write_table("a/t.parquet", table),
            root.write_array("n.npy", np.arange(ROWS)),
            root.write_array("empty.npy", np.zeros((0, 3), np.float32)),
            root.write_with("d.faiss", lambda path: faiss.write_index(faiss.IndexFlatIP(4), path), 0),
        ]
        assert root.read("a/b.txt") == b"abc"
        assert root.read_table("a/t.parquet").equals(table)
        assert root.read_table("a/t.parquet", ["text"], [("x", "=", 700)]).to_pylist() == [{"text": "row 700"}]
        assert root.open_parquet("a/t.parquet").read_row_group(1)["x"][0].as_py() == 256
        assert root.array("n.npy").tolist() == list(range(ROWS))
        assert root.array("empty.npy").shape == (0, 3)
        assert faiss.read_index(str(root.local("d.faiss"))).d == 4
        assert pickle.loads(pickle.dumps(root)).read("a/b.txt") == b"abc"  # noqa: S301
        told.append(
            (
                entries,
                root.files("a"),
                root.files("no-such-folder"),
                [root.exists(name) for name in ("a/b.txt", "a", "a/b", "c")],
                [root.sha256(name) for name in ("a/b.txt", "a/t.parquet")],
                [root.size(name) for name in ("a/t.parquet", "none")],
            )
        )
        root.delete("a/b.txt")
        root.delete("a/b.txt")
        assert root.files("a") == ["a/t.parquet"]
        root.remove("a")
        root.remove("a")
        assert root.files("a") == []
        assert root.exists("n.npy")
        for read in (root.open_parquet, root.array, root.sha256, root.read_table):
            with pytest.raises(Damaged, match=r"none: the file is missing"):
                read("none")
        with pytest.raises(Damaged, match="none"):
            root.read_table("none", where=[("x", "=", 1)])
        with pytest.raises(NotFound, match="none"):
            root.read("none")
        root.write("half.parquet", b"half a fi")
        with pytest.raises(Damaged, match="half"):
            root.open_parquet("half.parquet")
    assert told[0] == told[1]


def test_a_root_can_be_the_bucket_itself(s3):
    s3.make_bucket("whole-bucket")
    store = Store("s3://whole-bucket/")
    store.write("a/b", b"1")
    assert store.files("a") == ["a/b"]
    assert store.files("") == ["a/b"]
    assert store.path("a/b") == "s3://whole-bucket/a/b"


@pytest.mark.slow
def test_many_files_are_listed_and_removed_by_the_page(s3, store):
    names = sorted(f"a/{number:05d}" for number in range(2100))
    for name in names:
        store.write(name, b"")
    s3.reset()
    s3.every_third(429, "TooManyRequests")
    assert store.files("a") == names
    store.remove("a")
    s3.fault = None
    assert store.files("a") == []
    assert len(s3.requests) < 20


def test_a_large_file_goes_in_parts_and_comes_back_whole(s3, store):
    data = np.random.default_rng(0).bytes(25_000_000)
    entry = store.write("large", data)
    assert sum("partNumber=" in request for request in s3.requests) == 2
    assert store.sha256("large") == (entry.bytes, entry.sha256) == (len(data), entry.sha256)
    assert store.local("large").read_bytes() == data
    store.write("small", b"1")
    assert s3.requests[-1].startswith("PUT ")
    assert "?" not in s3.requests[-1]  # one request


def test_a_large_file_whose_middle_part_is_refused_never_appears(s3, store):
    s3.fault = lambda method, path, query: (403, "AccessDenied") if "partNumber=2" in query else None
    with pytest.raises(BadInput, match="access denied"):
        store.write("large", bytes(25_000_000))
    s3.fault = None
    assert s3.requests[-1].startswith("DELETE")  # the other parts are not left to be paid for
    assert not store.exists("large")


def test_a_large_file_whose_last_answer_was_lost_is_whole(s3, store):
    def lose_one(method, path, query):
        if method == "POST" and "uploadId" in query:
            s3.fault = None
            return "lost"
        return None

    s3.fault = lose_one
    store.write("large", bytes(LARGE))
    assert s3.failed == 1
    assert store.size("large") == LARGE


@pytest.mark.parametrize("answer", [(503, "SlowDown"), (429, "TooManyRequests"), (500, "InternalError"), ("reset",)])
def test_every_third_request_fails_and_nobody_notices(s3, store, answer):
    s3.every_third(*answer)
    table = pa.table({"x": list(range(ROWS))})
    for number in range(5):
        assert store.write(f"a/{number}", b"abc").bytes == 3
        assert store.read(f"a/{number}") == b"abc"
        assert store.exists(f"a/{number}")
    store.write_table("t.parquet", table)
    assert store.read_table("t.parquet").equals(table)
    assert store.read_table("t.parquet", where=[("x", ">", 4990)]).num_rows == 9
    store.write("large", bytes(LARGE))
    assert store.sha256("large")[0] == LARGE
    assert store.local("large").stat().st_size == LARGE
    version = store.read_version("a/0")[1]
    assert store.replace("a/0", b"new", version)
    assert store.replace("a/9", b"new", None)
    assert len(store.files("a")) == 6
    store.delete("a/9")
    store.remove("a")
    assert store.files("a") == []
    assert s3.failed >= 10
    print(f"{answer}: {s3.failed} of {len(s3.requests)} requests failed")


def test_an_answer_cut_in_the_middle_is_read_again(s3, store):
    data = np.random.default_rng(0).bytes(3_000_000)
    store.write("x", data)
    store.write_table("t.parquet", pa.table({"x": list(range(ROWS))}))
    cuts = iter([True, True, False] * 20)
    s3.fault = lambda method, *_: "cut" if method == "GET" and next(cuts) else None
    assert store.read("x") == data
    assert store.local("x").read_bytes() == data
    assert store.read_table("t.parquet").num_rows == ROWS
    assert store.sha256("x")[0] == len(data)
    assert s3.failed >= 4


def test_tries_end(s3, store, monkeypatch):
    monkeypatch.setattr(remote_errors, "TRIES", 3)
    s3.fault = lambda *_: (503, "SlowDown")
    for action in (store.read, store.exists, store.files, store.sha256, store.local):
        with pytest.raises(Unavailable, match=r"in 3 tries .*(503|SlowDown)"):
            action("x")
    with pytest.raises(Unavailable, match="run the same command again"):
        store.write("x", b"")
    s3.fault = None
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:9")
    with pytest.raises(Unavailable, match=r"at http://127\.0\.0\.1:9 .*Check the network and AWS_ENDPOINT_URL"):
        Store("s3://medical/x").read("x")


def test_faults_that_stay_are_sentences_at_once(s3, store, monkeypatch):
    nowhere = Store("s3://no-such-bucket/x")
    actions = [nowhere.read, nowhere.exists, nowhere.files, nowhere.local, nowhere.sha256, manifest.current]
    for action in actions:
        with pytest.raises(NotFound, match=r"s3://no-such-bucket: no such bucket at .*Create it"):
            action(nowhere if action is manifest.current else "x")
    for write in (lambda: nowhere.write("x", b""), lambda: nowhere.replace("x", b"", None)):
        with pytest.raises(NotFound, match="no such bucket"):
            write()
    s3.reset()
    s3.fault = lambda *_: (403, "AccessDenied")
    for action in (store.read, store.exists, store.files, store.open_parquet, store.delete):
        with pytest.raises(BadInput, match=r"access denied .*Check the credentials"):
            action("x")
    assert s3.failed == 5  # each asked once
    s3.fault = None
    monkeypatch.delenv("AWS_ACCESS_KEY_ID")
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", os.devnull)
    with pytest.raises(BadInput, match=r"no credentials .*Set AWS_ACCESS_KEY_ID"):
        Store("s3://medical/x").read("x")
    monkeypatch.setenv("AWS_PROFILE", "none-such")
    with pytest.raises(BadInput, match="AWS_PROFILE"):
        Store("s3://medical/x").read("x")


def test_a_profile_brings_endpoint_region_and_credentials(s3, store, monkeypatch, tmp_path):
    store.write("x", b"abc")
    (tmp_path / "config").write_text(f"[profile lab]\nregion = eu-west-1\nendpoint_url = {s3.url}\n")
    (tmp_path / "credentials").write_text("[lab]\naws_access_key_id = k\naws_secret_access_key = s\n")
    monkeypatch.setenv("AWS_CONFIG_FILE", str(tmp_path / "config"))
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(tmp_path / "credentials"))
    monkeypatch.setenv("AWS_PROFILE", "lab")
    for name in ("AWS_ENDPOINT_URL", "AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_DEFAULT_REGION"):
        monkeypatch.delenv(name)
    other = Store(store.uri)
    assert other.read("x") == b"abc"
    other.write("y", b"2")
    assert other.files("") == ["x", "y"]


def test_addresses_that_cannot_be_roots():
    for uri, words in {
        "gs://bucket/x": "a folder or s3",
        "s3:///x": "s3://bucket/prefix",
        "s3://bucket/x?endpoint_override=y": "AWS_ENDPOINT_URL",
    }.items():
        with pytest.raises(BadInput, match=words):
            Store(uri)
    with pytest.raises(BadInput, match="Keys do not belong in an address") as found:
        Store("s3://key:secret@bucket/x")
    assert "secret" not in str(found.value)


def test_copies_are_made_once_and_never_stale(s3, store):
    store.write("d/x.npy", b"one")
    path = store.local("d/x.npy")
    assert store.local("d/x.npy") == path
    assert sum(request.startswith("GET") for request in s3.requests) == 1
    store.write("d/x.npy", b"two")
    assert store.local("d/x.npy").read_bytes() == b"two"
    assert path.read_bytes() == b"one"  # one that is being read stays
    Store("s3://medical/other").write("d/x.npy", b"one")
    assert Store("s3://medical/other").local("d/x.npy") != path


def test_a_copy_that_fails_or_is_overtaken_is_not_kept(s3, store, monkeypatch, tmp_path):
    store.write("x", bytes(3_000_000))
    monkeypatch.setattr(remote_errors, "TRIES", 2)
    s3.fault = lambda method, *_: "cut" if method == "GET" else None
    with pytest.raises(Unavailable):
        store.local("x")
    kept = [path for path in (tmp_path / "cache").rglob("*") if path.is_file() and not path.name.endswith(".lock")]
    assert kept == []

    def overtaken(method, *_):
        if method == "GET":
            s3.fault = None
            return (412, "PreconditionFailed")
        return None

    s3.fault = overtaken
    assert store.local("x").stat().st_size == 3_000_000


def _copy(uri, barrier, sizes):
    barrier.wait()
    sizes.put(Store(uri).local("x").stat().st_size)


@pytest.mark.slow
def test_several_processes_make_one_copy(s3, store):
    store.write("x", bytes(5_000_000))
    spawn = multiprocessing.get_context("spawn")
    barrier, sizes = spawn.Barrier(3), spawn.Queue()
    processes = [spawn.Process(target=_copy, args=(store.uri, barrier, sizes)) for _ in range(3)]
    for process in processes:
        process.start()
    assert [sizes.get(timeout=60) for _ in processes] == [5_000_000] * 3
    for process in processes:
        process.join()
    assert sum(request.startswith("GET") for request in s3.requests) == 1


def test_compare_and_swap(store, tmp_path):
    for root in (store, Store(str(tmp_path / "folder"))):
        assert root.read_version("x") == (None, None)
        assert root.replace("x", b"1", None)
        assert not root.replace("x", b"2", None)
        data, version = root.read_version("x")
        assert data == b"1"
        assert root.replace("x", b"2", version)
        assert not root.replace("x", b"3", version)
        assert root.read("x") == b"2"
        assert not root.replace("absent", b"3", version)
        assert not root.exists("absent")
        assert root.delete_version("x", root.read_version("x")[1])
        assert not root.exists("x")
    assert root.replace("x", b"another", None)
    assert not root.delete_version("x", version)  # the folder; the S3 server of the tests knows no such condition
    assert root.exists("x")


def test_a_swap_whose_answer_was_lost_is_known_to_have_been_ours(s3, store):
    def lose_one(method, *_):
        if method == "PUT":
            s3.fault = None
            return "lost"
        return None

    s3.fault = lose_one
    assert store.replace("x", b"mine", None)
    s3.fault = lose_one
    assert store.replace("x", b"mine too", store.read_version("x")[1])
    assert store.read("x") == b"mine too"
    assert s3.failed == 2


def build(name):
    return manifest.Manifest(
        build_id=name,
        settings=BuildSettings(),
        fingerprints=manifest.Fingerprints(extractor={}, chunk_encoder={}, entity_encoder={}),
        segments=(),
        counts=manifest.Counts(**dict.fromkeys(manifest.Counts.model_fields, 0)),
    )


def test_a_build_published_meanwhile_is_not_overwritten(store, tmp_path):
    for root in (store, Store(str(tmp_path / "folder"))):
        assert manifest.current(root) is None
        manifest.publish(root, build("a"), None)
        manifest.publish(root, build("b"), "a")
        with pytest.raises(Conflict, match=r"build b was published while this job ran, so c was not.*same command"):
            manifest.publish(root, build("c"), "a")
        assert manifest.current(root) == "b"
        assert manifest.read(root, "c").build_id == "c"  # kept, so that the next run only publishes
        manifest.publish(root, build("c"), "b")
        manifest.publish(root, build("c"), "b")  # what was wanted is so
        assert manifest.current(root) == "c"
