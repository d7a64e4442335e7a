"""From whole segments to a build: the graph over all of them, its entity vectors, its links, the manifest.

The steps that cost (entity vectors, synonym tiles, chunk neighbours) are functions of a small
key that write one file each, so that a job can spread and repeat them.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from hybrid_ir.dense.index import DenseIndex, Shard, write_shard
from hybrid_ir.graph import chunk_links, knowledge_graph, synonyms
from hybrid_ir.graph.chunk_links import ChunkLinks, CitedDocument
from hybrid_ir.graph.knowledge_graph import KnowledgeGraph
from hybrid_ir.graph.store import write as write_graph
from hybrid_ir.index import layout
from hybrid_ir.index.manifest import Counts, Fingerprints, Manifest, Segment
from hybrid_ir.roles import Encoder
from hybrid_ir.settings import BuildSettings
from hybrid_ir.store import FileEntry, Store

ENTITY_VECTORS = "entity_vectors/shard-00000.faiss"


@dataclass(frozen=True)
class BuildPlan:
    """What a build is made of; small enough to travel with every task."""

    store: Store
    build_id: str
    settings: BuildSettings
    segments: tuple[Segment, ...]

    @property
    def work(self) -> str:
        return layout.work(self.build_id)

    def shards(self) -> list[tuple[str, int, int]]:
        """(segment id, shard, number of its first chunk), in the order in which chunks are numbered."""
        found, total = [], 0
        for segment in self.segments:
            for shard, rows in enumerate(segment.chunks_per_shard):
                found.append((segment.id, shard, total))
                total += rows
        return found

    @property
    def chunks(self) -> int:
        return sum(sum(segment.chunks_per_shard) for segment in self.segments)


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


def build_graph(plan: BuildPlan) -> KnowledgeGraph:
    """Number all names of all segments, and write them for the tasks that encode them."""
    triples: list[pa.Table] = []
    mentions: list[pa.Table] = []
    for segment_id, shard, first in plan.shards():
        for kind, columns, into in (
            ("triples", ["chunk", "head", "relation", "tail"], triples),
            ("mentions", ["chunk", "name"], mentions),
        ):
            table = plan.store.read_table(layout.shard(segment_id, kind, shard), columns)
            numbers = table["chunk"].to_numpy() + first
            into.append(table.set_column(0, "chunk", pa.array(numbers, pa.int64())))
    graph = knowledge_graph.build(triples, mentions)
    for part in range(-(-len(graph.entities) // synonyms.TILE)):
        names = graph.entities.slice(part * synonyms.TILE, synonyms.TILE)
        plan.store.write_table(f"{plan.work}/names/part-{part:06d}.parquet", pa.table({"name": names}))
    return graph


def encode_names(plan: BuildPlan, part: int, encoder: Encoder) -> int:
    """Vectors of one range of entity names; returns how many."""
    names = _names(plan, part)
    target = f"{plan.work}/name-vectors/part-{part:06d}.npy"
    if not plan.store.exists(target):
        plan.store.write_array(target, encoder.encode_passages([""] * len(names), names))
    return len(names)


def synonym_tile(plan: BuildPlan, row: int, column: int) -> int:
    """The synonym pairs of one tile; returns how many."""
    target = f"{plan.work}/synonyms/tile-{row:06d}-{column:06d}.parquet"
    if plan.store.exists(target):
        return int(plan.store.open_parquet(target).metadata.num_rows)
    a, b, cosine = synonyms.similar_pairs(
        _name_vectors(plan, row),
        _name_vectors(plan, column),
        row * synonyms.TILE,
        column * synonyms.TILE,
        plan.settings.graph.synonym_threshold,
    )
    if plan.settings.graph.synonym_digits_must_match:
        left, right = _names(plan, row), _names(plan, column)
        keep = np.fromiter(
            (
                synonyms.numbers_agree(left[i - row * synonyms.TILE], right[j - column * synonyms.TILE])
                for i, j in zip(a.tolist(), b.tolist(), strict=True)
            ),
            bool,
            len(a),
        )
        a, b, cosine = a[keep], b[keep], cosine[keep]
    plan.store.write_table(target, pa.table({"a": a, "b": b, "cosine": cosine}))
    return len(a)


def open_dense(store: Store, segments: Sequence[Segment]) -> DenseIndex:
    """All FAISS shards of a build's segments, with the build's chunk numbers."""
    shards, total = [], 0
    for segment in segments:
        shards += [Shard(layout.shard(segment.id, "dense", n), total) for n in range(segment.dense_shards)]
        total += sum(segment.chunks_per_shard)
    return DenseIndex(store, shards)


def neighbours(plan: BuildPlan, segment_id: str, shard: int, first: int, index: DenseIndex) -> int:
    """The similarity links of one shard's chunks; returns how many."""
    target = f"{plan.work}/links/{segment_id}-{shard:05d}.parquet"
    if plan.store.exists(target):
        return int(plan.store.open_parquet(target).metadata.num_rows)
    graph = plan.settings.graph
    vectors = plan.store.array(layout.shard(segment_id, "vectors", shard))
    wanted = min(graph.chunk_neighbours + 1, max(len(index), 1))
    scores, found = index.search(np.asarray(vectors), wanted)
    numbers = np.arange(first, first + len(vectors))
    links = chunk_links.nearest(numbers, scores, found, graph.chunk_neighbours, graph.chunk_similarity_floor)
    plan.store.write_table(target, pa.table({"source": links.source, "target": links.target, "weight": links.weight}))
    return len(links.source)


def finish(plan: BuildPlan, graph: KnowledgeGraph, fingerprints: Fingerprints) -> Manifest:
    """Write the build's own files from the tasks' and return the manifest, not yet published."""
    store, folder = plan.store, layout.build(plan.build_id)
    pairs = _read_all(store, f"{plan.work}/synonyms", {"a": np.int64, "b": np.int64, "cosine": np.float32})
    order = np.lexsort((pairs["b"], pairs["a"]))
    similar = _read_all(store, f"{plan.work}/links", {"source": np.int64, "target": np.int64, "weight": np.float32})
    links = chunk_links.merge(
        [
            ChunkLinks(
                similar["source"],
                similar["target"],
                similar["weight"],
                np.full(len(similar["source"]), chunk_links.SIMILARITY, np.int8),
            ),
            chunk_links.citations(list(_documents(plan))),
        ]
    )
    synonym_pairs = (pairs["a"][order], pairs["b"][order], pairs["cosine"][order])
    files = write_graph(store, folder, graph, synonym_pairs, links, plan.chunks)
    parts = -(-len(graph.entities) // synonyms.TILE)
    if parts:
        vectors = np.concatenate([_name_vectors(plan, part) for part in range(parts)])
        name = f"{folder}/{ENTITY_VECTORS}"
        files[name] = write_shard(store, name, vectors, np.arange(len(vectors)))
    counts = Counts(
        documents=sum(segment.documents for segment in plan.segments),
        chunks=plan.chunks,
        entities=len(graph.entities),
        relations=len(graph.relations),
        triples=graph.statements,
        edges=len(graph.head),
        synonym_edges=len(order),
        mentions=len(graph.mention_entity),
        similarity_links=links.count(chunk_links.SIMILARITY),
        citation_links=links.count(chunk_links.CITATION),
        errors=sum(segment.errors for segment in plan.segments),
    )
    return Manifest(
        build_id=plan.build_id,
        settings=plan.settings,
        fingerprints=fingerprints,
        segments=plan.segments,
        counts=counts,
        files=files,
    )


def _documents(plan: BuildPlan) -> Iterable[CitedDocument]:
    for segment_id, shard, first in plan.shards():
        table = plan.store.read_table(
            layout.shard(segment_id, "documents", shard), ["pmid", "doi", "references", "first_chunk"]
        )
        for row in table.to_pylist():
            yield CitedDocument(first + row["first_chunk"], row["pmid"], row["doi"], tuple(row["references"]))


def _names(plan: BuildPlan, part: int) -> list[str]:
    names: list[str] = plan.store.read_table(f"{plan.work}/names/part-{part:06d}.parquet")["name"].to_pylist()
    return names


def _name_vectors(plan: BuildPlan, part: int) -> NDArray[np.float32]:
    return plan.store.array(f"{plan.work}/name-vectors/part-{part:06d}.npy")


def _read_all(store: Store, folder: str, columns: dict[str, type]) -> dict[str, NDArray[Any]]:
    parts = [store.read_table(name) for name in store.files(folder)]
    return {
        name: np.concatenate([np.asarray(part[name].to_numpy(), kind) for part in parts] or [np.zeros(0, kind)])
        for name, kind in columns.items()
    }
