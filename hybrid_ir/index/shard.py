"""The stages of one shard: parsed documents -> chunks -> mentions, triples and vectors.

A stage reads whole files and writes whole files, then a marker that says what it wrote.  Where
the marker stands the stage is done and is not done again, so a job that was killed goes on
where it was.  File names depend on the shard alone, so a task run twice overwrites itself.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from pydantic import Field

from hybrid_ir.corpus.chunker import chunk as chunk_document
from hybrid_ir.corpus.formats import read as read_file
from hybrid_ir.corpus.revisions import resolve
from hybrid_ir.index import computed, layout, parsed, tables
from hybrid_ir.records import Chunk, Deletion, Document, ErrorRecord, Record, SourceFile
from hybrid_ir.roles import Encoder, Extractor
from hybrid_ir.settings import BuildSettings
from hybrid_ir.store import FileEntry, Store

VERSION = 2
"""Raised when readers, chunker or these stages change what they write: old shards are then not taken for new ones."""


class StageResult(Record):
    """What a stage did to a shard; stored as its marker."""

    stage: str
    shard: int
    rows: int
    """Documents for ``chunk``, chunks for ``extract`` and ``encode``."""
    chunks: int = 0
    computed: int = 0
    """Chunks that a model was run on, the others' results being in the cache; not part of the marker."""
    errors: int = 0
    files: dict[str, FileEntry] = Field(default_factory=dict)
    skipped: bool = False
    """It was already done when this run came to it; not part of the marker."""


@dataclass(frozen=True)
class SegmentPlan:
    """Where a segment lies and how it is made; small enough to travel with every task."""

    store: Store
    segment_id: str
    shards: int
    settings: BuildSettings


def read(plan: SegmentPlan, part: str, files: Sequence[SourceFile]) -> StageResult:
    """Parse a few files, or a range of one, and lay their records out by shard (see ``parsed``)."""
    if (done := stage_done(plan, f"read-{part}", 0)) is not None:
        return done
    records = (record for file in files for record in read_file(file, plan.settings.reader))
    rows, errors = parsed.write(plan.store, plan.segment_id, plan.shards, part, records)
    return finish_stage(plan, StageResult(stage=f"read-{part}", shard=0, rows=rows, errors=errors))


def chunk(plan: SegmentPlan, group: int) -> list[StageResult]:
    """The chunks of a group's shards, by shard: their documents gathered from all parts, duplicates settled."""
    shards = parsed.shards_of(group, plan.shards)
    results = {shard: stage_done(plan, "chunk", shard) for shard in shards}
    missing = [shard for shard, done in results.items() if done is None]
    if missing:
        gathered = parsed.gather(plan.store, plan.segment_id, group)
        results |= {shard: _chunk(plan, shard, parsed.records_of(gathered, shard)) for shard in missing}
    return [result for result in results.values() if result is not None]


def _chunk(plan: SegmentPlan, shard: int, found: Sequence[parsed.Parsed]) -> StageResult:
    errors = [record for record in found if isinstance(record, ErrorRecord)]
    records = [record for record in found if not isinstance(record, ErrorRecord)]
    documents, duplicates = resolve(records)
    errors += duplicates
    deleted = {record.id for record in records if isinstance(record, Deletion)} - {d.id for d in documents}

    chunks: list[Chunk] = []
    rows: list[tuple[Document, int, int]] = []
    for document in documents:
        try:
            cut = chunk_document(document, plan.settings.chunker)
        except Exception as error:
            errors.append(_error(document.id, document.source, "chunk", error))
            continue
        if not cut:
            reason = "The document has no text."
            errors.append(ErrorRecord(subject=document.id, source=document.source, stage="chunk", reason=reason))
            continue
        rows.append((document, len(chunks), len(cut)))
        chunks += cut
    files = {
        name: plan.store.write_table(name, table)
        for name, table in (
            (_name(plan, "documents", shard), tables.document_table(rows)),
            (_name(plan, "chunks", shard), tables.chunk_table(chunks)),
            (_name(plan, "deletions", shard), pa.table({"id": pa.array(sorted(deleted), pa.string())})),
            (_name(plan, "errors-read", shard), tables.error_table(errors)),
        )
    }
    result = StageResult(
        stage="chunk", shard=shard, rows=len(rows), chunks=len(chunks), errors=len(errors), files=files
    )
    return finish_stage(plan, result)


def extract(plan: SegmentPlan, shard: int, extractor: Extractor) -> StageResult:
    """Mentions and triples of every chunk; a chunk that fails becomes an error record."""
    if (done := stage_done(plan, "extract", shard)) is not None:
        return done
    chunks = load_chunks(plan, shard)
    results, fresh = computed.extractions(plan.store, plan.segment_id, shard, plan.shards, chunks, extractor)
    mentions: list[dict[str, object]] = []
    triples: list[dict[str, object]] = []
    errors: list[ErrorRecord] = []
    kind = extractor.fingerprint["kind"]
    for row, (piece, found) in enumerate(zip(chunks, results, strict=True)):
        if isinstance(found, str):
            errors.append(ErrorRecord(subject=piece.id, source=piece.source, stage="extract", reason=found))
            continue
        where = {"chunk": row, "chunk_id": piece.id}
        mentions += [{**where, "name": name} for name in found["mentions"]]
        triples += [
            {**where, "head": head, "relation": relation, "tail": tail, "extractor": kind}
            for head, relation, tail in found["triples"]
        ]
    files = {
        name: plan.store.write_table(name, table)
        for name, table in (
            (_name(plan, "mentions", shard), pa.Table.from_pylist(mentions, schema=tables.MENTIONS)),
            (_name(plan, "triples", shard), pa.Table.from_pylist(triples, schema=tables.TRIPLES)),
            (_name(plan, "errors-extract", shard), tables.error_table(errors)),
        )
    }
    result = StageResult(
        stage="extract", shard=shard, rows=len(chunks), computed=fresh, errors=len(errors), files=files
    )
    return finish_stage(plan, result)


def encode(plan: SegmentPlan, shard: int, encoder: Encoder) -> StageResult:
    """One vector a chunk, shape (chunks, dimension), in the order of the chunk table."""
    if (done := stage_done(plan, "encode", shard)) is not None:
        return done
    chunks = load_chunks(plan, shard)
    vectors, fresh = computed.vectors(plan.store, plan.segment_id, shard, plan.shards, chunks, encoder)
    broken = np.flatnonzero(~np.isfinite(vectors).all(axis=1))
    reason = "The encoder failed, or gave NaN or infinite values."
    errors = [
        ErrorRecord(subject=chunks[row].id, source=chunks[row].source, stage="encode", reason=reason)
        for row in broken.tolist()
    ]
    vectors[broken] = 0.0  # similar to nothing; the row keeps vectors and chunks aligned
    name = _name(plan, "vectors", shard)
    files = {name: plan.store.write_array(name, vectors)}
    name = _name(plan, "errors-encode", shard)
    files[name] = plan.store.write_table(name, tables.error_table(errors))
    result = StageResult(stage="encode", shard=shard, rows=len(chunks), computed=fresh, errors=len(errors), files=files)
    return finish_stage(plan, result)


def finished(plan: SegmentPlan, stage: str) -> int:
    """How many shards have passed a stage."""
    folder = layout.marker(plan.segment_id, stage, 0).rpartition("/")[0]
    return sum(name.startswith(f"{folder}/{stage}-") for name in plan.store.files(folder))


def load_chunks(plan: SegmentPlan, shard: int) -> list[Chunk]:
    return tables.chunks_of(plan.store.read_table(_name(plan, "chunks", shard)))


def _name(plan: SegmentPlan, kind: str, shard: int) -> str:
    return layout.shard(plan.segment_id, kind, shard)


def stage_done(plan: SegmentPlan, stage: str, shard: int) -> StageResult | None:
    """What a stage did to a shard, where its marker says that it is whole."""
    name = layout.marker(plan.segment_id, stage, shard)
    if not plan.store.exists(name):
        return None
    return StageResult.model_validate_json(plan.store.read(name)).model_copy(update={"skipped": True})


def finish_stage(plan: SegmentPlan, result: StageResult) -> StageResult:
    """Write the marker: the last thing a stage does."""
    name = layout.marker(plan.segment_id, result.stage, result.shard)
    plan.store.write(name, result.model_dump_json(exclude={"skipped", "computed"}).encode())
    return result


def _error(subject: str, source: str, stage: str, error: Exception) -> ErrorRecord:
    reason = f"{type(error).__name__}: {error}"
    return ErrorRecord.model_validate({"subject": subject, "source": source, "stage": stage, "reason": reason})
