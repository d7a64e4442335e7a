"""Questions a second of the benchmark job with a language model that takes a fixed time a call, against the ideal.

    python benchmarks/benchmark_runner.py --root ROOT --data DATA [--limit 200] [--method zero_shot --depth 1]

The ideal: so many questions at a time, each waiting ``depth`` calls one after the other, and nothing else taking time.
Workers are started and warmed by one question each before the clock runs.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import yaml
from machine import describe

from hybrid_ir.evaluation.run import benchmark, journal
from hybrid_ir.evaluation.run.benchmark import Request
from hybrid_ir.evaluation.run.run import Run
from hybrid_ir.evaluation.run.runner import Ask
from hybrid_ir.progress import Reporter
from hybrid_ir.settings import JobSettings
from ray_jobs.benchmark import asked_by
from ray_jobs.cluster import connected

TESTS = Path(__file__).parents[1] / "tests"
SERVER = """
import json, sys, time
from fake_server import FakeServer
said = {"answer_choice": "A", "answer": "yes", "short": "x", "steps": "s", "missing": "", "statements": [],
        "enough_evidence": False,
        "sub_questions": [{"question": q, "entities": [q]} for q in ("fever", "headache", "hepatitis")]}
def says(prompt):
    round_ = str(len(prompt.messages[-1].content))
    made = {name: said[name] for name in prompt.json_schema["properties"]}
    if "sub_questions" in made:
        made["sub_questions"] = [{"question": q["question"] + " " + round_, "entities": q["entities"]}
                                 for q in made["sub_questions"]]
    return json.dumps(made)
with FakeServer(says, seconds=float(sys.argv[1]), window=32768) as server:
    print(server.url, flush=True)
    time.sleep(36000)
"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--root", required=True)
    parser.add_argument("--data", required=True)
    parser.add_argument("--dataset", default="medqa")
    parser.add_argument("--method", default="zero_shot")
    parser.add_argument("--depth", type=int, default=1, help="calls one after the other: 1, or 7 of hybrid_ir")
    parser.add_argument("--limit", type=int, default=200)
    parser.add_argument("--seconds", type=float, default=0.1, help="of a call")
    parser.add_argument("--concurrency", type=int, default=16)
    given = parser.parse_args()
    print(describe())
    with tempfile.TemporaryDirectory() as folder, _model(given.seconds) as url, connected(JobSettings()):
        config, grid = Path(folder) / "config.yaml", Path(folder) / "grid.yaml"
        llm = {"backend": "openai", "model": "fake", "base_url": url, "concurrency": 64}
        config.write_text(yaml.safe_dump({"reasoner": {"kind": "llm", "llm": llm}}))
        grid.write_text(yaml.safe_dump({"methods": [given.method], "datasets": [given.dataset]}))
        request = Request(
            grid=str(grid), config=str(config), root=given.root, data=given.data, limit=given.limit, strict=True
        )
        took: list[float] = []

        @contextmanager
        def warmed(run: Run, concurrency: int | None, workers: int | None) -> Iterator[tuple[Ask, int]]:
            with asked_by(run, concurrency, workers) as (ask, at_a_time):
                todo = list(run.todo())
                with ThreadPoolExecutor(at_a_time) as executor:
                    list(executor.map(lambda one: ask(*one), todo[:at_a_time]))
                took.append(time.perf_counter())
                yield ask, at_a_time
                took.append(time.perf_counter())

        out = Path(folder) / "out"
        done = benchmark.run(request, out, Reporter(), warmed, concurrency=given.concurrency)
        rows = list(journal.read(out / journal.NAME).values())
        seconds = took[1] - took[0]
        ideal = given.concurrency / (given.depth * given.seconds)
        print(
            json.dumps(
                {
                    "questions": done.rows,
                    "errors": done.errors,
                    "calls": sum(row.calls for row in rows),
                    "seconds": round(seconds, 2),
                    "questions_per_s": round(done.rows / seconds, 2),
                    "ideal": round(ideal, 2),
                    "ratio": round(done.rows / seconds / ideal, 3),
                    "mean_seconds_of_a_question": round(sum(row.seconds for row in rows) / len(rows), 3),
                }
            )
        )


@contextmanager
def _model(seconds: float) -> Iterator[str]:
    """The fake language model in a process of its own."""
    process = subprocess.Popen(  # noqa: S603
        [sys.executable, "-c", SERVER, str(seconds)], cwd=TESTS, stdout=subprocess.PIPE, text=True
    )
    try:
        yield process.stdout.readline().strip() if process.stdout else ""
    finally:
        process.kill()
        process.wait()


if __name__ == "__main__":
    main()
