"""The indexing job's Ray stages against a plain Python loop that calls the same objects.

    python benchmarks/ray_overhead.py --pubmed 'data/*.xml.gz' [--documents 2000] [--repeat 2]

Extraction and encoding of the same shards, each object with one thread: in a loop in this process,
by one worker of each stage, and by two.  The stages run one after the other here (in the job they
overlap), so that one worker is one busy core.  Start-up (starting actors, loading models) is taken
apart: a stage's time runs from its first row's begin to its last row's end.
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
import pubmed_corpus
import ray
import torch

from hybrid_ir import encoders
from hybrid_ir.corpus.discover import discover
from hybrid_ir.extraction.load import load as load_extractor
from hybrid_ir.index import parsed, shard
from hybrid_ir.index.shard import SegmentPlan
from hybrid_ir.settings import BuildSettings, JobSettings, StageResources
from hybrid_ir.store import Store
from ray_jobs import stages
from ray_jobs.cluster import connected


class TimedExtract(stages.Extract):
    def __init__(self, plan: SegmentPlan) -> None:
        super().__init__(plan)
        self._extractor.mentions(["warm up"])  # what is loaded at the first call is start-up

    def __call__(self, row: stages.Row) -> stages.Row:
        return timed(super().__call__, row)


class TimedEncode(stages.Encode):
    def __call__(self, row: stages.Row) -> stages.Row:
        return timed(super().__call__, row)


def timed(call: Callable[[stages.Row], stages.Row], row: stages.Row) -> stages.Row:
    began = time.time()
    done = call(row)
    if "error" in done:
        return done
    return {"began": began, "ended": time.time()}


def prepare(corpus: Path, root: Path, shards: int) -> SegmentPlan:
    """A segment whose chunks are cut, on a root of its own: neither cache nor finished shards help."""
    plan = SegmentPlan(Store(str(root)), "bench", shards, BuildSettings())
    shard.read(plan, "all", discover([str(corpus)]))
    for group in range(parsed.group_count(shards)):
        shard.chunk(plan, group)
    return plan


def loop(plan: SegmentPlan, extractor: Any, encoder: Any) -> dict[str, float]:
    seconds = {}
    for name, work in (
        ("extract", lambda number: shard.extract(plan, number, extractor)),
        ("encode", lambda number: shard.encode(plan, number, encoder)),
    ):
        start = time.time()
        for number in range(plan.shards):
            work(number)
        seconds[name] = time.time() - start
    return seconds


def on_ray(plan: SegmentPlan, workers: int) -> dict[str, float]:
    seconds = {}
    for name, stage in (("extract", TimedExtract), ("encode", TimedEncode)):
        resources = StageResources(min_workers=workers, max_workers=workers)
        start = time.time()
        rows = list(stages.run([{"shard": n} for n in range(plan.shards)], (stage, plan, resources)))
        over = time.time()
        began, ended = min(row["began"] for row in rows), max(row["ended"] for row in rows)
        seconds |= {name: ended - began, f"{name} start-up": began - start, f"{name} end": over - ended}
    return seconds


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pubmed", nargs="+", required=True, help="PubMed files, or any corpus of abstracts")
    parser.add_argument("--documents", type=int, default=2000)
    parser.add_argument("--shards", type=int, default=40)
    parser.add_argument("--repeat", type=int, default=2)
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args()
    torch.set_num_threads(1)
    print(machine.describe())
    documents = pubmed_corpus.load(given.pubmed)[: given.documents]
    settings = BuildSettings()
    extractor, encoder = load_extractor(settings.extractor), encoders.load(settings.chunk_encoder)
    extractor.mentions(["warm up"])
    encoder.encode_queries(["warm up"])
    results: list[dict[str, Any]] = []
    with tempfile.TemporaryDirectory() as folder, connected(JobSettings()):
        corpus = pubmed_corpus.write(documents, Path(folder) / "corpus")
        for round_ in range(given.repeat):
            for kind in ("loop", "1 worker", "2 workers"):
                plan = prepare(corpus, Path(folder) / f"{kind} {round_}", given.shards)
                start = time.time()
                seconds = loop(plan, extractor, encoder) if kind == "loop" else on_ray(plan, int(kind[0]))
                work = seconds["extract"] + seconds["encode"]
                results.append({"kind": kind, "round": round_, "work": work, "all": time.time() - start, **seconds})
                print(json.dumps(results[-1]), flush=True)
        cores = ray.cluster_resources()["CPU"]
    best = {kind: min(r["work"] for r in results if r["kind"] == kind) for kind in ("loop", "1 worker", "2 workers")}
    print(f"{len(documents)} abstracts, {given.shards} shards, {cores:.0f} logical CPUs; the better of {given.repeat}:")
    for kind, value in best.items():
        print(f"  {kind:<10} {value:8.1f} s  {len(documents) / value:7.1f} abstracts/s")
    print(f"  one worker takes {best['1 worker'] / best['loop']:.3f} x the loop's time (goal <= 1.10)")
    print(f"  two workers give {best['1 worker'] / best['2 workers']:.3f} x the throughput of one (goal >= 1.75)")
    if given.json:
        print(json.dumps({"machine": machine.describe(), "runs": results, "best": best}))


if __name__ == "__main__":
    main()
