"""The benchmark job: a grid's questions by a pool of actors, or by a running service -> a folder of rows and a report.

    python -m ray_jobs.benchmark --suite table2 --root ROOT --data DATA --out FOLDER [--config FILE]
    python -m ray_jobs.benchmark --rerun FOLDER --out ANOTHER

Run it again after a kill: a question whose row is written is not asked again.
"""

from __future__ import annotations

import argparse
import os
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import ray
from ray.exceptions import RayActorError, RayTaskError

from hybrid_ir.errors import Failed, HybridIRError
from hybrid_ir.evaluation.run import asking, benchmark
from hybrid_ir.evaluation.run.benchmark import Request, Result
from hybrid_ir.evaluation.run.grid import Planned
from hybrid_ir.evaluation.run.rows import Row
from hybrid_ir.evaluation.run.run import Run
from hybrid_ir.evaluation.run.runner import Ask, Budget
from hybrid_ir.evaluation.sets.questions import GoldQuestion
from hybrid_ir.opened import open_index
from hybrid_ir.progress import Reporter
from ray_jobs.cluster import connected

FOR_A_MODEL = 16
"""Questions at the same time where a language model answers: they wait for it most of the time."""
DEATHS = 3
"""So often a question may be with a worker that dies before it becomes an error row."""
DEATHS_IN_A_ROW = 10
"""So many workers may die with nothing answered in between."""


class Died(HybridIRError):
    """The worker that asked a question died each time."""

    exit_code = 6


@ray.remote(num_cpus=1)
class Worker:
    """One open index in one process."""

    def __init__(self, run: Run) -> None:
        self._planned = {one.cell.key: one for one in run.planned}
        self._asker = asking.Asker(lambda settings: open_index(run.root, settings, run.build_id), run.grid)

    async def ask(self, cell: str, question: str) -> tuple[str, str, str]:
        """(row, "", "") or ("", the error's kind, its sentence): of an exception Ray keeps only the text."""
        try:
            row = await self._asker.ask(self._planned[cell], GoldQuestion.model_validate_json(question))
        except Exception as error:
            told = str(error) if isinstance(error, HybridIRError) else f"{type(error).__name__}: {error}"
            return "", type(error).__name__, told
        return row.model_dump_json(), "", ""


class Pool:
    """Workers, and how many questions each of them has; called from as many threads as questions run at a time."""

    def __init__(self, run: Run, workers: int, each: int) -> None:
        self._run, self._each = ray.put(run.model_copy(update={"questions": {}})), each
        self._changed = threading.Condition()
        self._handles: list[Any] = [self._start() for _ in range(workers)]
        self._busy = [0] * workers
        self._alone = [False] * workers
        self._deaths = 0

    def ask(self, planned: Planned, question: GoldQuestion) -> Row:
        """A worker that died is replaced; its questions are then asked one by one, so that the one at fault is found.

        Raises the library's own errors, Died, and Failed where no worker lives long enough to answer.
        """
        for deaths in range(DEATHS):
            place, handle = self._take(alone=deaths > 0)
            try:
                row, kind, told = ray.get(handle.ask.remote(planned.cell.key, question.model_dump_json()))
            except (RayActorError, RayTaskError) as error:
                self._replace(place, handle, str(error).strip().splitlines()[0])
                continue
            finally:
                self._give_back(place)
            self._deaths = 0
            if kind:
                raise _error(kind, told)
            return Row.model_validate_json(row)
        raise Died(f"The worker that asked this question died {DEATHS} times (out of memory?).")

    def _start(self) -> Any:
        return Worker.options(max_concurrency=self._each).remote(self._run)  # type: ignore[attr-defined]

    def _take(self, alone: bool) -> tuple[int, Any]:
        """The least busy worker with room; alone: one that has nothing else, and gets nothing else."""
        most = 0 if alone else self._each - 1
        with self._changed:
            while True:
                free = [n for n, busy in enumerate(self._busy) if busy <= most and not self._alone[n]]
                if free:
                    place = min(free, key=self._busy.__getitem__)
                    self._busy[place] += 1
                    self._alone[place] = alone
                    return place, self._handles[place]
                self._changed.wait()

    def _give_back(self, place: int) -> None:
        with self._changed:
            self._busy[place] -= 1
            self._alone[place] = False
            self._changed.notify_all()

    def _replace(self, place: int, dead: Any, reason: str) -> None:
        with self._changed:
            if self._handles[place] is not dead:
                return  # another of its questions has seen to it
            self._deaths += 1
            if self._deaths > DEATHS_IN_A_ROW:
                raise Failed(f"{self._deaths} workers in a row died ({reason}). Run the same command again to go on.")
            self._handles[place] = self._start()


def run(request: Request, out: Path, reporter: Reporter, **how: Any) -> Result:
    """Ask, write down, report.  ``how``: see :func:`hybrid_ir.evaluation.run.benchmark.run`."""
    return benchmark.run(request, out, reporter, asked_by, **how)


@contextmanager
def asked_by(run: Run, concurrency: int | None, workers: int | None) -> Iterator[tuple[Ask, int]]:
    """Within: what asks a question, and how many at a time."""
    if run.url:
        deadline = run.grid.deadline_s
        yield lambda one, asked: asking.ask_service(run.url, one.cell, asked, deadline), concurrency or FOR_A_MODEL
        return
    with connected(run.planned[0].settings.job):
        cpus = max(1, int(ray.cluster_resources().get("CPU", 1)))  # type: ignore[no-untyped-call]
        reasoners = [one.settings.reasoner for one in run.planned]
        models = [reasoner.llm for reasoner in reasoners if reasoner.kind == "llm"]
        wanted = concurrency or (FOR_A_MODEL if models else workers or cpus)
        # llama.cpp's server belongs to its worker: one is all that a machine should hold.
        most = 1 if any(model.backend == "llama_cpp" for model in models) else cpus
        count = min(workers or most, most, wanted)
        yield Pool(run, count, -(-wanted // count)).ask, wanted


def _error(kind: str, told: str) -> Exception:
    for known in HybridIRError.__subclasses__():
        if known.__name__ == kind:
            return known(told)
    other: type[Exception] = type(kind, (Exception,), {})
    return other(told.partition(": ")[2] or told)


def parser() -> argparse.ArgumentParser:
    """The job's own command line; ``hybrid-ir benchmark run`` is the same with more comfort."""
    parser = argparse.ArgumentParser(prog="python -m ray_jobs.benchmark", description="Run a grid of questions.")
    parser.add_argument("--suite", help="a ready grid: table1, table2, figure3, mirage, local, local_rounds")
    parser.add_argument("--grid", help="a grid file, in place of --suite")
    parser.add_argument("--rerun", help="repeat the run in this folder, in place of both")
    parser.add_argument("--methods", help="by comma, or all: in place of the grid's")
    parser.add_argument("--datasets", help="by comma: in place of the grid's")
    parser.add_argument("--config", help="a settings file that methods are laid over")
    parser.add_argument("--root", help="the index: a folder or s3://bucket/prefix")
    parser.add_argument("--url", help="a running service, in place of --root")
    parser.add_argument("--data", default=os.environ.get("HYBRID_IR_DATA"), help="the folder of the data sets")
    parser.add_argument("--out", required=True, help="the run's folder")
    parser.add_argument("--limit", type=int, help="so many questions of each dataset, spread over it")
    parser.add_argument("--concurrency", type=int, help="questions at a time")
    parser.add_argument("--workers", type=int, help="actors; default: one for each CPU")
    for name, kind in (("calls", int), ("tokens", int), ("seconds", float)):
        parser.add_argument(f"--max-{name}", type=kind, help=f"stop, resumably, after so many {name}")
    parser.add_argument("--strict", action="store_true", help="the first error ends the run")
    parser.add_argument("--retry-errors", action="store_true", help="ask questions again that ended in an error")
    return parser


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the job; an error meant for a person is one sentence and an exit code of its own."""
    given = parser().parse_args(arguments)
    try:
        request = Request(
            suite=given.suite,
            grid=given.grid,
            rerun=given.rerun,
            methods=given.methods,
            datasets=given.datasets,
            config=given.config,
            root=given.root,
            url=given.url,
            data=given.data,
            limit=given.limit,
            strict=given.strict,
        )
        budget = Budget(given.max_calls, given.max_tokens, given.max_seconds)
        sizes = {"concurrency": given.concurrency, "workers": given.workers}
        done = run(request, Path(given.out), Reporter(), budget=budget, retry_errors=given.retry_errors, **sizes)
    except HybridIRError as error:
        print(f"error: {error}", file=sys.stderr)
        return error.exit_code
    print(done.text)
    return 0 if not done.stopped else 6


if __name__ == "__main__":
    sys.exit(main())
