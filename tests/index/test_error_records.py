"""Errors of documents and files that were since put right are over; kinds of error are told apart by what matters."""

import pyarrow as pa

from hybrid_ir.index import error_records, inspection, layout, tables
from hybrid_ir.index.manifest import Segment
from hybrid_ir.index.plan import TOMBSTONES
from hybrid_ir.store import FileEntry, Store

SHARDS = 3


def segment(store, name, documents=(), errors=()):
    """``documents``: (id, file); ``errors``: (stage, subject, file, reason)."""
    files = {}
    for shard in range(SHARDS):
        held = [(i, f) for i, f in documents if layout.shard_of(i, SHARDS) == shard]
        rows = [{**dict.fromkeys(tables.DOCUMENTS.names), "id": i, "source": f} for i, f in held]
        store.write_table(layout.shard(name, "documents", shard), pa.Table.from_pylist(rows, schema=tables.DOCUMENTS))
        for stage in error_records.STAGES:
            mine = [
                {"stage": s, "subject": subject, "source": file, "reason": reason}
                for s, subject, file, reason in errors
                if s == stage and layout.shard_of(subject, SHARDS) == shard
            ]
            file = layout.shard(name, f"errors-{stage}", shard)
            files[file] = store.write_table(file, pa.Table.from_pylist(mine, schema=tables.ERRORS))
    counts = (len(documents), 0, 0)
    return Segment(
        id=name,
        shards=SHARDS,
        chunks_per_shard=counts,
        dense_shards=0,
        documents=len(documents),
        errors=len(errors),
        files=files,
    )


def graves(*rows):
    return pa.Table.from_pylist(
        [{"segment": s, "document_id": d, "first_chunk": 0, "chunks": 1} for s, d in rows], schema=TOMBSTONES
    )


def subjects(found):
    return sorted(row["subject"] for _, row in found)


def test_an_error_is_over_when_its_document_was_replaced_deleted_or_read_after_all(tmp_path):
    store = Store(str(tmp_path))
    one = segment(
        store,
        "one",
        [("replaced", "f"), ("deleted", "f"), ("kept", "f")],
        [("extract", f"{name}#2", "f", "no answer") for name in ("replaced", "deleted", "kept")]
        + [("read", name, "f", "has no text") for name in ("empty", "later")]
        + [("encode", "replaced#0", "f", "NaN"), ("encode", "kept#0", "f", "NaN")],
    )
    assert len(error_records.live(store, [one], None)) == 7
    two = segment(store, "two", [("replaced", "g"), ("later", "g")], [("extract", "later#0", "g", "no answer")])
    dead = graves(("one", "replaced"), ("one", "deleted"))
    found = error_records.live(store, [one, two], dead)
    assert subjects(found) == ["empty", "kept#0", "kept#2", "later#0"]
    assert {stage for stage, row in found if row["subject"] == "empty"} == {"read"}


def test_an_error_of_a_file_is_over_when_the_file_was_read_again(tmp_path):
    store = Store(str(tmp_path))
    bad = [("read", file, file, f"Line 3 of {file} is not valid JSON") for file in ("a", "b", "c")]
    one = segment(store, "one", [("x", "a")], bad)
    two = segment(store, "two", [("y", "a")], [("read", "b", "b", "Line 4 of b is not valid JSON")])
    found = error_records.live(store, [one, two], graves())
    assert sorted(row["reason"][:11] for _, row in found) == ["Line 3 of c", "Line 4 of b"]


def test_where_to_look_can_be_narrowed_and_files_without_rows_are_not_opened(tmp_path):
    store = Store(str(tmp_path))
    names = [f"d{i}" for i in range(12)]
    one = segment(store, "one", [], [("read", name, "f", "has no text") for name in names])
    parts = [error_records.live(store, [one], None, lambda _, n, k=k: n == k) for k in range(SHARDS)]
    assert sorted(name for part in parts for name in subjects(part)) == sorted(names)
    assert all(parts)
    nothing = {file: FileEntry(rows=0, bytes=0, sha256="") for file in one.files}
    assert error_records.live(store, [one.model_copy(update={"files": nothing})], None) == []


def test_kinds_of_error_do_not_differ_in_names_files_lines_and_sizes():
    def row(reason, subject="x", source="corpus/a b.jsonl", stage="read"):
        return {"stage": stage, "reason": reason, "subject": subject, "source": source}

    rows = [
        row("Line 3 of corpus/a b.jsonl is not valid JSON: Expecting value at column 8."),
        row("Line 71 of /data/b.jsonl is not valid JSON: Expecting value at column 12.", source="/data/b.jsonl"),
        row("Line 5 of corpus/a b.jsonl is not valid JSON: Extra data at column 2."),
        row("corpus/a b.jsonl: Document 'd 1' (line 2) has no text.", "d 1"),
        row("/data/b.jsonl: Document 'd#2' (line 9) has no text.", "d#2", "/data/b.jsonl"),
        row(
            "Document id 'd3' is used twice with different content: s3://b/x, line 1 is kept, ./y.jsonl, line 2 is …",
            "d3",
        ),
        row(
            "Document id 'd4' is used twice with different content: /a/x.txt, line 7 is kept, a/y.jsonl, line 2 is …",
            "d4",
        ),
        row('Line 4 of corpus/a b.jsonl: field "text" is a JSON list and/or empty.'),
        row("timed out after 30.5 s", "d5#1", stage="extract"),
        row("timed out after 60 s", "d6#0", stage="extract"),
    ]
    kinds = inspection.error_kinds(rows)
    assert [(kind.count, kind.reason) for kind in kinds] == [
        (2, "timed out after N s"),
        (2, "Document id ID is used twice with different content: FILE, line N is kept, FILE, line N is …"),
        (2, "FILE: Document ID (line N) has no text."),
        (2, "Line N of FILE is not valid JSON: Expecting value at column N."),
        (1, 'Line 4 of corpus/a b.jsonl: field "text" is a JSON list and/or empty.'),
        (1, "Line 5 of corpus/a b.jsonl is not valid JSON: Extra data at column 2."),
    ]
    assert kinds[0].example == "d5#1 (corpus/a b.jsonl): timed out after 30.5 s"
    assert kinds[4].example == "x (corpus/a b.jsonl)"
