"""The FAISS shards of segments: which document shards share one, writing and opening them."""

from __future__ import annotations

from collections.abc import Collection, Sequence

import numpy as np

from hybrid_ir.dense.index import DenseIndex, Shard, write_shard
from hybrid_ir.graph.knowledge_graph import Numbers
from hybrid_ir.index import layout
from hybrid_ir.index.manifest import Segment
from hybrid_ir.store import FileEntry, Store


def dense_groups(chunks_per_shard: Sequence[int], most: int) -> list[list[int]]:
    """Neighbouring document shards that share a FAISS shard of at most ``most`` vectors; a larger one stands alone."""
    groups: list[list[int]] = []
    held = 0
    for shard, rows in enumerate(chunks_per_shard):
        if not groups or held + rows > most:
            groups.append([])
            held = 0
        groups[-1].append(shard)
        held += rows
    return groups


def write_dense(
    store: Store, segment_id: str, number: int, group: Sequence[int], chunks_per_shard: Sequence[int]
) -> dict[str, FileEntry]:
    """One FAISS shard over a group of document shards; its ids are the segment's chunk numbers."""
    vectors = np.concatenate([store.array(layout.shard(segment_id, "vectors", shard)) for shard in group])
    first = sum(chunks_per_shard[: group[0]])
    name = layout.shard(segment_id, "dense", number)
    return {name: write_shard(store, name, vectors, np.arange(first, first + len(vectors)))}


def open_dense(store: Store, segments: Sequence[Segment], dead: Numbers, leave_out: Collection[str] = ()) -> DenseIndex:
    """The FAISS shards of a build's segments with the build's chunk numbers; dead chunks are never found."""
    shards, total = [], 0
    for segment in segments:
        if segment.id not in leave_out:
            shards += [Shard(layout.shard(segment.id, "dense", n), total) for n in range(segment.dense_shards)]
        total += sum(segment.chunks_per_shard)
    return DenseIndex(store, shards, dead)
