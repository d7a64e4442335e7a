"""Recall, latency and memory of the dense index's kinds, side by side in one run.

    python benchmarks/dense_search.py [--sizes 100000 300000] [--root ROOT] [--hnsw] [--sweep] [--json FILE]

Vectors of 768 dimensions are made (``text_like_vectors``), others are the MiniLM vectors of an
index at ROOT: its chunks' and its entities', of which some are kept out as queries.  Each kind is
written and opened by the library as a build's is, and asked one query at a time by one thread.

ms is CPU time at the median, which a busy machine lengthens less than the time on the clock;
``of flat`` is flat's divided by it.  Bytes are those of the files that are loaded; RaBitQ's rows
of one byte a dimension are mapped from disk beside them.  --sizes 1000000 takes 8 GB of memory.
"""

from __future__ import annotations

import os

os.environ["OMP_NUM_THREADS"] = os.environ["OPENBLAS_NUM_THREADS"] = "1"  # before NumPy and FAISS are loaded

import argparse
import json
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import faiss
import numpy as np
from machine import describe
from text_like_vectors import Vectors, made

from hybrid_ir.dense.index import DenseIndex, Shard, write_vectors
from hybrid_ir.settings import DenseSettings
from hybrid_ir.store import Store

QUERIES, TIMED = 300, 100
HEADER = (
    f"{'':<30}{'recall@10':>10}{'@100':>8}{'ms, k=10':>10}{'of flat':>9}{'ms, k=100':>11}{'of flat':>9}"
    f"{'bytes/vector':>14}{'built, s':>10}"
)
NAME = "dense/shard-00000.faiss"

Search = Callable[[Vectors, int], np.ndarray]
"""Queries and k -> ids."""


class Row(NamedTuple):
    data: str
    kind: str
    recall_10: float
    recall_100: float
    ms_10: float
    ms_100: float
    bytes_a_vector: float
    built_s: float


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sizes", type=int, nargs="*", default=[100_000, 300_000])
    parser.add_argument("--root", help="an index whose vectors are searched as well")
    parser.add_argument("--hnsw", action="store_true", help="with HNSW, which takes long to build")
    parser.add_argument("--sweep", action="store_true", help="several numbers of probes and candidates")
    parser.add_argument("--json", help="write the rows here as well")
    given = parser.parse_args()
    print(describe(), flush=True)
    rows: list[Row] = []
    for name, vectors, queries in _data(given.sizes, given.root):
        print(f"\n{name}\n{HEADER}", flush=True)
        first = len(rows)
        for row in measure(name, vectors, queries, given.hnsw, given.sweep):
            rows.append(row)
            flat = rows[first]
            print(
                f"{row.kind:<30}{row.recall_10:>10.3f}{row.recall_100:>8.3f}{row.ms_10:>10.2f}"
                f"{flat.ms_10 / row.ms_10:>8.0f}x{row.ms_100:>11.2f}{flat.ms_100 / row.ms_100:>8.0f}x"
                f"{row.bytes_a_vector:>14.0f}{row.built_s:>10.1f}",
                flush=True,
            )
    if given.json:
        Path(given.json).write_text(json.dumps({"machine": describe(), "rows": [row._asdict() for row in rows]}))


def measure(name: str, vectors: Vectors, queries: Vectors, hnsw: bool, sweep: bool) -> Iterator[Row]:
    """Flat first: what it finds is the truth."""
    truth: list[np.ndarray] = []
    with tempfile.TemporaryDirectory() as folder:
        for kind in ("flat", "ivf_sq8", "ivf_rabitq"):
            store = Store(f"{folder}/{kind}")
            start = time.process_time()
            files = write_vectors(store, NAME, vectors, DenseSettings(kind=kind))
            built = time.process_time() - start
            size = sum(entry.bytes for file, entry in files.items() if not file.endswith(".rows.npy"))
            for settings in _settings(kind, sweep):
                index = DenseIndex(store, [Shard(NAME)], settings=settings)
                truth = truth or [index.search(queries, k)[1] for k in (10, 100)]

                def search(asked: Vectors, k: int, index: DenseIndex = index) -> np.ndarray:
                    return index.search(asked, k)[1]

                label = f"{kind} {settings.probes} x{settings.refine}" if sweep and kind != "flat" else kind
                yield _row(name, label, search, queries, truth, size / len(vectors), built)
                del index
        if hnsw:
            yield _hnsw(name, vectors, queries, truth)


def _settings(kind: str, sweep: bool) -> list[DenseSettings]:
    if not sweep or kind == "flat":
        return [DenseSettings(kind=kind)]
    refines = (2, 4, 8) if kind == "ivf_rabitq" else (4,)
    return [DenseSettings(kind=kind, probes=p, refine=r) for p in (16, 32, 64, 128, 256) for r in refines]


def _hnsw(name: str, vectors: Vectors, queries: Vectors, truth: list[np.ndarray]) -> Row:
    start = time.process_time()
    index = faiss.IndexHNSWFlat(vectors.shape[1], 32, faiss.METRIC_INNER_PRODUCT)
    index.add(vectors)
    built = time.process_time() - start
    size = len(faiss.serialize_index(index)) / len(vectors)

    def search(asked: Vectors, k: int) -> np.ndarray:
        return index.search(asked, k, params=faiss.SearchParametersHNSW(efSearch=max(128, 2 * k)))[1]

    return _row(name, "HNSW32, efSearch 128", search, queries, truth, size, built)


def _row(
    name: str, kind: str, search: Search, queries: Vectors, truth: list[np.ndarray], size: float, built: float
) -> Row:
    found = [search(queries, k) for k in (10, 100)]
    return Row(
        name, kind, *map(_recall, found, truth), _ms(search, queries, 10), _ms(search, queries, 100), size, built
    )


def _recall(found: np.ndarray, truth: np.ndarray) -> float:
    return float(np.mean([len(set(a) & set(b)) / len(b) for a, b in zip(found.tolist(), truth.tolist(), strict=True)]))


def _ms(search: Search, queries: Vectors, k: int) -> float:
    spent = []
    for query in range(TIMED):
        start = time.thread_time()
        search(queries[query : query + 1], k)
        spent.append(time.thread_time() - start)
    return float(np.median(spent)) * 1000


def _data(sizes: list[int], root: str | None) -> Iterator[tuple[str, Vectors, Vectors]]:
    for size in sizes:
        yield f"{size:,} made vectors, 768 dimensions", *made(size, QUERIES)
    for name, vectors in _of_root(root) if root else ():
        if len(vectors) < 10 * QUERIES:
            continue
        order = np.random.default_rng(0).permutation(len(vectors))
        kept = vectors[order[QUERIES:]]
        yield f"{len(kept):,} {name} of an index, {kept.shape[1]} dimensions", kept, vectors[order[:QUERIES]]


def _of_root(root: str) -> Iterator[tuple[str, Vectors]]:
    store = Store(root)
    chunks = [np.asarray(store.array(n)) for n in store.files("segments") if "/vectors/" in n and n.endswith(".npy")]
    if chunks:
        yield "chunks", np.concatenate(chunks)
    for name in store.files("builds"):
        if name.endswith("/entity_vectors/shard-00000.faiss"):
            index = faiss.read_index(str(store.local(name)))
            if isinstance(index, faiss.IndexIDMap2):  # of an inverted file only codes are left
                yield "entity names", faiss.downcast_index(index.index).reconstruct_n(0, index.ntotal)


if __name__ == "__main__":
    main()
