"""The error records of a build: those that are still true of it."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence

import pyarrow as pa
import pyarrow.compute as pc

from hybrid_ir.index import layout
from hybrid_ir.index.manifest import Segment
from hybrid_ir.store import Store

STAGES = ("read", "extract", "encode")
"""Those that write errors; what cannot be cut stands with what cannot be read."""

Row = dict[str, str]


def live(
    store: Store,
    segments: Sequence[Segment],
    tombstones: pa.Table | None,
    wanted: Callable[[Segment, int], bool] = lambda segment, shard: True,
) -> list[tuple[str, Row]]:
    """(stage that wrote it, row) of every error record that no later segment has made untrue.

    An error of a document is over when the document was replaced or deleted, an error of a file or
    of one of its lines when a later segment read a file of that name.  ``wanted`` (segment, shard)
    says where to look for records.
    """
    buried = set()
    if tombstones is not None:
        buried = set(zip(tombstones["segment"].to_pylist(), tombstones["document_id"].to_pylist(), strict=True))
    found: list[tuple[int, str, Row]] = []
    for position, segment in enumerate(segments):
        shards = [shard for shard in range(segment.shards) if wanted(segment, shard)]
        found += [(position, stage, row) for stage in STAGES for row in _rows(store, segment, stage, shards)]
    # Few errors, many documents: each later segment is asked which of these it has.
    names = {_document(stage, row) for _, stage, row in found}
    files = {row["source"] for _, _, row in found if row["subject"] == row["source"]}
    last_with: dict[str, int] = {}
    last_of: dict[str, int] = {}
    first = min((position for position, _, _ in found), default=len(segments))
    for position, segment in enumerate(segments[first + 1 :], start=first + 1):
        last_with |= dict.fromkeys(_held(store, segment, names), position)
        if files:
            last_of |= dict.fromkeys(_read(store, segment, files), position)
    kept = []
    for position, stage, row in found:
        document = _document(stage, row)
        over = (segments[position].id, document) in buried or last_with.get(document, -1) > position
        about_file = row["subject"] == row["source"]
        if not over and not (about_file and last_of.get(row["source"], -1) > position):
            kept.append((stage, row))
    return kept


def _document(stage: str, row: Row) -> str:
    """The id of the document that an error is about: of a chunk's, what stands before the #."""
    return row["subject"] if stage == "read" else row["subject"].rpartition("#")[0]


def _rows(store: Store, segment: Segment, stage: str, shards: Iterable[int]) -> list[Row]:
    rows: list[Row] = []
    for shard in shards:
        name = layout.shard(segment.id, f"errors-{stage}", shard)
        entry = segment.files.get(name)
        if entry is None or entry.rows:  # most shards have none, and their files need not be opened
            rows += store.read_table(name).to_pylist()
    return rows


def _held(store: Store, segment: Segment, names: Collection[str]) -> list[str]:
    """Which of these ids are of a segment's documents."""
    by_shard: dict[int, list[str]] = {}
    for name in names:
        by_shard.setdefault(layout.shard_of(name, segment.shards), []).append(name)
    held: list[str] = []
    for shard, some in sorted(by_shard.items()):
        ids = store.read_table(layout.shard(segment.id, "documents", shard), ["id"])["id"]
        held += ids.filter(pc.is_in(ids, value_set=pa.array(some, pa.string()))).to_pylist()
    return held


def _read(store: Store, segment: Segment, files: Collection[str]) -> list[str]:
    """Which of these files a segment has documents or errors of."""
    wanted, found = pa.array(sorted(files), pa.string()), set()
    for shard in range(segment.shards):
        sources = store.read_table(layout.shard(segment.id, "documents", shard), ["source"])["source"]
        found |= set(sources.filter(pc.is_in(sources, value_set=wanted)).unique().to_pylist())
    for stage in STAGES:
        found |= {row["source"] for row in _rows(store, segment, stage, range(segment.shards))} & set(files)
    return sorted(found)
