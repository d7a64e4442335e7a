"""The bounded GFM pass against the exact one: time, error and overlap over K, and growth with the graph.

    python benchmarks/gfm_bounded.py curve  [--nodes 30000 100000] [--queries 50] [--plot FILE]
    python benchmarks/gfm_bounded.py curve --trained [--minutes 3]
    python benchmarks/gfm_bounded.py growth [--nodes 10000 30000 100000 300000]
    python benchmarks/gfm_bounded.py push   [--nodes 100000 1000000]

Random weights prove the machinery, not the approximation under trained ones: ``--trained`` first
trains a small network (64 dimensions) on the graph's own triples, head and relation in, tail out.
Times hold the walk that picks the active nodes, the pass, the candidates' scores and the ranking of
chunks; both modes rank with the same ranker (softmax over their candidates, summed through M).
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
from pathlib import Path
from typing import Any

import machine
import numpy as np
import torch
from gfm_exact import queries, skewed_graph

from hybrid_ir.graph.gfm.background import Background, compute, open_background, write
from hybrid_ir.graph.gfm.bounded import BoundedGFM
from hybrid_ir.graph.gfm.config import GFMConfig
from hybrid_ir.graph.gfm.exact import ExactGFM
from hybrid_ir.graph.gfm.network import GFM
from hybrid_ir.graph.gfm.owner import LocalOwners, PartitionOwner
from hybrid_ir.graph.gfm.projection import Projected
from hybrid_ir.graph.messages import MessageGraph
from hybrid_ir.graph.push import push
from hybrid_ir.graph.rankers import chunk_scores, relevance
from hybrid_ir.store import Store

KS = (125, 250, 500, 1000, 2000, 4000)
TOP = 20


def mentions(nodes: int, seed: int = 5) -> tuple[np.ndarray, np.ndarray, int]:
    """M as CSR by entity: about three chunks an entity, a third as many chunks as entities."""
    random = np.random.default_rng(seed)
    chunks = max(nodes // 3, 1)
    count = 1 + random.poisson(2.0, nodes)
    return np.concatenate([[0], np.cumsum(count)]), random.integers(0, chunks, int(count.sum())), chunks


def top_chunks(entities: np.ndarray, logits: np.ndarray, held: tuple[np.ndarray, np.ndarray, int]) -> list[int]:
    indptr, chunk, _ = held
    shares = relevance(logits, "softmax", np.diff(indptr)[entities])
    found, scores = chunk_scores(entities, shares, indptr, chunk)
    return found[np.lexsort((found, -scores))[:TOP]].tolist()


def train(graph: MessageGraph, vectors: torch.Tensor, minutes: float) -> GFM:
    """A small network that finds tails from heads and relations, by softmax over all nodes."""
    torch.manual_seed(0)
    model = GFM(GFMConfig(text_dimension=vectors.shape[1], dimension=64))
    receiver = np.repeat(np.arange(graph.nodes), np.diff(graph.indptr))
    edges = torch.from_numpy(np.stack([graph.source.astype(np.int64), receiver]))
    kinds = torch.from_numpy(graph.relation.astype(np.int64))
    optimizer = torch.optim.AdamW(model.parameters(), lr=5e-3)
    random, end, losses = np.random.default_rng(1), time.monotonic() + 60 * minutes, []
    while time.monotonic() < end:
        # A message (source, r, receiver): who asks for r from the receiver is answered by the source.
        at = int(random.integers(graph.edges))
        seeds = torch.zeros(graph.nodes)
        seeds[int(receiver[at])] = 1.0
        logits = model(vectors[int(graph.relation[at])], seeds, edges, kinds, vectors)
        loss = torch.nn.functional.cross_entropy(logits[None], edges[0, at : at + 1])
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        losses.append(float(loss))
    last = losses[-max(1, len(losses) // 5) :]
    before, after, chance = np.mean(losses[:10]), np.mean(last), np.log(graph.nodes)
    print(f"trained {len(losses)} steps: loss {before:.2f} -> {after:.2f} (chance {chance:.2f})")
    return model.eval().requires_grad_(False)


def setting(nodes: int, trained: bool, minutes: float) -> tuple[GFM, MessageGraph, torch.Tensor]:
    relations = min(80_000, max(nodes * 8 // 10 // 2 * 2, 2)) if not trained else 200
    graph = skewed_graph(nodes, 5 * nodes, relations)
    torch.manual_seed(1)
    vectors = torch.randn(relations, GFMConfig().text_dimension)
    if trained:
        return train(graph, vectors, minutes), graph, vectors
    torch.manual_seed(0)
    return GFM(GFMConfig()).eval().requires_grad_(False), graph, vectors


def ask(
    graph: MessageGraph, vectors: torch.Tensor, count: int, trained: bool
) -> tuple[torch.Tensor, list[dict[int, float]]]:
    if not trained:
        return queries(graph, count)
    random = np.random.default_rng(7)
    at = random.choice(graph.edges, count, replace=False)
    receiver = np.searchsorted(graph.indptr, at, side="right") - 1
    return vectors[graph.relation[at].astype(np.int64)], [{int(node): 1.0} for node in receiver]


def alone(graph: MessageGraph, background: Background) -> LocalOwners:
    return LocalOwners([PartitionOwner(0, graph.nodes, graph, background)], graph.nodes)


def curve(given: argparse.Namespace) -> list[dict[str, Any]]:
    rows = []
    for nodes in given.nodes or ([10_000, 30_000] if given.trained else [30_000, 100_000]):
        model, graph, vectors = setting(nodes, given.trained, given.minutes)
        held = mentions(nodes)
        exact = ExactGFM(Projected(model, vectors), graph)
        background = compute(exact)
        questions, seeds = ask(graph, vectors, given.queries, given.trained)
        everyone = np.arange(nodes)
        exact.score(questions[:1], seeds[:1])
        truth, wanted, exact_seconds = [], [], []
        for row, start_seeds in enumerate(seeds):
            start = time.perf_counter()
            truth.append(exact.score(questions[row : row + 1], [start_seeds])[0])
            wanted.append(top_chunks(everyone, truth[-1], held))
            exact_seconds.append(time.perf_counter() - start)
        rested = exact.score(questions, [{} for _ in seeds]) if given.queries <= 8 else None
        for active in KS:
            bounded = BoundedGFM(exact.projected, alone(graph, background), active)
            bounded.score(questions[0], seeds[0])
            seconds, overlap, error, reached = [], [], [], []
            for row, start_seeds in enumerate(seeds):
                start = time.perf_counter()
                found, logits = bounded.score(questions[row], start_seeds)
                best = top_chunks(found, logits, held)
                seconds.append(time.perf_counter() - start)
                overlap.append(len(set(best) & set(wanted[row])) / max(len(wanted[row]), 1))
                idle = rested[row][found] if rested is not None else truth[row].mean()
                change = np.linalg.norm(truth[row][found] - idle)
                error.append(np.linalg.norm(logits - truth[row][found]) / max(change, 1e-9))
                reached.append(len(found))
            rows.append(
                {
                    "nodes": nodes,
                    "k": active,
                    "ms": 1e3 * float(np.median(seconds)),
                    "exact_ms": 1e3 * float(np.median(exact_seconds)),
                    "error": float(np.median(error)),
                    "overlap": float(np.mean(overlap)),
                    "active": float(np.mean(reached)),
                }
            )
            line = rows[-1]
            print(
                f"{nodes:>8} nodes  K {active:>5} ({line['active']:.0f} active)  {line['ms']:8.1f} ms  "
                f"exact {line['exact_ms']:8.0f} ms  {line['exact_ms'] / line['ms']:6.1f} x  "
                f"error {line['error']:.3f}  top {TOP} chunks shared {line['overlap']:.3f}",
                flush=True,
            )
    return rows


def growth(given: argparse.Namespace) -> list[dict[str, Any]]:
    """Seconds a query as the graph grows, K fixed; the background lies on disk, as it would in a build."""
    rows = []
    for nodes in given.nodes or [10_000, 30_000, 100_000, 300_000]:
        model, graph, vectors = setting(nodes, False, 0)
        exact = ExactGFM(Projected(model, vectors), graph)
        questions, seeds = queries(graph, given.queries)
        exact.score(questions[:1], seeds[:1])
        start = time.perf_counter()
        exact.score(questions[:1], seeds[:1])
        exact_seconds = time.perf_counter() - start
        with tempfile.TemporaryDirectory(dir=given.disk) as folder:
            store = Store(folder)
            write(store, "gfm", exact, (0, nodes), "random", str(nodes))
            bounded = BoundedGFM(
                exact.projected, alone(graph, open_background(store, "gfm", "random", str(nodes))), given.active
            )
            bounded.score(questions[0], seeds[0])
            seconds = []
            for row, start_seeds in enumerate(seeds):
                start = time.perf_counter()
                bounded.score(questions[row], start_seeds)
                seconds.append(time.perf_counter() - start)
        rows.append({"nodes": nodes, "bounded_ms": 1e3 * float(np.median(seconds)), "exact_ms": 1e3 * exact_seconds})
        print(
            f"{nodes:>8} nodes  bounded {rows[-1]['bounded_ms']:8.1f} ms  exact {rows[-1]['exact_ms']:9.0f} ms",
            flush=True,
        )
    return rows


def against_igraph(given: argparse.Namespace) -> list[dict[str, Any]]:
    """Forward push against igraph's personalised PageRank (PRPACK) on the same undirected graph."""
    import igraph

    rows = []
    for nodes in given.nodes or [100_000, 1_000_000]:
        graph = skewed_graph(nodes, 5 * nodes, 2)
        degree = np.diff(graph.indptr)
        receiver = np.repeat(np.arange(nodes), degree)
        half = receiver <= graph.source
        edges = np.stack([receiver[half], graph.source[half]], axis=1)
        loops = edges[:, 0] == edges[:, 1]
        other = igraph.Graph(n=nodes, edges=np.concatenate([edges[~loops], edges[loops][::2]]))
        share = np.repeat(1.0 / np.maximum(degree, 1), degree).astype(np.float32)
        _, seeds = queries(graph, given.queries)
        push(graph.indptr, graph.source, share, seeds[0], 0.5, given.tolerance)
        ours, theirs, overlap = [], [], []
        for number, start_seeds in enumerate(seeds):
            start = time.perf_counter()
            reached, rank = push(graph.indptr, graph.source, share, start_seeds, 0.5, given.tolerance)
            ours.append(time.perf_counter() - start)
            if number >= given.igraph_queries:
                continue
            reset = np.zeros(nodes)
            reset[list(start_seeds)] = list(start_seeds.values())
            start = time.perf_counter()
            full = np.array(other.personalized_pagerank(damping=0.5, reset=reset.tolist(), directed=False))
            theirs.append(time.perf_counter() - start)
            mine = reached[np.lexsort((reached, -rank))[:100]]
            overlap.append(len(set(mine.tolist()) & set(np.argsort(-full, kind="stable")[:100].tolist())) / 100)
        rows.append(
            {"nodes": nodes, "push_ms": 1e3 * float(np.median(ours)), "igraph_ms": 1e3 * float(np.median(theirs))}
            | {"ratio": float(np.median(theirs) / np.median(ours)), "overlap": float(np.mean(overlap))}
        )
        line = rows[-1]
        print(
            f"{nodes:>8} nodes  push {line['push_ms']:7.2f} ms  igraph {line['igraph_ms']:8.0f} ms  "
            f"{line['ratio']:6.0f} x  top 100 shared {line['overlap']:.3f}",
            flush=True,
        )
    return rows


def plot(rows: list[dict[str, Any]], path: Path) -> None:
    """Time, error and overlap over K."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(1, 3, figsize=(13, 3.8))
    for axis, key, label in zip(
        axes,
        ("ms", "error", "overlap"),
        ("ms a query", "error of the logits' change", f"top {TOP} chunks shared"),
        strict=True,
    ):
        for nodes in sorted({row["nodes"] for row in rows}):
            mine = [row for row in rows if row["nodes"] == nodes]
            axis.plot([row["k"] for row in mine], [row[key] for row in mine], marker="o", label=f"{nodes:,} nodes")
        axis.set(xscale="log", xlabel="K, active nodes", title=label, ylim=(0, None))
        axis.legend()
    figure.tight_layout()
    figure.savefig(path)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["curve", "growth", "push"])
    parser.add_argument("--nodes", type=int, nargs="+")
    parser.add_argument("--queries", type=int, default=50)
    parser.add_argument("--trained", action="store_true")
    parser.add_argument("--minutes", type=float, default=3.0)
    parser.add_argument("--active", type=int, default=1000, help="K of growth")
    parser.add_argument("--tolerance", type=float, default=1e-5, help="of push")
    parser.add_argument("--igraph-queries", type=int, default=5)
    parser.add_argument("--disk", help="where growth keeps its backgrounds (11 KiB a node)")
    parser.add_argument("--plot", type=Path)
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args()
    print(machine.describe())
    rows = {"curve": curve, "growth": growth, "push": against_igraph}[given.what](given)
    if given.plot:
        plot(rows, given.plot)
    if given.json:
        print(json.dumps(rows))


if __name__ == "__main__":
    main()
