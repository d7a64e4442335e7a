"""What a build is made of, small enough to travel with every task."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate

import numpy as np
import pyarrow as pa

from hybrid_ir.graph.knowledge_graph import Numbers
from hybrid_ir.index import layout
from hybrid_ir.index.manifest import Manifest, Segment
from hybrid_ir.settings import BuildSettings
from hybrid_ir.store import Store

TOMBSTONES = pa.schema(
    [("segment", pa.string()), ("document_id", pa.string()), ("first_chunk", pa.int64()), ("chunks", pa.int32())]
)
"""Documents of a segment that are deleted or replaced; ``first_chunk`` is the build's chunk number."""


@dataclass(frozen=True)
class BuildPlan:
    """Segments in the order in which their chunks are numbered, without their lists of files."""

    store: Store
    build_id: str
    settings: BuildSettings
    segments: tuple[Segment, ...]
    previous: str | None = None
    """The build that this one changes: its synonyms and links hold where nothing changed."""

    @property
    def work(self) -> str:
        return layout.work(self.build_id)

    @property
    def folder(self) -> str:
        return layout.build(self.build_id)

    @property
    def tombstones(self) -> str:
        return f"{self.folder}/tombstones.parquet"

    @cached_property
    def starts(self) -> dict[str, int]:
        """The number of each segment's first chunk."""
        sizes = accumulate((sum(segment.chunks_per_shard) for segment in self.segments), initial=0)
        return {segment.id: start for segment, start in zip(self.segments, sizes, strict=False)}

    def shards(self) -> Iterator[tuple[str, int, int]]:
        """(segment id, shard, number of its first chunk)."""
        for segment in self.segments:
            first = self.starts[segment.id]
            for shard, rows in enumerate(segment.chunks_per_shard):
                yield segment.id, shard, first
                first += rows

    @property
    def chunks(self) -> int:
        """Chunk numbers, those of dead chunks included."""
        return sum(sum(segment.chunks_per_shard) for segment in self.segments)

    def dead(self) -> Numbers:
        """The numbers of dead chunks, ascending."""
        if not self.store.exists(self.tombstones):
            return np.zeros(0, np.int64)
        return dead_numbers(self.store.read_table(self.tombstones))


def light(segment: Segment) -> Segment:
    """A segment without its list of files."""
    return segment.model_copy(update={"files": {}})


def plan_of(store: Store, manifest: Manifest) -> BuildPlan:
    """The plan that a published build was made by."""
    return BuildPlan(store, manifest.build_id, manifest.settings, tuple(map(light, manifest.segments)))


def dead_numbers(tombstones: pa.Table) -> Numbers:
    """The chunk numbers that a table of tombstones covers, ascending."""
    first, count = tombstones["first_chunk"].to_numpy(), tombstones["chunks"].to_numpy()
    if not len(first):
        return np.zeros(0, np.int64)
    offsets = np.arange(int(count.sum())) - np.repeat(np.cumsum(count) - count, count)
    return np.sort(np.repeat(first, count) + offsets)
