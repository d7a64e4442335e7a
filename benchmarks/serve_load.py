"""The service under load: throughput and latency at rising concurrency, what HTTP and Serve add, and memory.

    python benchmarks/serve_load.py --root ROOT [--queries FILE] [--seconds 10] [--soak 10000] [--out FOLDER]

ROOT is any index (``make demo`` leaves one in .hybrid-ir/demo).  Queries are the questions of
examples/questions.jsonl, one after the other.  Beside the service runs an application that does
nothing but pass as many calls on as a retrieval does, to two deployments at the same time, and
returns as many bytes: what it costs is Ray's.  The same retrieval is also called in this process.

All three at one request at a time first; then the service alone at 1, 2, 4 … requests at a time
until the queues refuse some (429), for retrieval and for whole answers; then, with --soak, so many
retrievals at a concurrency it bears, with the memory of all its processes.  The client shares the
machine with the service.  ``--encoder`` gives the query encoder a deployment of its own.
"""

from __future__ import annotations

import argparse
import asyncio
import itertools
import json
import os
import re
import time
from collections import Counter
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import psutil
import ray
from fastapi import FastAPI
from machine import describe
from ray import serve

import hybrid_ir
from hybrid_ir.api import HybridIR
from hybrid_ir.settings import ServeSettings
from serve.run import APPLICATION, run

PROJECT = Path(__file__).parent.parent
WARM_UP = 20
ALONE = 200
K = 5
Send = Callable[[httpx.AsyncClient], Awaitable[int]]
"""One request; returns its status, 0 where the connection failed."""


@serve.deployment(max_ongoing_requests=64, ray_actor_options={"num_cpus": 0})
class Leaf:
    async def rank(self, query: dict[str, Any]) -> list[int]:
        return [1] * 200


@serve.deployment(max_ongoing_requests=64, ray_actor_options={"num_cpus": 0})
@serve.ingress()
class Front:
    def __init__(self, one: Any, other: Any, size: int) -> None:
        self._leaves, self._text = (one, other), "x" * size

    def __serve_build_asgi_app__(self) -> FastAPI:
        app = FastAPI()

        @app.post("/noop")
        async def noop(body: dict) -> dict:
            await asyncio.gather(*(leaf.rank.remote(body) for leaf in self._leaves))
            return {"text": self._text}

        return app


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--root", default=str(PROJECT / ".hybrid-ir" / "demo"))
    parser.add_argument("--queries", default=str(PROJECT / "examples" / "questions.jsonl"))
    parser.add_argument("--seconds", type=float, default=10.0, help="of each step of concurrency")
    parser.add_argument("--most", type=int, default=128, help="requests at a time, at most")
    parser.add_argument("--soak", type=int, default=0, help="retrievals in the end")
    parser.add_argument("--out", help="a folder for the figures (JSON) and plots (PNG)")
    parser.add_argument("--encoder", action="store_true", help="the query encoder as a deployment of its own")
    given = parser.parse_args()
    questions = [json.loads(line)["question"] for line in Path(given.queries).read_text("utf-8").splitlines() if line]
    print(describe(), flush=True)
    opened = hybrid_ir.open(given.root)
    kind = {"num_cpus": 0.2, "max_ongoing_requests": 16, "max_queued_requests": 32}
    parts = ["dense_scorer", "graph_scorer", "sparse_scorer", "reasoner", "controller"]
    parts += ["query_encoder"] if given.encoder else []
    served = ServeSettings.model_validate({"port": 0, **{name: kind for name in parts}})
    settings = opened.index.settings.model_copy(update={"serve": served})
    running = run(given.root, settings)
    try:
        found = asyncio.run(measure(running.url, questions, opened, given))
    finally:
        running.close()
    if given.out:
        folder = Path(given.out)
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "serve_load.json").write_text(json.dumps({"machine": describe(), **found}), encoding="utf-8")
        plot(folder, found)


async def measure(url: str, questions: list[str], opened: HybridIR, given: argparse.Namespace) -> dict[str, Any]:
    asked = itertools.cycle(questions)

    async def here(client: httpx.AsyncClient) -> int:
        await asyncio.to_thread(opened.retrieve, next(asked), K)
        return 200

    def poster(path: str, body: Callable[[], dict[str, Any]]) -> Send:
        async def send(client: httpx.AsyncClient) -> int:
            try:
                return (await client.post(path, json=body())).status_code
            except httpx.HTTPError:
                return 0

        return send

    retrieve = poster("/v1/retrieve", lambda: {"query": next(asked), "k": K})
    answer = poster("/v1/answer", lambda: {"question": next(asked)})
    limits = httpx.Limits(max_connections=None)
    async with httpx.AsyncClient(base_url=url, timeout=120, trust_env=False, limits=limits) as client:
        size = len((await client.post("/v1/retrieve", json={"query": questions[0], "k": K})).content)
        leaves = [Leaf.options(name=name).bind() for name in ("One", "Other")]
        serve.run(Front.bind(*leaves, size), name="noop", route_prefix="/beside")
        noop = poster("/beside/noop", lambda: {"query": next(asked), "k": K})
        alone = await one_at_a_time(client, {"here": here, "noop": noop, "retrieve": retrieve})
        serve.delete("noop")
        goal = alone["here"] + 1.3 * alone["noop"]
        inside_ms, noop_ms, ms = (alone[name] * 1e3 for name in ("here", "noop", "retrieve"))
        print(f"\none at a time, median ms: in this process {inside_ms:.1f}, no-op over HTTP {noop_ms:.1f},")
        print(f"retrieval over HTTP {ms:.1f} (goal: at most {goal * 1e3:.1f})", flush=True)
        steps = {}
        for name, send in (("retrieve", retrieve), ("answer", answer)):
            print(f"\n{name:<10}{'at a time':>10}{'per s':>9}{'p50 ms':>9}{'p95':>9}{'p99':>9}  statuses")
            steps[name] = await rising(client, send, given.seconds, given.most)
        if given.encoder:
            sizes = await serve.get_deployment_handle("QueryEncoder", APPLICATION).batches.remote()
            said = ", ".join(f"{size}: {count}" for size, count in sorted(sizes.items()))
            print(f"\nthe encoder's batches, by their requests: {said}", flush=True)
        soaked = await soak(client, retrieve, given.soak) if given.soak else []
    return {"alone_s": alone, "steps": steps, "soak": soaked}


async def one_at_a_time(client: httpx.AsyncClient, kinds: dict[str, Send]) -> dict[str, float]:
    """Median seconds of each kind of request; they take turns, so that a busy minute meets all of them."""
    spent: dict[str, list[float]] = {name: [] for name in kinds}
    for _ in range(WARM_UP + ALONE):
        for name, send in kinds.items():
            start = time.perf_counter()
            status = await send(client)
            if status != 200:
                raise SystemExit(f"A request alone ({name}) got status {status}.")
            spent[name].append(time.perf_counter() - start)
    return {name: float(np.median(times[WARM_UP:])) for name, times in spent.items()}


async def rising(client: httpx.AsyncClient, send: Send, seconds: float, most: int) -> list[dict[str, Any]]:
    rows = []
    workers = 1
    while workers <= most:
        times, statuses = await at_once(client, send, workers, seconds)
        p50, p95, p99 = (float(np.quantile(times, q)) * 1e3 if times else float("nan") for q in (0.5, 0.95, 0.99))
        row = {"workers": workers, "per_s": statuses[200] / seconds, "p50": p50, "p95": p95, "p99": p99}
        row |= {"statuses": dict(statuses)}
        rows.append(row)
        said = ", ".join(f"{status}: {count}" for status, count in sorted(statuses.items()))
        print(f"{'':<10}{workers:>10}{row['per_s']:>9.1f}{p50:>9.1f}{p95:>9.1f}{p99:>9.1f}  {said}", flush=True)
        if set(statuses) - {200}:
            break
        workers *= 2
    return rows


async def at_once(
    client: httpx.AsyncClient, send: Send, workers: int, seconds: float
) -> tuple[list[float], Counter[int]]:
    """Seconds of the requests that were answered, and how often each status came."""
    end, times, statuses = time.perf_counter() + seconds, [], Counter()

    async def work() -> None:
        while time.perf_counter() < end:
            start = time.perf_counter()
            status = await send(client)
            statuses[status] += 1
            if status == 200:
                times.append(time.perf_counter() - start)

    await asyncio.gather(*(work() for _ in range(workers)))
    return times, statuses


async def soak(client: httpx.AsyncClient, send: Send, requests: int) -> list[dict[str, Any]]:
    """Memory of this process's children (Ray, Serve and the replicas) while so many requests pass, 8 at a time."""
    rows, step = [], max(requests // 20, 1)
    for done in range(0, requests, step):
        turn = asyncio.Semaphore(8)

        async def one(turn: asyncio.Semaphore = turn) -> int:
            async with turn:
                return await send(client)

        statuses = Counter(await asyncio.gather(*(one() for _ in range(step))))
        held = memory()
        rows.append({"requests": done + step, "statuses": dict(statuses), "mib": held})
        total = sum(held.values())
        print(f"{done + step:>8} retrievals  {total:>8.0f} MiB  {dict(statuses)}", flush=True)
    return rows


def memory() -> dict[str, float]:
    """Resident MiB of each replica and of all else together."""
    held: Counter[str] = Counter()
    for process in psutil.Process(os.getpid()).children(recursive=True):
        try:
            title = " ".join(process.cmdline())
            replica = re.search(r"ServeReplica:[^:]+:(\w+)", title)  # the title is padded, and ends in a method's name
            held[replica[1] if replica else "Ray"] += process.memory_info().rss / 2**20
        except psutil.Error:
            continue
    return dict(held)


def plot(folder: Path, found: dict[str, Any]) -> None:
    try:
        from matplotlib.figure import Figure
    except ModuleNotFoundError:
        return
    figure = Figure((10, 4), layout="constrained")
    left, right = figure.subplots(1, 2)
    for name, rows in found["steps"].items():
        left.plot([row["per_s"] for row in rows], [row["p95"] for row in rows], "o-", label=f"{name}, p95")
    left.set(xlabel="answered per second", ylabel="ms", xscale="log", yscale="log")
    left.legend()
    for name in sorted({name for row in found["soak"] for name in row["mib"]}):
        right.plot(
            [row["requests"] for row in found["soak"]], [row["mib"].get(name, 0) for row in found["soak"]], label=name
        )
    right.set(xlabel="retrievals", ylabel="resident MiB", ylim=(0, None))
    right.legend()
    figure.savefig(folder / "serve_load.png", dpi=120)


if __name__ == "__main__":
    main()
    ray.shutdown()
