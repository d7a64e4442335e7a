"""G_doc of a build: each shard's similarity links, and the citations."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from hybrid_ir.dense.index import DenseIndex
from hybrid_ir.graph import chunk_links
from hybrid_ir.graph.chunk_links import ChunkLinks, CitedDocument
from hybrid_ir.graph.knowledge_graph import Numbers
from hybrid_ir.graph.store import StoredGraph, open_graph
from hybrid_ir.index import layout, manifest
from hybrid_ir.index.dense_shards import open_dense
from hybrid_ir.index.plan import BuildPlan


@dataclass
class Neighbourhood:
    """What finding neighbours needs; opened once by a worker."""

    plan: BuildPlan
    dead: Numbers
    whole: DenseIndex
    """All live chunks."""
    added: DenseIndex | None = None
    """The live chunks of the segments that the changed build did not have; None: there is no such build."""
    old: StoredGraph | None = None
    old_segments: frozenset[str] = frozenset()


def open_neighbourhood(plan: BuildPlan) -> Neighbourhood:
    dead = plan.dead()
    whole = open_dense(plan)
    if plan.previous is None:
        return Neighbourhood(plan, dead, whole)
    held = frozenset(segment.id for segment in manifest.read(plan.store, plan.previous).segments)
    added = open_dense(plan, leave_out=held)
    old = open_graph(plan.store, layout.build(plan.previous))
    return Neighbourhood(plan, dead, whole, added, old, held)


def neighbours(here: Neighbourhood, segment_id: str, shard: int, first: int) -> int:
    """Write the similarity links of one shard's live chunks; returns how many."""
    plan, settings = here.plan, here.plan.settings.graph
    target = f"{plan.work}/links/{segment_id}-{shard:05d}.parquet"
    if plan.store.exists(target):
        return int(plan.store.open_parquet(target).metadata.num_rows)
    vectors = np.asarray(plan.store.array(layout.shard(segment_id, "vectors", shard)))
    numbers = np.arange(first, first + len(vectors))
    alive = ~np.isin(numbers, here.dead)
    numbers, vectors = numbers[alive], vectors[alive]
    wanted = settings.chunk_neighbours + 1
    if segment_id in here.old_segments and here.old is not None and here.added is not None:
        scores, found, lost = _old_lists(here.old, here.dead, numbers, wanted)
        more_scores, more_found = here.added.search(vectors, wanted)
        scores, found = np.concatenate([scores, more_scores], 1), np.concatenate([found, more_found], 1)
        if lost.any():  # a neighbour died: someone else may take its place
            again_scores, again_found = here.whole.search(vectors[lost], wanted)
            scores[lost], found[lost] = -np.inf, -1
            scores[lost, :wanted], found[lost, :wanted] = again_scores, again_found
        order = np.lexsort((found, -scores), axis=1)
        scores, found = np.take_along_axis(scores, order, 1), np.take_along_axis(found, order, 1)
    else:
        scores, found = here.whole.search(vectors, wanted)
    links = chunk_links.nearest(numbers, scores, found, settings.chunk_neighbours, settings.chunk_similarity_floor)
    table = pa.table({"source": links.source, "target": links.target, "weight": links.weight})
    plan.store.write_table(target, table)
    return len(links.source)


def collect(plan: BuildPlan) -> ChunkLinks:
    """All links of the build, by similarity and by citation."""
    parts = [chunk_links.citations(list(_documents(plan)))]
    for name in plan.store.files(f"{plan.work}/links"):
        table = plan.store.read_table(name)
        kind = np.full(table.num_rows, chunk_links.SIMILARITY, np.int8)
        parts.append(
            ChunkLinks(table["source"].to_numpy(), table["target"].to_numpy(), table["weight"].to_numpy(), kind)
        )
    return chunk_links.merge(parts)


def _old_lists(
    old: StoredGraph, dead: Numbers, numbers: Numbers, wanted: int
) -> tuple[NDArray[np.float32], NDArray[np.int64], NDArray[np.bool_]]:
    """The changed build's links of these chunks as lists, and which of them lost a neighbour."""
    scores = np.full((len(numbers), wanted), -np.inf, np.float32)
    found = np.full((len(numbers), wanted), -1, np.int64)
    for row, number in enumerate(numbers.tolist()):
        span = slice(int(old.link_indptr[number]), int(old.link_indptr[number + 1]))
        similar = np.asarray(old.link_kind[span]) == chunk_links.SIMILARITY
        targets = np.asarray(old.link_target[span])[similar]
        weights = np.asarray(old.link_weight[span])[similar]
        found[row, : len(targets)], scores[row, : len(targets)] = targets, weights
    lost: NDArray[np.bool_] = np.logical_or.reduce(np.isin(found, dead), axis=1)
    return scores, found, lost


def _documents(plan: BuildPlan) -> Iterator[CitedDocument]:
    dead = plan.dead()
    for segment_id, shard, first in plan.shards():
        name = layout.shard(segment_id, "documents", shard)
        table = plan.store.read_table(name, ["pmid", "doi", "references", "first_chunk"])
        alive = ~np.isin(table["first_chunk"].to_numpy() + first, dead)
        for row in table.filter(pa.array(alive)).to_pylist():
            yield CitedDocument(first + row["first_chunk"], row["pmid"], row["doi"], tuple(row["references"]))
