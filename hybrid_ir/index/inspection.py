"""What a build holds, for a person who wants to look: counts, errors, one chunk, one entity."""

from __future__ import annotations

import re
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from hybrid_ir.errors import NotFound
from hybrid_ir.index import error_records, layout
from hybrid_ir.index.chunk_store import ChunkStore
from hybrid_ir.index.manifest import Manifest
from hybrid_ir.index.plan import plan_of
from hybrid_ir.records import Chunk, Record
from hybrid_ir.store import Store


class ErrorKind(Record):
    """Errors of one stage with one reason."""

    stage: str
    reason: str
    """Of several that differ in names and numbers alone, what they share: ``Line N of FILE is not valid JSON``."""
    count: int
    example: str
    """Subject and file of one of them, and its reason where they differ."""


class ChunkContents(Record):
    """A chunk with what was extracted from it."""

    chunk: Chunk
    mentions: tuple[str, ...]
    triples: tuple[tuple[str, str, str], ...]


class EntityContents(Record):
    """An entity with the triples it takes part in and the chunks that hold it."""

    name: str
    triples: tuple[tuple[str, str, str], ...]
    synonyms: tuple[str, ...]
    chunks: tuple[str, ...]


def errors(store: Store, manifest: Manifest) -> list[dict[str, str]]:
    """Every error record of a build, without those of documents that were replaced or deleted since."""
    name = plan_of(store, manifest).tombstones
    tombstones = store.read_table(name) if name in manifest.files else None
    return [row for _, row in error_records.live(store, manifest.segments, tombstones)]


def documents(store: Store, manifest: Manifest) -> list[dict[str, object]]:
    """Id, title, source and number of chunks of every live document."""
    plan = plan_of(store, manifest)
    dead = set(plan.dead().tolist())
    rows: list[dict[str, object]] = []
    for segment_id, shard, first in plan.shards():
        name = layout.shard(segment_id, "documents", shard)
        table = store.read_table(name, ["id", "title", "source", "first_chunk", "chunks"])
        for row in table.to_pylist():
            if row.pop("first_chunk") + first not in dead:
                rows.append(row)
    return sorted(rows, key=lambda row: str(row["id"]))


def error_kinds(rows: list[dict[str, str]]) -> list[ErrorKind]:
    """Errors grouped by stage and reason, the most frequent first; names of files and documents do not count."""
    groups: dict[tuple[str, str], list[dict[str, str]]] = {}
    for row in rows:
        groups.setdefault((row["stage"], _general(row)), []).append(row)
    kinds = []
    for (stage, reason), group in groups.items():
        first = group[0]
        alike = all(row["reason"] == first["reason"] for row in group)
        example = f"{first['subject']} ({first['source']})"
        kinds.append(
            ErrorKind(
                stage=stage,
                reason=first["reason"] if alike else reason,
                count=len(group),
                example=example if alike else f"{example}: {first['reason']}",
            )
        )
    return sorted(kinds, key=lambda kind: (-kind.count, kind.stage, kind.reason))


_PATH = re.compile(r"(?<![\w/])(?:\w+:/|\.{0,2})/[^\s,;:()'\"]+|\w[\w.~-]*(?:/[\w.~-]+)+\.\w+")
_NUMBER = re.compile(r"\d+(?:[.,]\d+)*")


def _general(row: dict[str, str]) -> str:
    """The reason without what is this error's own: ``Line N of FILE is not valid JSON``."""
    reason = row["reason"].replace(row["source"] or "FILE", "FILE")
    for name in (row["subject"], row["subject"].rpartition("#")[0]):
        reason = reason.replace(repr(name), "ID")
    return _NUMBER.sub("N", _PATH.sub("FILE", reason))


def chunk(store: Store, manifest: Manifest, chunk_id: str) -> ChunkContents:
    """One chunk by its id.  Raises NotFound."""
    segment_id, shard, found = ChunkStore(store, manifest).locate(chunk_id)
    where: list[tuple[str, str, object]] = [("chunk_id", "=", chunk_id)]
    mentions = store.read_table(layout.shard(segment_id, "mentions", shard), where=where)["name"].to_pylist()
    rows = store.read_table(layout.shard(segment_id, "triples", shard), where=where).to_pylist()
    triples = [(row["head"], row["relation"], row["tail"]) for row in rows]
    return ChunkContents(chunk=found, mentions=tuple(mentions), triples=tuple(triples))


def entity(store: Store, manifest: Manifest, name: str, limit: int = 50) -> EntityContents:
    """One entity by its exact name; at most ``limit`` triples and chunks.  Raises NotFound."""
    from hybrid_ir.graph.store import open_graph

    graph = open_graph(store, layout.build(manifest.build_id))
    number = pc.index(graph.entity_names, pa.scalar(name)).as_py()
    if number < 0:
        raise NotFound(f"No entity {name!r} in build {manifest.build_id}; names are as the extractor writes them.")
    names, relations = graph.entity_names, graph.relation_names
    ends = _edges(graph, number)
    triples = [(names[h].as_py(), relations[r].as_py(), names[t].as_py()) for h, r, t in ends if r != 0]
    synonyms = [names[t if h == number else h].as_py() for h, r, t in ends if r == 0]
    held = graph.mention_chunk[graph.mention_indptr[number] : graph.mention_indptr[number + 1]][:limit]
    chunks = ChunkStore(store, manifest)
    return EntityContents(
        name=name,
        triples=tuple(triples[:limit]),
        synonyms=tuple(sorted(synonyms)[:limit]),
        chunks=tuple(chunks.by_number(int(n)).id for n in held),
    )


def _edges(graph: Any, number: int) -> list[tuple[int, int, int]]:
    """(head, relation, tail) of the edges that touch an entity."""
    import numpy as np

    into = range(int(graph.edge_indptr[number]), int(graph.edge_indptr[number + 1]))
    edges = [(int(graph.edge_source[i]), int(graph.edge_relation[i]), number) for i in into]
    for i in np.flatnonzero(np.asarray(graph.edge_source) == number).tolist():
        tail = int(np.searchsorted(graph.edge_indptr, i, side="right")) - 1
        if tail != number:
            edges.append((number, int(graph.edge_relation[i]), tail))
    return edges
