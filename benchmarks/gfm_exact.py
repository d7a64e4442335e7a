"""The exact GFM pass against a straightforward PyTorch one, on random weights and skewed random graphs.

    python benchmarks/gfm_exact.py [--sizes small large] [--batches 1 8] [--threads 1 2] [--json]

Each run is a process of its own, so that its peak memory is its own.  The plain version does what
GFM-RAG's published code does: relation projections for every query, index_select and scatter,
concatenation, every layer's states kept.  The floor is computed from rates measured here in the
same run: fp32 products at this machine's matrix rate, and one read of what the edges need at its
gather rate; projections (ours makes them once a build) are in neither ours nor the floor.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import machine
import numpy as np
import torch
from torch import Tensor

from hybrid_ir.graph.gfm.config import GFMConfig
from hybrid_ir.graph.gfm.exact import ExactGFM
from hybrid_ir.graph.gfm.network import GFM
from hybrid_ir.graph.gfm.projection import Projected
from hybrid_ir.graph.messages import MessageGraph, message_graph

SIZES = {"small": (10_000, 50_000, 8_000), "large": (100_000, 500_000, 80_000)}
"""Nodes, triples, and relations with their inverses."""
SEEDS = 4


def skewed_graph(nodes: int, triples: int, relations: int, seed: int = 0) -> MessageGraph:
    """Degrees fall off like those of extracted graphs: a few hubs, many nodes with one or two edges."""
    random = np.random.default_rng(seed)
    order = random.permutation(nodes)
    head, tail = (order[(nodes * random.random(triples) ** 2.5).astype(np.int64)] for _ in range(2))
    relation = (relations // 2 * random.random(triples) ** 2).astype(np.int64)
    return message_graph(head, relation, tail, nodes, relations // 2)


def network(seed: int = 0) -> GFM:
    torch.manual_seed(seed)
    return GFM(GFMConfig()).eval().requires_grad_(False)


def queries(graph: MessageGraph, count: int) -> tuple[Tensor, list[dict[int, float]]]:
    random = np.random.default_rng(7)
    torch.manual_seed(7)
    reachable = np.flatnonzero(np.diff(graph.indptr))
    seeds = [{int(n): float(random.uniform(0.05, 1)) for n in random.choice(reachable, SEEDS)} for _ in range(count)]
    return torch.randn(count, GFMConfig().text_dimension), seeds


def plain(model: GFM, graph: MessageGraph, vectors: Tensor, questions: Tensor, seeds: list[dict[int, float]]) -> Tensor:
    """As a first version is written: batched, nothing fused, nothing cached, every state kept."""
    receiver = torch.from_numpy(np.repeat(np.arange(graph.nodes), np.diff(graph.indptr)))
    source, kind = torch.from_numpy(graph.source.astype(np.int64)), torch.from_numpy(graph.relation.astype(np.int64))
    batch = len(questions)
    q = model.question_mlp(questions)
    x0 = torch.zeros(batch, graph.nodes, q.shape[1])
    for row, given in enumerate(seeds):
        for node, weight in given.items():
            x0[row, node] = weight * q[row]
    x, kept = x0, []
    for layer in model.entity_model.layers:
        relations = layer.relation_projection(model.rel_mlp(vectors)).expand(batch, -1, -1)
        message = relations.index_select(1, kind) * x.index_select(1, source)
        u = torch.zeros_like(x).index_add_(1, receiver, message) + x0
        hidden = layer.linear(torch.cat([x, u], dim=-1))
        x = x + torch.relu(layer.layer_norm(hidden))
        kept.append(x)
    return model.entity_model.mlp(torch.cat([x, q[:, None].expand_as(x)], dim=-1)).squeeze(-1)


def one(kind: str, size: str, batch: int, repeat: int, keep: str) -> dict[str, Any]:
    """One process's work; prints and keeps nothing but its figures and scores."""
    graph, model = skewed_graph(*SIZES[size]), network()
    torch.manual_seed(1)
    vectors = torch.randn(SIZES[size][2], GFMConfig().text_dimension)
    questions, seeds = queries(graph, batch)
    with torch.inference_mode():
        start = time.perf_counter()
        if kind == "plain":
            call: Callable[[], Any] = lambda: plain(model, graph, vectors, questions, seeds).numpy()  # noqa: E731
        else:
            exact = ExactGFM(Projected(model, vectors, "bfloat16" if kind == "ours bf16" else "float32"), graph)
            call = lambda: exact.score(questions, seeds)  # noqa: E731
        ready = time.perf_counter() - start
        if kind != "plain":
            call()  # numba compiles, or reads what it compiled before
        seconds = []
        for _ in range(repeat):
            start = time.perf_counter()
            scores = call()
            seconds.append(time.perf_counter() - start)
    np.save(keep, scores)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    return {"ready": ready, "seconds": min(seconds), "per_query": min(seconds) / batch, "peak_gib": peak}


def rates(threads: int) -> dict[str, float]:
    """This machine's fp32 matrix rate (FLOP/s) and the rate at which rows of 2 KiB are gathered (bytes/s)."""
    torch.set_num_threads(threads)
    a, b = torch.randn(2048, 1024), torch.randn(1024, 512)
    product = best(lambda: a @ b, 20)
    rows = torch.randn(200_000, 512)
    at = torch.randint(0, len(rows), (100_000,))
    out = torch.empty(len(at), 512)
    gather = best(lambda: torch.index_select(rows, 0, at, out=out), 5)
    return {"flops": 2 * 2048 * 1024 * 512 / product, "bytes": len(at) * 512 * 4 * 2 / gather}


def best(call: Callable[[], Any], repeat: int) -> float:
    least = float("inf")
    for _ in range(repeat):
        start = time.perf_counter()
        call()
        least = min(least, time.perf_counter() - start)
    return least


def floor(size: str, batch: int, measured: dict[str, float]) -> tuple[float, float, float]:
    """(seconds, FLOP, bytes) that a pass over the graph cannot do without: five full layers and the score."""
    nodes, triples, _ = SIZES[size]
    d = GFMConfig().dimension
    flop = 2.0 * nodes * batch * (5 * 2 * d * d + 2 * d * d)  # [x ; u] -> d in each layer; x -> 2 d in the score
    moved = 5.0 * 2 * triples * (batch + 1) * d * 4  # a state a query and a projected relation for each message
    return flop / measured["flops"] + moved / measured["bytes"], flop, moved


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sizes", nargs="+", default=["small", "large"], choices=SIZES)
    parser.add_argument("--batches", type=int, nargs="+", default=[1, 8])
    parser.add_argument("--threads", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--repeat", type=int, default=2)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--one", nargs=2, metavar=("KIND", "KEEP"), help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.one:
        print(json.dumps(one(given.one[0], given.sizes[0], given.batches[0], given.repeat, given.one[1])))
        return
    print(machine.describe())
    results: list[dict[str, Any]] = []
    with tempfile.TemporaryDirectory() as folder:
        for threads in given.threads:
            measured = rates(threads)
            matrix, gather = measured["flops"] / 1e9, measured["bytes"] / 1e9
            print(f"{threads} threads: {matrix:.0f} GFLOP/s in fp32 products, {gather:.1f} GB/s gathered")
            for size in given.sizes:
                for batch in given.batches:
                    compare(size, batch, threads, given.repeat, measured, Path(folder), results)
    if given.json:
        print(json.dumps(results))


def compare(
    size: str,
    batch: int,
    threads: int,
    repeat: int,
    measured: dict[str, float],
    folder: Path,
    results: list[dict[str, Any]],
) -> None:
    least, flop, moved = floor(size, batch, measured)
    nodes, triples, relations = SIZES[size]
    print(f"{nodes} nodes, {triples} triples, {relations} relations; batch {batch}, {threads} threads; ", end="")
    print(f"floor {least:.2f} s ({flop / 1e9:.0f} GFLOP, {moved / 1e9:.1f} GB)")
    found: dict[str, dict[str, Any]] = {}
    for kind in ("plain", "ours", "ours bf16"):
        keep = folder / f"{kind}.npy"
        command = [sys.executable, __file__, "--one", kind, str(keep), "--sizes", size, "--batches", str(batch)]
        environment = {**os.environ, "OMP_NUM_THREADS": str(threads), "NUMBA_NUM_THREADS": str(threads)}
        # A version that needs more memory than there is ends here, and the table says so.
        done = subprocess.run(  # noqa: S603
            [*command, "--repeat", str(repeat)], capture_output=True, text=True, env=environment, check=False
        )
        if done.returncode:
            print(
                f"  {kind:<10} did not end: {done.stderr.strip().splitlines()[-1] if done.stderr else done.returncode}"
            )
            continue
        found[kind] = {**json.loads(done.stdout), "scores": np.load(keep)}
        line, base = found[kind], found.get("plain")
        shown = (
            f"  {kind:<10} {line['seconds']:8.2f} s  {line['per_query']:8.2f} s a query  {line['peak_gib']:6.2f} GiB"
        )
        if kind != "plain":
            shown += f"  {least / line['seconds']:.0%} of the floor"
            if base:
                error = float(np.abs(line["scores"] - base["scores"]).max())
                shown += f"  {base['seconds'] / line['seconds']:.2f} x faster"
                shown += f"  {line['peak_gib'] / base['peak_gib']:.2f} of the memory  largest difference {error:.1e}"
        print(shown, flush=True)
    results.append(
        {"size": size, "batch": batch, "threads": threads, "floor": least}
        | {kind: {k: v for k, v in line.items() if k != "scores"} for kind, line in found.items()}
    )


if __name__ == "__main__":
    main()
