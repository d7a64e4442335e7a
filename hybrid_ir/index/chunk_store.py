"""The chunks of a build, read one row group at a time."""

from __future__ import annotations

from bisect import bisect_right
from functools import lru_cache
from itertools import accumulate
from threading import Lock

import pyarrow.compute as pc
import pyarrow.parquet as pq

from hybrid_ir.errors import BadInput, NotFound
from hybrid_ir.index import layout, tables
from hybrid_ir.index.manifest import Manifest
from hybrid_ir.index.plan import plan_of
from hybrid_ir.records import Chunk
from hybrid_ir.store import ROWS_PER_GROUP, Store

GROUPS_KEPT = 512
"""Row groups held in memory, about 150 KB each."""


class ChunkStore:
    """Numbers run over the segments' shards in order; see :meth:`Manifest.chunk_offsets`."""

    def __init__(self, store: Store, manifest: Manifest) -> None:
        self._store = store
        self._build_id = manifest.build_id
        self._shards = [(s.id, number) for s in manifest.segments for number in range(s.shards)]
        rows = [count for s in manifest.segments for count in s.chunks_per_shard]
        self._starts = [0, *accumulate(rows)]
        self._segments = [(segment.id, segment.shards) for segment in manifest.segments]
        name = plan_of(store, manifest).tombstones
        self._dead: frozenset[tuple[str, str]] = frozenset()
        if name in manifest.files:
            table = store.read_table(name)
            self._dead = frozenset(zip(table["segment"].to_pylist(), table["document_id"].to_pylist(), strict=True))
        self._files: dict[tuple[str, int], pq.ParquetFile] = {}
        self._lock = Lock()
        self._group = lru_cache(GROUPS_KEPT)(self._read_group)

    def __len__(self) -> int:
        return self._starts[-1]

    def place(self, number: int) -> tuple[str, int, int]:
        """(segment id, shard, row in the shard) of a chunk."""
        if not 0 <= number < len(self):
            raise BadInput(f"Chunk number {number} is outside this build (0 to {len(self) - 1}).")
        at = bisect_right(self._starts, number) - 1
        return *self._shards[at], number - self._starts[at]

    def by_number(self, number: int) -> Chunk:
        segment_id, shard, row = self.place(number)
        group, row = divmod(row, ROWS_PER_GROUP)
        return self._group((segment_id, shard), group)[row]

    def by_id(self, chunk_id: str) -> Chunk:
        """Raises NotFound."""
        return self.locate(chunk_id)[2]

    def locate(self, chunk_id: str) -> tuple[str, int, Chunk]:
        """(segment id, shard, chunk) of a live chunk.  Raises NotFound."""
        segment_id, shard, _, chunk = self._find(chunk_id)
        return segment_id, shard, chunk

    def number(self, chunk_id: str) -> int:
        """The number of a live chunk.  Raises NotFound."""
        segment_id, shard, row, _ = self._find(chunk_id)
        return self._starts[self._shards.index((segment_id, shard))] + row

    def _find(self, chunk_id: str) -> tuple[str, int, int, Chunk]:
        """(segment id, shard, row in the shard, chunk)."""
        document_id, _, position = chunk_id.rpartition("#")
        if document_id and position.isdigit():
            for segment_id, shards in self._segments:
                if (segment_id, document_id) in self._dead:
                    continue
                shard = layout.shard_of(document_id, shards)
                file = self._store.open_parquet(layout.shard(segment_id, "chunks", shard))
                for group in range(file.num_row_groups):
                    statistics = file.metadata.row_group(group).column(0).statistics
                    if statistics is not None and not statistics.min <= chunk_id <= statistics.max:
                        continue
                    table = file.read_row_group(group)
                    row = pc.index(table["id"], chunk_id).as_py()
                    if row >= 0:
                        chunk = tables.chunks_of(table.slice(row, 1))[0]
                        return segment_id, shard, group * ROWS_PER_GROUP + row, chunk
        raise NotFound(
            f"No chunk {chunk_id!r} in build {self._build_id}. A chunk's id is its document's id, #, and a number."
        )

    def _read_group(self, shard: tuple[str, int], group: int) -> list[Chunk]:
        with self._lock:  # a Parquet reader is not for two threads at once
            if shard not in self._files:
                self._files[shard] = self._store.open_parquet(layout.shard(shard[0], "chunks", shard[1]))
            table = self._files[shard].read_row_group(group)
        return tables.chunks_of(table)
