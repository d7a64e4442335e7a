"""Entity resolution against FAISS range search on the same vectors, and how its time grows.

    python benchmarks/entity_resolution.py [--vectors 40000] [--dimensions 384 768] [--tau 0.85] [--no-faiss]

Both find all pairs of unit vectors whose cosine exceeds tau: ours tile by tile as the indexing
job's tasks do (``hybrid_ir.graph.synonyms``), on one and on two threads; FAISS by
``IndexFlatIP.range_search`` for all vectors at once with as many threads.  Of two runs of ours the
better counts; FAISS, which takes longest, runs once.  The vectors are made: centres at random, and
around each its neighbours at cosines of 0.6 to 0.95.
"""

from __future__ import annotations

import os

os.environ["OMP_NUM_THREADS"] = os.environ["OPENBLAS_NUM_THREADS"] = "1"  # a tile has one; before NumPy is loaded

import argparse
import platform
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import NamedTuple

import faiss
import numpy as np
import torch
from numpy.typing import NDArray

from hybrid_ir.graph import candidates, synonyms
from hybrid_ir.index.entity_parts import part_count, tiles

Pairs = tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.float32]]
TIE = 1e-5
"""Pairs so close to tau fall on either side by rounding."""


def made(count: int, dimension: int, seed: int = 0) -> NDArray[np.float32]:
    """Unit vectors, shape (count, dimension): one in ten a centre, the others at a cosine of 0.6 to 0.95 to one."""
    rng = np.random.default_rng(seed)
    centres = rng.standard_normal((count // 10, dimension))
    centres /= np.linalg.norm(centres, axis=1, keepdims=True)
    near = centres[rng.integers(0, len(centres), count - len(centres))]
    aside = rng.standard_normal(near.shape)
    aside -= (aside * near).sum(axis=1, keepdims=True) * near
    aside /= np.linalg.norm(aside, axis=1, keepdims=True)
    cosine = rng.uniform(0.6, 0.95, (len(near), 1))
    vectors = np.concatenate([centres, cosine * near + np.sqrt(1 - cosine**2) * aside])
    return np.ascontiguousarray(rng.permutation(vectors), np.float32)


def ours(vectors: NDArray[np.float32], tau: float, threads: int, precision: candidates.Precision) -> Pairs:
    """All tiles, each as a task."""
    parts = part_count(len(vectors))
    ids = np.array_split(np.arange(len(vectors)), parts)
    blocks = [vectors[part] for part in ids]

    def tile(pair: tuple[int, int]) -> Pairs:
        row, column = pair
        return synonyms.similar_pairs(ids[row], blocks[row], ids[column], blocks[column], tau, precision)

    with ThreadPoolExecutor(threads, initializer=torch.set_num_threads, initargs=(1,)) as pool:
        found = list(pool.map(tile, tiles(parts)))
    a, b, cosine = (np.concatenate([part[i] for part in found]) for i in range(3))
    return synonyms.distinct(a, b, cosine)


def theirs(vectors: NDArray[np.float32], tau: float, threads: int) -> Pairs:
    faiss.omp_set_num_threads(threads)
    index = faiss.IndexFlatIP(vectors.shape[1])
    index.add(vectors)
    limits, cosine, b = index.range_search(vectors, tau)
    a = np.repeat(np.arange(len(vectors)), np.diff(limits.astype(np.int64)))
    keep = a < b
    return synonyms.distinct(a[keep], b[keep], cosine[keep])


class Run(NamedTuple):
    pairs: Pairs
    wall: float
    cpu: float
    """Seconds of all threads together: what a busy machine does not lengthen."""


def timed(run: Callable[[], Pairs], times: int = 1) -> Run:
    runs = []
    for _ in range(times):
        wall, cpu = time.perf_counter(), time.process_time()
        pairs = run()
        runs.append(Run(pairs, time.perf_counter() - wall, time.process_time() - cpu))
    return Run(pairs, min(run.wall for run in runs), min(run.cpu for run in runs))


def recall(found: Pairs, expected: Pairs, tau: float) -> float:
    """Share of the expected pairs that were found, ties left out."""
    sure = expected[2] > tau + TIE
    have = np.isin(expected[0][sure] << 32 | expected[1][sure], found[0] << 32 | found[1])
    return float(have.mean()) if len(have) else 1.0


def machine() -> str:
    info = Path("/proc/cpuinfo").read_text() if Path("/proc/cpuinfo").exists() else ""
    model = next((line.partition(":")[2].strip() for line in info.splitlines() if line.startswith("model name")), "")
    flags = sorted(candidates._FLAGS.intersection(info.split()))
    libraries = ", ".join(f"{name} {version(name)}" for name in ("numpy", "torch", "faiss-cpu"))
    return (
        f"{os.cpu_count()} cores, {model or platform.processor()}, {' '.join(flags) or 'no bfloat16 instructions'}; "
        f"Python {platform.python_version()}, {libraries}; load {os.getloadavg()[0]:.1f} at the start"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--vectors", type=int, default=40_000)
    parser.add_argument("--dimensions", type=int, nargs="+", default=[384, 768])
    parser.add_argument("--tau", type=float, default=0.85)
    parser.add_argument("--no-faiss", action="store_true", help="leave the comparison out")
    given = parser.parse_args()
    print(machine(), f"{given.vectors:,} vectors, tau {given.tau}", sep="\n", flush=True)
    for dimension in given.dimensions:
        vectors = made(given.vectors, dimension)
        compare(vectors, given.tau, not given.no_faiss)
        grow(vectors, given.tau)


def compare(vectors: NDArray[np.float32], tau: float, with_faiss: bool) -> None:
    chosen = candidates._faster()
    print(f"\n{vectors.shape[1]} dimensions; the filter that auto takes here: {chosen}")
    print(f"{'':<26}{'threads':>8}{'wall s':>9}{'ratio':>8}{'CPU s':>9}{'ratio':>8}{'pairs':>10}{'recall':>9}")
    for threads in (1, 2):
        runs: dict[str, Run] = {}
        if with_faiss:
            runs["FAISS range_search"] = timed(partial(theirs, vectors, tau, threads))
        for precision in dict.fromkeys(("float32", chosen)):
            runs[f"ours, {precision} filter"] = timed(partial(ours, vectors, tau, threads, precision), 2)
        first = next(iter(runs.values()))
        for name, run in runs.items():
            print(
                f"{name:<26}{threads:>8}{run.wall:>9.2f}{first.wall / run.wall:>7.1f}x{run.cpu:>9.2f}"
                f"{first.cpu / run.cpu:>7.1f}x{len(run.pairs[0]):>10,}{recall(run.pairs, first.pairs, tau):>9.5f}",
                flush=True,
            )


def grow(vectors: NDArray[np.float32], tau: float) -> None:
    counts = [len(vectors) // 4, len(vectors) // 2, len(vectors)]
    taken = [timed(partial(ours, vectors[:count], tau, 1, "auto"), 3).cpu for count in counts]
    slope = np.polyfit(np.log(counts), np.log(taken), 1)[0]
    points = ", ".join(f"{count:,}: {second:.2f} s" for count, second in zip(counts, taken, strict=True))
    print(f"growth of CPU time, one thread: {points}; slope {slope:.2f} (all pairs: 2 in the limit)", flush=True)


if __name__ == "__main__":
    main()
