"""Results of the dear stages, by content: what was paid for once is not paid for again.

A key is a hash of all that a result depends on beside the model; the model's fingerprint names
the folder.  Files cover a run of buckets (see ``layout``) and say so in their names, so a shard
reads only the files that may hold its own, and two shards never write the same file.  A result
that is an error is never put here.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from typing import Any

import pyarrow as pa

from hybrid_ir.index.layout import BUCKETS
from hybrid_ir.index.manifest import digest
from hybrid_ir.store import Store


def key(*parts: str | int) -> bytes:
    """Sixteen bytes that stand for a content."""
    text = json.dumps(parts, ensure_ascii=True)
    return hashlib.blake2b(text.encode(), digest_size=16).digest()


class Cache:
    """One kind of result of one model."""

    def __init__(self, store: Store, kind: str, fingerprint: dict[str, str], value: pa.DataType) -> None:
        self._store = store
        self._folder = f"cache/{kind}/{digest(fingerprint)}"
        self._schema = pa.schema([("bucket", pa.int32()), ("key", pa.binary(16)), ("value", value)])

    def get(self, buckets: range, wanted: Sequence[bytes]) -> dict[bytes, Any]:
        """What is known of the wanted keys, all of them from these buckets."""
        found: dict[bytes, Any] = {}
        keys = pa.array(sorted(set(wanted)), pa.binary(16))
        for name in self._store.files(self._folder):
            first, last = (int(part, 16) for part in name.rpartition("/")[2].split("-")[:2])
            if last < buckets.start or first >= buckets.stop or not len(keys):
                continue
            table = self._store.read_table(name, where=[("bucket", ">=", buckets.start), ("bucket", "<", buckets.stop)])
            table = table.filter(pa.compute.is_in(table["key"], value_set=keys))
            found.update(zip(table["key"].to_pylist(), _values(table["value"]), strict=True))
        return found

    def put(self, buckets: range, writer: str, rows: Sequence[tuple[int, bytes, Any]]) -> None:
        """Keep (bucket, key, value) rows; ``writer`` names the task, so that it overwrites itself alone."""
        if not rows:
            return
        ordered = sorted(rows, key=lambda row: row[:2])
        columns = [pa.array([row[i] for row in ordered], self._schema.types[i]) for i in range(3)]
        self._store.write_table(self._name(buckets, writer), pa.table(columns, schema=self._schema))

    def merge(self, buckets: range, writer: str, rows: Sequence[tuple[int, bytes, Any]]) -> None:
        """Put these rows and those of all writers whose names begin with this one into one file of this one's."""
        whole = self._name(buckets, writer)
        before = [name for name in self._store.files(self._folder) if name.startswith(whole.removesuffix(".parquet"))]
        if not rows and before in ([], [whole]):
            return
        found = {row[1]: row for row in rows}
        for table in map(self._store.read_table, before):
            columns = (table["bucket"].to_pylist(), table["key"].to_pylist(), _values(table["value"]))
            found |= {row[1]: row for row in zip(*columns, strict=True)}
        self.put(buckets, writer, list(found.values()))
        for name in before:
            if name != whole:
                self._store.delete(name)

    def _name(self, buckets: range, writer: str) -> str:
        return f"{self._folder}/{buckets.start:05x}-{min(buckets.stop, BUCKETS) - 1:05x}-{writer}.parquet"


def _values(column: pa.ChunkedArray) -> list[Any]:
    """Vectors as arrays, all else as Python values."""
    if not pa.types.is_fixed_size_list(column.type):
        return list(column.to_pylist())
    width = column.type.list_size
    flat = column.combine_chunks().flatten().to_numpy(zero_copy_only=False)
    return list(flat.reshape(-1, width))
