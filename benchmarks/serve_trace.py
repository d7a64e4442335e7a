"""Autoscaling: the dense scorer's replicas as they follow the load up, down to none, and up again.

    python benchmarks/serve_trace.py --root ROOT [--queries FILE] [--out FOLDER]

ROOT is any index (``make demo`` leaves one in .hybrid-ir/demo).  1 request at a time, then 12, then
none, then 1 again; the replicas are counted every second.  A line is printed when their number or
the load changes, and when an answer took more than two seconds.
"""

from __future__ import annotations

import argparse
import asyncio
import itertools
import json
import time
from collections import Counter
from pathlib import Path
from typing import Any

import httpx
import ray
from machine import describe
from ray import serve

import hybrid_ir
from hybrid_ir.settings import ServeSettings
from serve.run import APPLICATION, run

PROJECT = Path(__file__).parent.parent
K = 5
SCALING = {
    "max_ongoing_requests": 4,
    "min_replicas": 0,
    "max_replicas": 3,
    "upscale_delay_s": 15,
    "downscale_delay_s": 40,
    "cold_start_s": 20,
}
"""Of the trace: two requests at a time for each replica are aimed at."""
STEPS = ((1, 15), (12, 75), (0, 100), (1, 30))
"""Of the trace: (requests at a time, seconds)."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--root", default=str(PROJECT / ".hybrid-ir" / "demo"))
    parser.add_argument("--queries", default=str(PROJECT / "examples" / "questions.jsonl"))
    parser.add_argument("--out", help="a folder for the rows (JSON)")
    given = parser.parse_args()
    questions = [json.loads(line)["question"] for line in Path(given.queries).read_text("utf-8").splitlines() if line]
    print(describe(), flush=True)
    kind = {"num_cpus": 0.2, "max_ongoing_requests": 64}
    parts = dict.fromkeys(("graph_scorer", "sparse_scorer", "reasoner", "controller"), kind)
    served = ServeSettings.model_validate({"port": 0, **parts, "dense_scorer": {"num_cpus": 0.2, **SCALING}})
    settings = hybrid_ir.open(given.root).index.settings.model_copy(update={"serve": served})
    running = run(given.root, settings)
    try:
        rows = asyncio.run(trace(running.url, questions))
    finally:
        running.close()
    if given.out:
        folder = Path(given.out)
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "serve_trace.json").write_text(json.dumps({"machine": describe(), "rows": rows}), encoding="utf-8")


async def trace(url: str, questions: list[str]) -> list[dict[str, Any]]:
    """Second by second: the load, the dense scorer's replicas that run, what was answered since the last row."""
    asked, answered, start = itertools.cycle(questions), Counter[int](), time.perf_counter()
    rows: list[dict[str, Any]] = []
    times: list[float] = []
    workers = 0

    async def work(client: httpx.AsyncClient, number: int) -> None:
        while workers > number:
            body = {"query": next(asked), "k": K, "paths": ["dense"]}
            since = time.perf_counter()
            try:
                answered[(await client.post("/v1/retrieve", json=body)).status_code] += 1
            except httpx.HTTPError:
                answered[0] += 1
            times.append(time.perf_counter() - since)

    print(f"{'second':>7}{'at a time':>11}{'replicas':>10}{'per s':>8}{'slowest s':>11}  not 200")
    async with httpx.AsyncClient(base_url=url, timeout=60, trust_env=False) as client:
        tasks: set[asyncio.Task[None]] = set()
        for wanted, seconds in STEPS:
            before, workers = workers, wanted
            tasks |= {asyncio.create_task(work(client, number)) for number in range(before, wanted)}
            end = time.perf_counter() + seconds
            while time.perf_counter() < end:
                answered.clear()
                times.clear()
                since = time.perf_counter()
                await asyncio.sleep(1.0)
                deployments = (await asyncio.to_thread(serve.status)).applications[APPLICATION].deployments
                replicas = deployments["DenseScorer"].replica_states.get("RUNNING", 0)
                per_s = answered[200] / (time.perf_counter() - since)
                row = {"second": round(since - start), "workers": workers, "replicas": replicas, "per_s": per_s}
                row |= {"not_200": sum(answered.values()) - answered[200], "slowest": max(times, default=0.0)}
                changed = not rows or any(rows[-1][key] != row[key] for key in ("workers", "replicas"))
                rows.append(row)
                if changed or row["slowest"] > 2:
                    said = f"{row['second']:>7}{workers:>11}{replicas:>10}{per_s:>8.1f}{row['slowest']:>11.2f}"
                    said += f"  {row['not_200']}"
                    print(said, flush=True)
        workers = 0
        await asyncio.gather(*tasks)
    print(f"not 200 in all: {sum(row['not_200'] for row in rows)}")
    return rows


if __name__ == "__main__":
    main()
    ray.shutdown()
