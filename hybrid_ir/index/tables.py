"""Records <-> Parquet tables, one schema for each kind of file in a segment."""

from __future__ import annotations

from collections.abc import Iterable

import pyarrow as pa

from hybrid_ir.records import Chunk, Document, ErrorRecord

CHUNKS = pa.schema(
    [
        ("id", pa.string()),
        ("document_id", pa.string()),
        ("position", pa.int32()),
        ("title", pa.string()),
        ("section", pa.string()),
        ("kind", pa.string()),
        ("text", pa.string()),
        ("start", pa.int64()),
        ("end", pa.int64()),
        ("source", pa.string()),
        ("locator", pa.string()),
        ("year", pa.int32()),
    ]
)

DOCUMENTS = pa.schema(
    [
        ("id", pa.string()),
        ("title", pa.string()),
        ("source", pa.string()),
        ("locator", pa.string()),
        ("pmid", pa.string()),
        ("doi", pa.string()),
        ("year", pa.int32()),
        ("references", pa.list_(pa.string())),
        ("first_chunk", pa.int64()),
        ("chunks", pa.int32()),
    ]
)
"""``first_chunk`` is a row of the same shard's chunk table."""

MENTIONS = pa.schema([("chunk", pa.int64()), ("chunk_id", pa.string()), ("name", pa.string())])
"""``chunk`` is a row of the same shard's chunk table."""

TRIPLES = pa.schema(
    [
        ("chunk", pa.int64()),
        ("chunk_id", pa.string()),
        ("head", pa.string()),
        ("relation", pa.string()),
        ("tail", pa.string()),
        ("extractor", pa.string()),
    ]
)

ERRORS = pa.schema([("subject", pa.string()), ("source", pa.string()), ("stage", pa.string()), ("reason", pa.string())])

PARSED = pa.schema([("shard", pa.int32()), ("kind", pa.string()), ("record", pa.string())])
"""Documents, deletions and errors as JSON, between reading and chunking."""


def chunk_table(chunks: Iterable[Chunk]) -> pa.Table:
    return pa.Table.from_pylist([chunk.model_dump() for chunk in chunks], schema=CHUNKS)


def chunks_of(table: pa.Table) -> list[Chunk]:
    return [Chunk.model_validate(row) for row in table.to_pylist()]


def document_table(documents: Iterable[tuple[Document, int, int]]) -> pa.Table:
    """Each document with its first chunk's row and its number of chunks."""
    keep = [name for name in DOCUMENTS.names if name not in ("first_chunk", "chunks")]
    rows = [
        {**{name: getattr(document, name) for name in keep}, "first_chunk": first, "chunks": count}
        for document, first, count in documents
    ]
    return pa.Table.from_pylist(rows, schema=DOCUMENTS)


def error_table(errors: Iterable[ErrorRecord]) -> pa.Table:
    rows = sorted({(e.stage, e.source, e.subject, e.reason) for e in errors})
    names = ("stage", "source", "subject", "reason")
    return pa.Table.from_pylist([dict(zip(names, row, strict=True)) for row in rows], schema=ERRORS)
