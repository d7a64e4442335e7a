"""Merge the live rows of many segments into one, without asking any model again."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from hybrid_ir.graph.knowledge_graph import Numbers
from hybrid_ir.index import error_records, layout, sparse_shards, tables
from hybrid_ir.index.plan import BuildPlan
from hybrid_ir.index.shard import SegmentPlan, StageResult, finish_stage, stage_done
from hybrid_ir.sparse import postings


def merge(plan: SegmentPlan, old: BuildPlan, shard: int) -> StageResult:
    """Write one shard of the merged segment: the live documents whose ids belong to it, in their order."""
    if (done := stage_done(plan, "merge", shard)) is not None:
        return done
    documents, chunks, mentions, triples, vectors, rows_of = _gather(plan, old, shard)
    rows = np.cumsum([0, *documents["chunks"].to_pylist()])[:-1]
    documents = documents.set_column(
        documents.schema.get_field_index("first_chunk"), "first_chunk", pa.array(rows, pa.int64())
    )
    written = {
        "documents": documents.cast(tables.DOCUMENTS),
        "chunks": chunks.cast(tables.CHUNKS),
        "mentions": mentions.cast(tables.MENTIONS),
        "triples": triples.cast(tables.TRIPLES),
        "deletions": pa.table({"id": pa.array([], pa.string())}),
        **_errors(plan, old, shard),
    }
    files = {}
    for kind, table in written.items():
        name = layout.shard(plan.segment_id, kind, shard)
        files[name] = plan.store.write_table(name, table)
    name = layout.shard(plan.segment_id, "vectors", shard)
    files[name] = plan.store.write_array(name, vectors)
    if plan.settings.sparse.enabled:
        parts = [(sparse_shards.read_postings(old.store, *source), rows_) for source, rows_ in rows_of]
        merged = postings.merge(parts, chunks.num_rows)
        files |= sparse_shards.write_postings(plan.store, plan.segment_id, shard, merged)
    errors = sum(table.num_rows for kind, table in written.items() if kind.startswith("errors-"))
    result = StageResult(
        stage="merge", shard=shard, rows=documents.num_rows, chunks=chunks.num_rows, errors=errors, files=files
    )
    return finish_stage(plan, result)


def _gather(
    plan: SegmentPlan, old: BuildPlan, shard: int
) -> tuple[pa.Table, pa.Table, pa.Table, pa.Table, NDArray[np.float32], list[tuple[tuple[str, int], Numbers]]]:
    """The live rows of this shard's documents, ordered by document id, with ``chunk`` counted anew.

    The last: for each old shard (segment id, number) the new row of each of its chunks, -1 for none.
    """
    dead, store = old.dead(), old.store
    parts: list[tuple[str, int, pa.Table]] = []  # (document id, part, its row of the documents table)
    sources: list[tuple[pa.Table, pa.Table, pa.Table, NDArray[np.float32]]] = []
    overlapping = _overlapping(old, plan, shard)
    for segment_id, number, first in overlapping:
        kinds = ("documents", "chunks", "mentions", "triples")
        read = {kind: store.read_table(layout.shard(segment_id, kind, number)) for kind in kinds}
        vectors = np.asarray(store.array(layout.shard(segment_id, "vectors", number)))
        ids = read["documents"]["id"].to_pylist()
        starts = read["documents"]["first_chunk"].to_numpy()
        keep = ~np.isin(starts + first, dead)
        keep &= np.fromiter((layout.shard_of(i, plan.shards) == shard for i in ids), bool, len(ids))
        for row in np.flatnonzero(keep).tolist():
            parts.append((ids[row], len(sources), read["documents"].slice(row, 1)))
        sources.append((read["chunks"], read["mentions"], read["triples"], vectors))
    parts.sort(key=lambda part: part[:2])

    new_row = [np.full(source[0].num_rows, -1, np.int64) for source in sources]
    documents, chunks, vectors_ = [], [], []
    total = 0
    for _, source, document in parts:
        first, count = document["first_chunk"][0].as_py(), document["chunks"][0].as_py()
        new_row[source][first : first + count] = np.arange(total, total + count)
        total += count
        documents.append(document)
        chunks.append(sources[source][0].slice(first, count))
        vectors_.append(sources[source][3][first : first + count])
    dimension = sources[0][3].shape[1] if sources else 0
    return (
        pa.concat_tables(documents) if documents else tables.DOCUMENTS.empty_table(),
        pa.concat_tables(chunks) if chunks else tables.CHUNKS.empty_table(),
        _renumbered([source[1] for source in sources], new_row, tables.MENTIONS),
        _renumbered([source[2] for source in sources], new_row, tables.TRIPLES),
        np.concatenate(vectors_) if vectors_ else np.zeros((0, dimension), np.float32),
        [((segment_id, number), rows) for (segment_id, number, _), rows in zip(overlapping, new_row, strict=True)],
    )


def _renumbered(parts: Sequence[pa.Table], new_row: Sequence[Numbers], schema: pa.Schema) -> pa.Table:
    """Rows of live chunks with their new chunk rows, in that order and otherwise as they stood."""
    done = []
    for table, rows in zip(parts, new_row, strict=True):
        number = rows[table["chunk"].to_numpy()] if table.num_rows else np.zeros(0, np.int64)
        table = table.set_column(0, "chunk", pa.array(number, pa.int64()))
        done.append(table.filter(pa.array(number >= 0)))
    whole = pa.concat_tables(done) if done else schema.empty_table()
    return whole.take(pa.array(np.argsort(whole["chunk"].to_numpy(), kind="stable")))


def _errors(plan: SegmentPlan, old: BuildPlan, shard: int) -> dict[str, pa.Table]:
    """The error records of the old shards whose own number falls into this one, without those that are over."""
    tombstones = old.store.read_table(old.tombstones) if old.store.exists(old.tombstones) else None
    found = error_records.live(
        old.store, old.segments, tombstones, lambda segment, number: number * plan.shards // segment.shards == shard
    )
    return {
        f"errors-{stage}": pa.Table.from_pylist([row for kind, row in found if kind == stage], schema=tables.ERRORS)
        for stage in error_records.STAGES
    }


def _overlapping(old: BuildPlan, plan: SegmentPlan, shard: int) -> list[tuple[str, int, int]]:
    mine = layout.buckets_of(shard, plan.shards)
    sizes = {segment.id: segment.shards for segment in old.segments}
    found = []
    for segment_id, number, first in old.shards():
        theirs = layout.buckets_of(number, sizes[segment_id])
        if theirs.start < mine.stop and mine.start < theirs.stop:
            found.append((segment_id, number, first))
    return found
