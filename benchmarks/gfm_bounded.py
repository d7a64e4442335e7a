"""The bounded GFM pass against the exact one: time, error and overlap over K, and growth with the graph.

    python benchmarks/gfm_bounded.py curve  [--nodes 30000 100000] [--queries 50] [--plot FILE]
    python benchmarks/gfm_bounded.py curve --trained [--minutes 3]
    python benchmarks/gfm_bounded.py growth [--nodes 10000 30000 100000 300000 1000000]

Random weights prove the machinery, not the approximation under trained ones: ``--trained`` first
trains a small network (64 dimensions) on the graph's own triples, head and relation in, tail out.
Times are those of the scorer as it is served, text encoding apart: the walk that picks the active
nodes, the pass, the candidates' scores and the ranking of chunks.  Exact and bounded are asked in
turn.  Run with OMP_NUM_THREADS=1 NUMBA_NUM_THREADS=1: times are CPU seconds.
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import machine
import numpy as np
import torch
from gfm_setting import Setting, scorers, setting

from hybrid_ir.graph.gfm.background import Background, compute, open_background, write
from hybrid_ir.graph.gfm.exact import ExactGFM
from hybrid_ir.graph.gfm.owner import LocalOwners, PartitionOwner
from hybrid_ir.graph.gfm.projection import Projected
from hybrid_ir.graph.gfm.scorer import Near
from hybrid_ir.graph.messages import MessageGraph
from hybrid_ir.ranking import top
from hybrid_ir.store import Store

KS = (125, 250, 500, 1000, 2000, 4000)
TOP = 20


def alone(graph: MessageGraph, background: Background) -> LocalOwners:
    return LocalOwners([PartitionOwner(0, graph.nodes, graph, background)], graph.nodes)


def timed(call: Callable[[], Any]) -> tuple[Any, float]:
    """What it gives and its CPU seconds: with one thread they are wall-clock time without what others took."""
    start = time.process_time()
    found = call()
    return found, time.process_time() - start


def shared(ours: np.ndarray, wanted: np.ndarray) -> float:
    return len(set(top(ours, TOP).tolist()) & set(top(wanted, TOP).tolist())) / TOP


def curve(given: argparse.Namespace) -> list[dict[str, Any]]:
    rows = []
    for nodes in given.nodes or [30_000, 100_000]:
        held = setting(nodes, given.queries, given.trained, given.minutes, given.weights)
        exact = ExactGFM(Projected(held.model, held.vectors), held.graph)
        background = compute(exact)
        whole, bounded, near = scorers(held, exact, alone(held.graph, background), given.ks, given.ranker)
        figures: dict[int, list[tuple[float, float, float, float, float]]] = {active: [] for active in given.ks}
        bounded[given.ks[0]].score(held.seeds[0], "0")  # compiles
        with torch.inference_mode():
            rested = exact.states(torch.zeros(1, held.model.config.dimension), [{}])[:, 0]
        for row in range(given.queries):
            (entities, chunks), exact_seconds = timed(lambda: whole.score(held.seeds[row], str(row)))  # noqa: B023
            final = last_states(exact, held, row) if row < given.states else None
            for active in given.ks:
                (own, best), seconds = timed(lambda: bounded[active].score(held.seeds[row], str(row)))  # noqa: B023
                figures[active].append(
                    (
                        seconds,
                        exact_seconds,
                        change_error(near[active], exact, held, row, final, rested),
                        shared(best, chunks),
                        shared(own, entities),
                    )
                )
        for active in given.ks:
            seconds, exact_seconds, error, chunks_shared, entities_shared = np.array(figures[active]).T
            rows.append(
                {
                    "nodes": nodes,
                    "k": active,
                    "ms": 1e3 * float(np.median(seconds)),
                    "exact_ms": 1e3 * float(np.median(exact_seconds)),
                    "ratio": float(np.median(exact_seconds / seconds)),
                    "error": float(np.nanmedian(error)),
                    "error_p90": float(np.nanquantile(error, 0.9)),
                    "overlap": float(np.mean(chunks_shared)),
                    "overlap_p10": float(np.quantile(chunks_shared, 0.1)),
                    "entities": float(np.mean(entities_shared)),
                }
            )
            line = rows[-1]
            print(
                f"{nodes:>8} nodes  K {active:>5}  {line['ms']:8.1f} ms  exact {line['exact_ms']:8.0f} ms  "
                f"{line['ratio']:6.1f} x  error of the change {line['error']:.3f} (p90 {line['error_p90']:.3f})  "
                f"top {TOP} shared: chunks {line['overlap']:.3f} (p10 {line['overlap_p10']:.2f}), "
                f"entities {line['entities']:.3f}",
                flush=True,
            )
    return rows


def last_states(exact: ExactGFM, held: Setting, row: int) -> np.ndarray:
    """Without the final scores, in float32; shape (nodes, dimension)."""
    with torch.inference_mode():
        q = exact.projected.question(held.questions[row : row + 1])
        return exact.states(q, [held.seeds[row]])[:, 0]


def change_error(
    near: Near, exact: ExactGFM, held: Setting, row: int, final: np.ndarray | None, rested: np.ndarray
) -> float:
    """|bounded - exact| / |exact - without seeds| of the active nodes' last states; NaN where not looked at."""
    if final is None:
        return float("nan")
    with torch.inference_mode():
        q = exact.projected.question(held.questions[row])
        active = near.bounded.nearest(q, held.seeds[row])
        states = near.bounded.states(active, q, held.seeds[row]).numpy()
    nodes = active.nodes
    change = np.linalg.norm(final[nodes] - rested[nodes])
    return float(np.linalg.norm(states - final[nodes]) / max(change, 1e-9))


def growth(given: argparse.Namespace) -> list[dict[str, Any]]:
    """Seconds a query as the graph grows, K fixed; the background lies on disk, as it would in a build."""
    rows = []
    for nodes in given.nodes or [10_000, 30_000, 100_000, 300_000, 1_000_000]:
        held = setting(nodes, given.queries)
        exact = ExactGFM(Projected(held.model, held.vectors), held.graph)
        with tempfile.TemporaryDirectory(dir=given.disk) as folder:
            store = Store(folder)
            _, prepare_seconds = timed(lambda: write(store, "gfm", exact, (0, nodes), "random", str(nodes)))  # noqa: B023
            background = open_background(store, "gfm", "random", str(nodes))
            whole, bounded, _ = scorers(held, exact, alone(held.graph, background), [given.active])
            one = bounded[given.active]
            one.score(held.seeds[0], "0")
            first = [timed(lambda: one.score(held.seeds[row], str(row)))[1] for row in range(given.queries)]  # noqa: B023
            again = [timed(lambda: one.score(held.seeds[row], str(row)))[1] for row in range(given.queries)]  # noqa: B023
            exact_seconds = [
                timed(lambda: whole.score(held.seeds[row], str(row)))[1]  # noqa: B023
                for row in range(given.exact_queries if nodes <= given.exact_up_to else 0)
            ]
        rows.append(
            {
                "nodes": nodes,
                "first_ms": 1e3 * float(np.median(first)),
                "again_ms": 1e3 * float(np.median(again)),
                "exact_ms": 1e3 * float(np.median(exact_seconds)) if exact_seconds else float("nan"),
                "prepare_s": prepare_seconds,
            }
        )
        line = rows[-1]
        print(
            f"{nodes:>8} nodes  bounded {line['first_ms']:8.1f} ms, asked again {line['again_ms']:8.1f} ms  "
            f"exact {line['exact_ms']:9.0f} ms  background {line['prepare_s']:.0f} s",
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
        ("ms a query", "error of the states' change", f"top {TOP} chunks shared"),
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
    parser.add_argument("what", choices=["curve", "growth"])
    parser.add_argument("--nodes", type=int, nargs="+")
    parser.add_argument("--queries", type=int, default=50)
    parser.add_argument("--states", type=int, default=10, help="queries of the curve whose states are compared")
    parser.add_argument("--trained", action="store_true")
    parser.add_argument("--minutes", type=float, default=3.0, help="of CPU time, to train")
    parser.add_argument("--weights", type=Path, help="where the trained network is kept and read from")
    parser.add_argument("--ks", type=int, nargs="+", default=KS)
    parser.add_argument("--ranker", default="softmax", choices=["softmax", "sigmoid", "idf", "top20"])
    parser.add_argument("--active", type=int, default=1000, help="K of growth")
    parser.add_argument("--exact-queries", type=int, default=2, help="of growth")
    parser.add_argument("--exact-up-to", type=int, default=1_000_000, help="nodes of growth")
    parser.add_argument("--disk", help="where growth keeps its backgrounds (12 KiB a node)")
    parser.add_argument("--plot", type=Path)
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args()
    print(machine.describe())
    rows = {"curve": curve, "growth": growth}[given.what](given)
    if given.plot:
        plot(rows, given.plot)
    if given.json:
        print(json.dumps(rows))


if __name__ == "__main__":
    main()
