"""The knowledge-graph index on disk: written once by a build, mapped into memory by its readers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from hybrid_ir.graph.chunk_links import ChunkLinks
from hybrid_ir.graph.knowledge_graph import KnowledgeGraph, Numbers, indptr
from hybrid_ir.graph.partition import assign, part_count
from hybrid_ir.graph.partition_store import Edges, open_edges, read_standing, write_partitions
from hybrid_ir.settings import GraphSettings
from hybrid_ir.store import FileEntry, Store


@dataclass(frozen=True)
class StoredGraph:
    """Arrays of a build by entity and chunk number, CSR throughout: row i of (indptr, x) is x[indptr[i]:indptr[i + 1]].

    G_ent by the edge's tail: ``source`` (head), ``relation``, ``weight``.  M by entity:
    ``mention_chunk``.  G_doc by the citing or similar chunk: ``link_target``, ``link_weight``,
    ``link_kind``.
    """

    entity_names: pa.Array
    document_counts: NDArray[np.int64]
    """Chunks that hold each entity."""
    relation_names: pa.Array
    chunks: int
    edge_indptr: Numbers
    edge_source: Numbers
    edge_relation: NDArray[np.int32]
    edge_weight: NDArray[np.float32]
    mention_indptr: Numbers
    mention_chunk: Numbers
    link_indptr: Numbers
    link_target: Numbers
    link_weight: NDArray[np.float32]
    link_kind: NDArray[np.int8]

    @property
    def entities(self) -> int:
        return len(self.entity_names)


def write(
    store: Store,
    folder: str,
    graph: KnowledgeGraph,
    synonyms: tuple[Numbers, Numbers, NDArray[np.float32]],
    links: ChunkLinks,
    chunks: int,
    settings: GraphSettings,
    previous: str | None = None,
) -> dict[str, FileEntry]:
    """Write G_ent (with each synonym pair once, lower number first, as relation 0), M and G_doc.

    G_ent is divided as the settings say, or as it was in ``previous``, the folder of the build that is
    changed (see :func:`hybrid_ir.graph.partition.assign`).  Returns the entries of the files written, by name.
    """
    entities = len(graph.entities)
    a, b, cosine = synonyms
    head, tail = np.concatenate([graph.head, a]), np.concatenate([graph.tail, b])
    relation = np.concatenate([graph.relation, np.zeros(len(a), np.int64)])
    weight = np.concatenate([graph.weight, cosine]).astype(np.float32)
    order = np.lexsort((relation, head, tail))
    mention_indptr = indptr(graph.mention_entity, entities)
    files: dict[str, FileEntry] = {}

    def table(name: str, content: pa.Table) -> None:
        files[f"{folder}/{name}"] = store.write_table(f"{folder}/{name}", content)

    def array(name: str, content: NDArray[Any]) -> None:
        files[f"{folder}/{name}.npy"] = store.write_array(f"{folder}/{name}.npy", content)

    table(
        "entities/part-00000.parquet",
        pa.table({"id": np.arange(entities), "name": graph.entities, "chunks": np.diff(mention_indptr)}),
    )
    table("relations/part-00000.parquet", pa.table({"id": np.arange(len(graph.relations)), "name": graph.relations}))
    parts = part_count(entities, settings.partitions)
    standing = read_standing(store, previous, graph.entities) if previous and parts > 1 else None
    assignment = assign(entities, head[order], tail[order], parts, settings.partitioner, standing)
    edges = Edges(indptr(tail[order], entities), head[order], relation[order].astype(np.int32), weight[order])
    files |= write_partitions(store, folder, edges, assignment)
    array("mentions/indptr", mention_indptr)
    array("mentions/chunk", graph.mention_chunk)
    array("chunk_links/indptr", indptr(links.source, chunks))
    array("chunk_links/target", links.target)
    array("chunk_links/weight", links.weight)
    array("chunk_links/kind", links.kind)
    return files


def open_graph(store: Store, folder: str) -> StoredGraph:
    """Map a build's arrays; only the entity names are copied, and G_ent where it has several partitions."""
    entities = store.read_table(f"{folder}/entities/part-00000.parquet", ["name", "chunks"])
    relations = store.read_table(f"{folder}/relations/part-00000.parquet", ["name"])

    def array(name: str) -> NDArray[Any]:
        return store.array(f"{folder}/{name}.npy")

    link_indptr = array("chunk_links/indptr")
    edges = open_edges(store, folder)
    return StoredGraph(
        entity_names=entities["name"].combine_chunks(),
        document_counts=entities["chunks"].to_numpy(),
        relation_names=relations["name"].combine_chunks(),
        chunks=len(link_indptr) - 1,
        edge_indptr=edges.indptr,
        edge_source=edges.source,
        edge_relation=edges.relation,
        edge_weight=edges.weight,
        mention_indptr=array("mentions/indptr"),
        mention_chunk=array("mentions/chunk"),
        link_indptr=link_indptr,
        link_target=array("chunk_links/target"),
        link_weight=array("chunk_links/weight"),
        link_kind=array("chunk_links/kind"),
    )
