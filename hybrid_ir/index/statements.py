"""Which chunk states a triple: found by its entities' mentions, read from the segments' triples."""

from __future__ import annotations

from functools import lru_cache

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from hybrid_ir.graph.store import StoredGraph
from hybrid_ir.index import layout
from hybrid_ir.index.chunk_store import ChunkStore
from hybrid_ir.store import Store

SHARDS_KEPT = 8


class Statements:
    """Looks up one triple at a time; keeps the few shards of triples that it read last."""

    def __init__(self, store: Store, graph: StoredGraph, chunks: ChunkStore) -> None:
        self._store, self._graph, self._chunks = store, graph, chunks
        self._triples = lru_cache(SHARDS_KEPT)(self._read)

    def stating(self, head: int, relation: int, tail: int, first: int = -1) -> int | None:
        """A chunk that states a triple, by number: ``first`` if it does, else the lowest.

        None for a synonym, which no chunk states.
        """
        graph = self._graph
        names = graph.entity_names
        wanted = (names[head].as_py(), graph.relation_names[relation].as_py(), names[tail].as_py())
        of_head, of_tail = (
            graph.mention_chunk[graph.mention_indptr[entity] : graph.mention_indptr[entity + 1]]
            for entity in (head, tail)
        )
        both = np.intersect1d(of_head, of_tail, assume_unique=True).tolist()
        for number in sorted(both, key=lambda number: (number != first, number)):
            segment_id, shard, row = self._chunks.place(number)
            table = self._triples(segment_id, shard)
            here = pc.equal(table["chunk"], row)
            for column, name in zip(("head", "relation", "tail"), wanted, strict=True):
                here = pc.and_(here, pc.equal(table[column], name))
            if pc.any(here).as_py():
                return int(number)
        return None

    def _read(self, segment_id: str, shard: int) -> pa.Table:
        return self._store.read_table(layout.shard(segment_id, "triples", shard), ["chunk", "head", "relation", "tail"])
