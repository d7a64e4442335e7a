"""From whole segments to a build: the graph over their live chunks, and the manifest."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from hybrid_ir.dense.index import write_vectors
from hybrid_ir.graph import chunk_links, knowledge_graph
from hybrid_ir.graph.knowledge_graph import KnowledgeGraph
from hybrid_ir.graph.partition_store import read_partitions
from hybrid_ir.graph.store import write as write_graph
from hybrid_ir.index import entity_blocks, entity_parts, error_records, layout, links, sparse_shards
from hybrid_ir.index.manifest import Counts, Fingerprints, Manifest, Segment
from hybrid_ir.index.plan import BuildPlan
from hybrid_ir.store import FileEntry

ENTITY_VECTORS = "entity_vectors/shard-00000.faiss"


def build_graph(plan: BuildPlan) -> KnowledgeGraph:
    """Number all names that live chunks of all segments hold."""
    triples: list[pa.Table] = []
    mentions: list[pa.Table] = []
    dead = plan.dead()
    for segment_id, shard, first in plan.shards():
        for kind, columns, into in (
            ("triples", ["chunk", "head", "relation", "tail"], triples),
            ("mentions", ["chunk", "name"], mentions),
        ):
            table = plan.store.read_table(layout.shard(segment_id, kind, shard), columns)
            numbers = table["chunk"].to_numpy() + first
            table = table.set_column(0, "chunk", pa.array(numbers, pa.int64()))
            into.append(table.filter(pa.array(~np.isin(numbers, dead))) if len(dead) else table)
    return knowledge_graph.build(triples, mentions)


def finish(plan: BuildPlan, segments: Sequence[Segment], graph: KnowledgeGraph, fingerprints: Fingerprints) -> Manifest:
    """Write the build's own files from the tasks' and return the manifest, not yet published.

    ``segments`` are the plan's, with their lists of files.
    """
    store, folder = plan.store, plan.folder
    pairs = entity_parts.collect(plan, graph.entities)
    blocked = entity_blocks.wanted(plan, len(graph.entities))
    resolution = entity_blocks.resolution(plan, graph.entities, pairs) if blocked else None
    found = links.collect(plan)
    previous = layout.build(plan.previous) if plan.previous else None
    files = write_graph(store, folder, graph, pairs, found, plan.chunks, plan.settings.graph, previous)
    if len(graph.entities):
        parts = range(entity_parts.part_count(len(graph.entities)))
        ids = np.concatenate([entity_parts.load_names(plan, part)[0] for part in parts])
        vectors = np.concatenate([entity_parts.load_vectors(plan, part) for part in parts])
        order = np.argsort(ids)
        name = f"{folder}/{ENTITY_VECTORS}"
        older = f"{previous}/{ENTITY_VECTORS}".rpartition("/")[0] if previous else None
        files |= write_vectors(store, name, vectors[order], plan.settings.dense, older)
    terms, term_files = sparse_shards.write_statistics(plan) if plan.settings.sparse.enabled else (None, {})
    files |= term_files
    tombstones = store.read_table(plan.tombstones) if store.exists(plan.tombstones) else None
    if tombstones is not None:
        size, sha256 = store.sha256(plan.tombstones)
        files[plan.tombstones] = FileEntry(rows=tombstones.num_rows, bytes=size, sha256=sha256)
    counts = Counts(
        documents=sum(segment.documents for segment in segments) - (tombstones.num_rows if tombstones else 0),
        chunks=plan.chunks - len(plan.dead()),
        entities=len(graph.entities),
        relations=len(graph.relations),
        triples=graph.statements,
        edges=len(graph.head),
        synonym_edges=len(pairs[0]),
        mentions=len(graph.mention_entity),
        similarity_links=found.count(chunk_links.SIMILARITY),
        citation_links=found.count(chunk_links.CITATION),
        errors=len(error_records.live(store, segments, tombstones)),
    )
    return Manifest(
        build_id=plan.build_id,
        parent=plan.previous,
        settings=plan.settings,
        fingerprints=fingerprints,
        segments=tuple(segments),
        counts=counts,
        partitions=read_partitions(store, folder),
        resolution=resolution,
        sparse=terms,
        files=files,
    )
