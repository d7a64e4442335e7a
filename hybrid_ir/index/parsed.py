"""Parsed records on their way from the files they stand in to the shards they belong to.

A reading task writes a piece for each group of neighbouring shards; the task that cuts a group's
shards reads that group's pieces.  So each piece is written once and read once: the bytes grow with
the corpus alone, and the files with reading tasks times groups.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import pyarrow as pa
import pyarrow.compute as pc

from hybrid_ir.index import layout, tables
from hybrid_ir.records import Deletion, Document, ErrorRecord
from hybrid_ir.store import Store

SHARDS_PER_GROUP = 16
"""About 32 MB of corpus files up to 4096 shards; a task holds the records of one group."""
CHARACTERS_AT_A_TIME = 64 * 2**20
"""Most JSON that a reading task holds before it writes pieces."""

Parsed = Document | Deletion | ErrorRecord
KINDS: dict[str, type[Document] | type[Deletion] | type[ErrorRecord]] = {
    "document": Document,
    "deletion": Deletion,
    "error": ErrorRecord,
}
_NAMES = {model: kind for kind, model in KINDS.items()}


def group_count(shards: int) -> int:
    return -(-shards // SHARDS_PER_GROUP)


def shards_of(group: int, shards: int) -> range:
    """The shards of a group."""
    return range(group * SHARDS_PER_GROUP, min(shards, (group + 1) * SHARDS_PER_GROUP))


def write(store: Store, segment_id: str, shards: int, part: str, records: Iterable[Parsed]) -> tuple[int, int]:
    """Lay a reading task's records out by group; returns how many there are, and how many are errors."""
    rows: list[tuple[int, str, str]] = []
    held = count = errors = batch = 0
    for record in records:
        key = record.subject if isinstance(record, ErrorRecord) else record.id
        data = record.model_dump_json()
        rows.append((layout.shard_of(key, shards), _NAMES[type(record)], data))
        count, errors, held = count + 1, errors + isinstance(record, ErrorRecord), held + len(data)
        if held >= CHARACTERS_AT_A_TIME:
            _write_pieces(store, segment_id, f"{part}-{batch:05d}", rows)
            rows, held, batch = [], 0, batch + 1
    _write_pieces(store, segment_id, f"{part}-{batch:05d}", rows)
    return count, errors


def gather(store: Store, segment_id: str, group: int) -> pa.Table:
    """All records of a group's shards."""
    pieces = [store.read_table(name) for name in store.files(_folder(segment_id, group))]
    return pa.concat_tables([tables.PARSED.empty_table(), *pieces])


def records_of(gathered: pa.Table, shard: int) -> list[Parsed]:
    """One shard's records."""
    mine = gathered.filter(pc.equal(gathered["shard"], shard))
    return [
        KINDS[kind].model_validate_json(data)
        for kind, data in zip(mine["kind"].to_pylist(), mine["record"].to_pylist(), strict=True)
    ]


def _write_pieces(store: Store, segment_id: str, name: str, rows: Sequence[tuple[int, str, str]]) -> None:
    by_group: dict[int, list[tuple[int, str, str]]] = {}
    for row in rows:
        by_group.setdefault(row[0] // SHARDS_PER_GROUP, []).append(row)
    for group, mine in sorted(by_group.items()):
        columns = zip(*mine, strict=True)
        arrays = [pa.array(column, kind) for column, kind in zip(columns, tables.PARSED.types, strict=True)]
        piece = pa.table(arrays, schema=tables.PARSED)
        store.write_table(f"{_folder(segment_id, group)}/{name}.parquet", piece)


def _folder(segment_id: str, group: int) -> str:
    return f"{layout.work(segment_id)}/parsed/group-{group:05d}"
