"""Which documents of earlier segments are dead: deleted, or replaced by a newer version."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from hybrid_ir.index import layout
from hybrid_ir.index.manifest import Manifest, Segment
from hybrid_ir.index.plan import TOMBSTONES, plan_of
from hybrid_ir.store import Store


@dataclass(frozen=True)
class Burial:
    """The tombstones of a changed build, and what the change came to."""

    table: pa.Table
    deleted: int
    replaced: int
    unknown: tuple[str, ...]
    """Ids that were to be deleted and are not in the index."""


def bury(store: Store, previous: Manifest, added: Segment | None, delete: Collection[str]) -> Burial:
    """The tombstones of ``previous`` and those of its documents that are deleted or that ``added`` has anew.

    A corpus file of ``added`` that says a document is deleted (PubMed) counts as well.
    """
    plan = plan_of(store, previous)
    old = store.read_table(plan.tombstones) if store.exists(plan.tombstones) else TOMBSTONES.empty_table()
    already = set(zip(old["segment"].to_pylist(), old["document_id"].to_pylist(), strict=True))
    new, withdrawn = _contents(store, added) if added else (set(), set())
    gone = new | withdrawn | set(delete)
    rows = []
    for segment in previous.segments:
        starts = {shard: first for segment_id, shard, first in plan.shards() if segment_id == segment.id}
        by_shard: dict[int, list[str]] = {}
        for document_id in gone:
            by_shard.setdefault(layout.shard_of(document_id, segment.shards), []).append(document_id)
        for shard, wanted in sorted(by_shard.items()):
            table = store.read_table(layout.shard(segment.id, "documents", shard), ["id", "first_chunk", "chunks"])
            for row in table.filter(pc.is_in(table["id"], value_set=pa.array(wanted, pa.string()))).to_pylist():
                if (segment.id, row["id"]) not in already:
                    first = starts[shard] + row["first_chunk"]
                    rows.append((segment.id, row["id"], first, row["chunks"]))
    columns = list(zip(*sorted(rows), strict=True)) or [()] * len(TOMBSTONES)
    fresh = pa.table([pa.array(c, t) for c, t in zip(columns, TOMBSTONES.types, strict=True)], schema=TOMBSTONES)
    buried = {row[1] for row in rows}
    return Burial(
        table=pa.concat_tables([old, fresh]).combine_chunks(),
        deleted=len(buried - new),
        replaced=len(buried & new),
        unknown=tuple(sorted(set(delete) - buried)),
    )


def _contents(store: Store, segment: Segment) -> tuple[set[str], set[str]]:
    """(ids of a segment's documents, ids that its files withdraw)."""
    held: set[str] = set()
    withdrawn: set[str] = set()
    for shard in range(segment.shards):
        held.update(store.read_table(layout.shard(segment.id, "documents", shard), ["id"])["id"].to_pylist())
        withdrawn.update(store.read_table(layout.shard(segment.id, "deletions", shard))["id"].to_pylist())
    return held, withdrawn
