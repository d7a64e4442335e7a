"""Forward push against igraph's personalised PageRank (PRPACK) on the same undirected graph.

    python benchmarks/pagerank.py [--nodes 100000 1000000] [--queries 50] [--igraph-queries 5]

Times are CPU seconds of the search alone, from seeds to the ranks of what was reached; igraph gives the ranks of all
nodes.
"""

from __future__ import annotations

import argparse
import json
import time
from typing import Any

import igraph
import machine
import numpy as np
from gfm_exact import queries, skewed_graph

from hybrid_ir.graph.push import Pusher

TOP, DAMPING = 100, 0.5


def against_igraph(nodes: int, count: int, igraph_count: int, tolerance: float) -> dict[str, Any]:
    graph = skewed_graph(nodes, 5 * nodes, 2)
    degree = np.diff(graph.indptr)
    receiver = np.repeat(np.arange(nodes), degree)
    half = receiver <= graph.source
    edges = np.stack([receiver[half], graph.source[half]], axis=1)
    loops = edges[:, 0] == edges[:, 1]
    other = igraph.Graph(n=nodes, edges=np.concatenate([edges[~loops], edges[loops][::2]]))
    share = np.repeat(1.0 / np.maximum(degree, 1), degree).astype(np.float32)
    _, seeds = queries(graph, count)
    pusher = Pusher(graph.indptr, graph.source, share)
    pusher.push(seeds[0], DAMPING, tolerance)  # compiles
    ours, theirs, overlap = [], [], []
    for number, start_seeds in enumerate(seeds):
        start = time.process_time()
        reached, rank = pusher.push(start_seeds, DAMPING, tolerance)
        ours.append(time.process_time() - start)
        if number >= igraph_count:
            continue
        reset = np.zeros(nodes)
        reset[list(start_seeds)] = list(start_seeds.values())
        given = reset.tolist()
        start = time.process_time()
        found = other.personalized_pagerank(damping=DAMPING, reset=given, directed=False)
        theirs.append(time.process_time() - start)
        full = np.array(found)
        mine = reached[np.lexsort((reached, -rank))[:TOP]]
        overlap.append(len(set(mine.tolist()) & set(np.argsort(-full, kind="stable")[:TOP].tolist())) / TOP)
    return {
        "nodes": nodes,
        "tolerance": tolerance,
        "push_ms": 1e3 * float(np.median(ours)),
        "igraph_ms": 1e3 * float(np.median(theirs)),
        "ratio": float(np.median(theirs) / np.median(ours)),
        "overlap": float(np.mean(overlap)),
        "least_overlap": float(np.min(overlap)),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--nodes", type=int, nargs="+", default=[100_000, 1_000_000])
    parser.add_argument("--queries", type=int, default=50)
    parser.add_argument("--igraph-queries", type=int, default=5)
    parser.add_argument("--tolerance", type=float, nargs="+", default=[1e-5, 1e-6])
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args()
    print(machine.describe())
    rows = []
    for nodes in given.nodes:
        for tolerance in given.tolerance:
            line = against_igraph(nodes, given.queries, given.igraph_queries, tolerance)
            rows.append(line)
            print(
                f"{nodes:>8} nodes  tolerance {tolerance:g}  push {line['push_ms']:7.2f} ms  igraph "
                f"{line['igraph_ms']:8.0f} ms  {line['ratio']:6.0f} x  top {TOP} shared {line['overlap']:.3f} "
                f"(least {line['least_overlap']:.2f})",
                flush=True,
            )
    if given.json:
        print(json.dumps(rows))


if __name__ == "__main__":
    main()
