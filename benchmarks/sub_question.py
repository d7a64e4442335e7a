"""The retrieval of one sub-question at 100,000 chunks, and where its time goes.

    python benchmarks/sub_question.py [--chunks 100000] [--queries 50] [--json FILE]

The vectors of chunks and entities are made (``text_like_vectors``), the graph is random and
skewed as graphs of text are (an entity's share of edges and mentions falls with its rank to the
power of .8), with twice as many entities as chunks, 3 triples and 8 mentions a chunk and 5 links
to similar chunks.  Three entities are linked by name, and three names that the graph does not know
by vector, the dearest way; each of the former is drawn as often as it is mentioned.  Not counted: the
encoder, whose vectors are made, and the texts, which are read after fusion.

Each part alone, at the median: its CPU time, which a busy machine lengthens less, and the clock.
``whole`` has the two paths at the same time on two threads, as the retriever runs them; its CPU
time is that of both.
"""

from __future__ import annotations

import os

os.environ["OMP_NUM_THREADS"] = os.environ["OPENBLAS_NUM_THREADS"] = "1"

import argparse
import asyncio
import json
import tempfile
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from machine import describe
from text_like_vectors import Vectors, made

from hybrid_ir.dense.index import DenseIndex, Shard, write_vectors
from hybrid_ir.graph.knowledge_graph import indptr
from hybrid_ir.graph.pagerank import PageRank
from hybrid_ir.graph.store import StoredGraph
from hybrid_ir.retrieval.dense_path import DensePath
from hybrid_ir.retrieval.fusion import fuse
from hybrid_ir.retrieval.graph_path import GraphPath, top
from hybrid_ir.retrieval.linking import Linker
from hybrid_ir.roles import PathRanking, Query
from hybrid_ir.settings import DenseSettings, FusionSettings, GraphPathSettings, LinkerSettings
from hybrid_ir.store import Store

LINKED, LISTED = 3, 100
"""Entities of a sub-question; chunks in each path's list."""
ENTITY_DIMENSION = 384
SKEW = 0.8


class MadeEncoder:
    """Gives ready vectors: what an encoder takes is not measured here."""

    fingerprint: Mapping[str, str] = {}

    def __init__(self, vectors: Vectors) -> None:
        self._vectors, self.dimension = vectors, vectors.shape[1]

    def encode_queries(self, texts: list[str]) -> Vectors:
        return self._vectors[[int(text.rpartition(" ")[2]) % len(self._vectors) for text in texts]]

    def encode_passages(self, titles: list[str], texts: list[str]) -> Vectors:
        return self.encode_queries(texts)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--chunks", type=int, default=100_000)
    parser.add_argument("--queries", type=int, default=50)
    parser.add_argument("--json", help="write the figures here as well")
    given = parser.parse_args()
    print(describe(), flush=True)
    graph = random_graph(given.chunks)
    print(
        f"{graph.chunks:,} chunks, {graph.entities:,} entities, {len(graph.edge_source):,} edges, "
        f"{len(graph.mention_chunk):,} mentions, {len(graph.link_target):,} links",
        flush=True,
    )
    with tempfile.TemporaryDirectory() as folder:
        spent = measure(graph, Store(folder), given.queries)
    print(f"\n{'':<40}{'CPU ms':>9}{'clock ms':>10}")
    figures = {name: (np.median(times, axis=0) * 1e3).tolist() for name, times in spent.items()}
    for name, (cpu, clock) in figures.items():
        print(f"{name:<40}{cpu:>9.2f}{clock:>10.2f}")
    if given.json:
        Path(given.json).write_text(json.dumps({"machine": describe(), "cpu and clock, ms": figures}))


def measure(graph: StoredGraph, store: Store, queries: int) -> dict[str, list[tuple[float, float]]]:
    """(CPU seconds, seconds on the clock) of each part, a list over the queries."""
    settings = GraphPathSettings()
    chunks, asked = opened(store, "chunks", graph.chunks, queries, 768)
    entities, mentions = opened(store, "entities", graph.entities, LINKED * queries, ENTITY_DIMENSION)
    linker = Linker(graph.entity_names, entities, MadeEncoder(mentions), LinkerSettings(floor=0.0))
    scorer = PageRank(graph, settings)
    iterated = PageRank(graph, settings.model_copy(update={"exact_up_to_edges": 1 << 62}))
    dense = DensePath(chunks, MadeEncoder(asked), lambda _: None)
    path = GraphPath(linker, scorer, None, graph.document_counts, settings)  # type: ignore[arg-type]
    spent: dict[str, list[tuple[float, float]]] = {}
    same = []
    rng = np.random.default_rng(1)
    mentioned = np.repeat(np.arange(graph.entities), np.diff(graph.mention_indptr))

    def timed(name: str, call: Callable[[], Any]) -> Any:
        clock, cpu = time.perf_counter(), time.process_time()
        result = call()
        spent.setdefault(name, []).append((time.process_time() - cpu, time.perf_counter() - clock))
        return result

    loop = asyncio.Runner()  # one loop and its threads for all, as a service has
    for number in range(queries):
        unknown = tuple(f"mention {LINKED * number + i}" for i in range(LINKED))
        known = tuple(graph.entity_names[int(entity)].as_py() for entity in rng.choice(mentioned, LINKED))
        query = Query(text=f"question {number}", entities=known + unknown)
        timed("link 3 entities by name, 3 by vector", lambda query=query: linker.link_many(query.entities))
        seeds = path.seeds(query)[1]
        scores = timed("PageRank, pushed", lambda seeds=seeds: scorer.score(seeds))[1]
        best = timed("the 100 best chunks of the graph", lambda scores=scores: top(scores, LISTED))
        exact = top(timed("(PageRank, iterated to 1e-7)", lambda seeds=seeds: iterated.score(seeds))[1], LISTED)
        same.append(len(np.intersect1d(best, exact)) / max(len(exact), 1))
        rankings = {
            "graph": path.rank_now(query, LISTED),
            "dense": timed("dense path: 100 of all chunks", lambda query=query: dense.rank_now(query, LISTED)),
        }
        timed("fuse", lambda rankings=rankings: fuse(rankings, FusionSettings()))
        timed("whole", lambda query=query: loop.run(whole(path, dense, query)))
    loop.close()
    print(f"the pushed 100 chunks are the iterated ones to {np.mean(same):.1%}", flush=True)
    return spent


async def whole(graph: GraphPath, dense: DensePath, query: Query) -> None:
    found: list[PathRanking] = await asyncio.gather(graph.rank(query, LISTED), dense.rank(query, LISTED))
    fuse(dict(zip(("graph", "dense"), found, strict=True)), FusionSettings())


def opened(store: Store, folder: str, count: int, queries: int, dimension: int) -> tuple[DenseIndex, Vectors]:
    vectors, asked = made(count, queries, dimension)
    name = f"{folder}/shard-00000.faiss"
    write_vectors(store, name, vectors, DenseSettings())
    return DenseIndex(store, [Shard(name)]), asked


def random_graph(chunks: int, seed: int = 0) -> StoredGraph:
    rng = np.random.default_rng(seed)
    entities = 2 * chunks
    weight = np.arange(1, entities + 1) ** -SKEW
    order = rng.permutation(entities)

    def some(count: int) -> np.ndarray:
        return order[rng.choice(entities, count, p=weight / weight.sum())]

    mention = np.unique(some(8 * chunks) * chunks + np.repeat(np.arange(chunks), 8))
    tail = np.sort(some(3 * chunks))
    source = np.repeat(np.arange(chunks), 5)
    near = (source + rng.integers(1, 500, len(source))) % chunks
    return StoredGraph(
        entity_names=pa.array([f"e{number:09d}" for number in range(entities)]),
        document_counts=np.bincount(mention // chunks, minlength=entities),
        relation_names=pa.array(["equivalent", "r"]),
        chunks=chunks,
        edge_indptr=indptr(tail, entities),
        edge_source=some(len(tail)),
        edge_relation=np.ones(len(tail), np.int32),
        edge_weight=np.ones(len(tail), np.float32),
        mention_indptr=indptr(mention // chunks, entities),
        mention_chunk=mention % chunks,
        link_indptr=indptr(source, chunks),
        link_target=near,
        link_weight=rng.uniform(0.6, 0.9, len(near)).astype(np.float32),
        link_kind=np.zeros(len(near), np.int8),
    )


if __name__ == "__main__":
    main()
