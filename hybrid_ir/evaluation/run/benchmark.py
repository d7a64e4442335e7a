"""A benchmark from what a person asks for to a folder with its report; what asks the questions is handed in."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Protocol

from hybrid_ir.errors import BadInput, Conflict, NotFound, Unavailable
from hybrid_ir.evaluation.report import report
from hybrid_ir.evaluation.run import asking
from hybrid_ir.evaluation.run import grid as grids
from hybrid_ir.evaluation.run import run as runs
from hybrid_ir.evaluation.run.grid import GOLD_STEPS, Grid, Planned
from hybrid_ir.evaluation.run.journal import Journal
from hybrid_ir.evaluation.run.rows import Row
from hybrid_ir.evaluation.run.run import Run
from hybrid_ir.evaluation.run.runner import Ask, Budget, go
from hybrid_ir.evaluation.sets import medhopqa, question_sets
from hybrid_ir.evaluation.sets.datasets import AnswerSet
from hybrid_ir.opened import open_index
from hybrid_ir.progress import Reporter
from hybrid_ir.records import Record


class Request(Record):
    """What a person asks for."""

    suite: str | None = None
    grid: str | None = None
    rerun: str | None = None
    """One of these three: a ready grid, a grid file, the folder of a run to repeat."""
    methods: str | None = None
    """By comma, or ``all``: in place of the grid's."""
    datasets: str | None = None
    """By comma: in place of the grid's."""
    config: str | None = None
    root: str | None = None
    url: str | None = None
    data: str | None = None
    limit: int | None = None
    strict: bool = False


class Result(Record):
    """What a run came to."""

    out: str
    rows: int
    errors: int
    stopped: str
    """The sentence of what stopped it before its end; empty: all is asked."""
    text: str
    """The tables, for a terminal."""


class Asking(Protocol):
    """Opens what asks the questions of a run, and says how many it takes at a time."""

    def __call__(
        self, run: Run, concurrency: int | None, workers: int | None
    ) -> AbstractContextManager[tuple[Ask, int]]: ...


def run(
    request: Request,
    out: Path,
    reporter: Reporter,
    opened: Asking,
    *,
    budget: Budget | None = None,
    concurrency: int | None = None,
    workers: int | None = None,
    retry_errors: bool = False,
) -> Result:
    """Ask all questions of a grid that have no row in ``out`` yet, and write the report.

    Raises what is wrong with the request as one sentence, before anything is asked.
    """
    capped = budget or Budget()
    for name, value in (
        ("--concurrency", concurrency),
        ("--workers", workers),
        ("--limit", request.limit),
        ("--max-calls", capped.calls),
        ("--max-tokens", capped.tokens),
        ("--max-seconds", None if capped.seconds is None else math.ceil(capped.seconds)),
    ):
        if value is not None and value < 1:
            raise BadInput(f"{name} must be at least 1, not {value}.")
    prepared = prepare(request, reporter)
    if (capped.calls or capped.tokens) and not request.url and not _by_model(prepared):
        reporter.say("  --max-calls and --max-tokens are a language model's; no method of this grid asks one.")
    with Journal(out) as journal:
        for difference in runs.begin(out, prepared):
            reporter.say(f"  {difference}")
        with opened(prepared, concurrency, workers) as (ask, at_a_time):
            stopped = go(
                prepared,
                journal,
                ask,
                at_a_time,
                reporter,
                budget,
                strict=request.strict,
                retry_errors=retry_errors,
            )
        rows = runs.ordered(prepared, journal.rows)
        runs.write(out, rows)
        _submissions(out, prepared, rows)
    summary = report.write(out, prepared, rows, stopped)
    return Result(
        out=str(out),
        rows=len(rows),
        errors=sum(bool(row.error) for row in rows),
        stopped=stopped,
        text=report.text(summary, out),
    )


def _by_model(run: Run) -> bool:
    """Whether a language model answers anywhere."""
    return any(one.settings.reasoner.kind == "llm" for one in run.planned)


def prepare(request: Request, reporter: Reporter) -> Run:
    """The run that a request means, with its questions."""
    if sum(value is not None for value in (request.suite, request.grid, request.rerun)) != 1:
        raise BadInput("Name one of --suite NAME, --grid FILE and --rerun FOLDER.")
    return _again(request, Path(request.rerun)) if request.rerun else _anew(request, reporter)


def questions_of(run: Run, data: str | None, *, strict: bool = False) -> Run:
    """With its questions, which ``run.json`` does not hold.  Raises Conflict where they are not those of the run."""
    loaded = {
        grids.short(name): question_sets.load(
            name, data or run.data or None, Path(run.beside), limit=run.limit, strict=strict
        )
        for name in run.grid.datasets
    }
    for name, found in loaded.items():
        if question_sets.record(name, found).sha256 != run.datasets[name].sha256:
            raise Conflict(f"The questions of {name} are not those of the run: its file has changed.")
    return run.model_copy(update={"questions": {name: found.questions for name, found in loaded.items()}})


def _submissions(out: Path, run: Run, rows: Sequence[Row]) -> None:
    """A file in MedHopQA's form for every cell that asked such questions."""
    sets = {grids.short(name) for name in run.grid.datasets if medhopqa.is_one(name)}
    for cell in (one.cell for one in run.planned if one.cell.dataset in sets):
        said = {row.id: (row.short, row.long) for row in rows if row.cell == cell.key}
        name = cell.key.replace("/", "_")
        medhopqa.write(out / f"submission_{name}.csv", run.questions[cell.dataset], said)


def _anew(request: Request, reporter: Reporter) -> Run:
    path = grids.suite(request.suite) if request.suite else Path(str(request.grid))
    grid, beside = _changed(grids.read_grid(path), request), path.resolve().parent
    if (request.root is None) == (request.url is None):
        raise BadInput("Give either --root (an index) or --url (a running service).")
    plan = grids.plan(grid, beside, request.config, served=request.url is not None, strict=request.strict)
    sets = {
        name: question_sets.load(name, request.data, beside, limit=request.limit, strict=request.strict)
        for name in dict.fromkeys(grid.datasets)
    }
    planned, build_id, fingerprints, absent = _target(request, plan.planned, reporter)
    planned, without_steps = _with_steps(planned, {grids.short(name): found for name, found in sets.items()})
    left_out = (*plan.left_out, *absent, *without_steps)
    for said in (*left_out, *(problem for found in sets.values() for problem in found.problems)):
        reporter.say(f"  {said}")
    return Run(
        started=runs.now(),
        grid=grid,
        planned=planned,
        left_out=left_out,
        root=_absolute(request.root or ""),
        url=request.url or "",
        build_id=build_id,
        fingerprints=fingerprints,
        data=str(Path(request.data).absolute()) if request.data else "",
        beside=str(beside),
        limit=request.limit,
        datasets={grids.short(name): question_sets.record(grids.short(name), found) for name, found in sets.items()},
        versions=runs.versions(),
        commit=runs.commit(),
        questions={grids.short(name): found.questions for name, found in sets.items()},
    )


def _again(request: Request, folder: Path) -> Run:
    """The recorded settings, not those that its files hold today."""
    given = [f"--{name}" for name in ("methods", "datasets", "config", "limit") if getattr(request, name) is not None]
    if given:
        raise BadInput(f"--rerun repeats a run as it was: leave out {', '.join(given)}.")
    before = questions_of(runs.read(folder), request.data, strict=request.strict)
    changes = {"started": runs.now(), "versions": runs.versions(), "commit": runs.commit()}
    if before.url:
        _, build_id, _ = _served(request.url or before.url, request.strict)
        if build_id and build_id != before.build_id:
            raise Conflict(f"{before.url} now serves the build {build_id}; the run asked {before.build_id}.")
        return before.model_copy(update={**changes, "url": request.url or before.url})
    root = _absolute(request.root or before.root)
    open_index(root, before.planned[0].settings, before.build_id)
    return before.model_copy(update={**changes, "root": root})


def _target(
    request: Request, planned: Sequence[Planned], reporter: Reporter
) -> tuple[tuple[Planned, ...], str, dict[str, object], tuple[str, ...]]:
    """(the cells with the settings of the index, its build, the fingerprints of its models, cells left out)."""
    if request.url is not None:
        fingerprints, build_id, problem = _served(request.url, request.strict)
        if problem:
            reporter.say(f"  {problem}")
        return tuple(planned), build_id, fingerprints, ()
    builds = {one.settings.build.model_dump_json() for one in planned}
    if len(builds) > 1:
        raise BadInput(
            "The grid's methods or models change the key build of the settings; a run asks one index. Leave build to "
            "--config."
        )
    index = open_index(str(request.root), planned[0].settings if request.config else None)
    if not request.config:  # as `hybrid-ir ask` without one: by what the index was built with
        planned = [
            one.model_copy(update={"settings": one.settings.model_copy(update={"build": index.manifest.settings})})
            for one in planned
        ]
    usable = tuple(one for one in planned if set(one.settings.fusion.paths) & set(index.path_names))
    if not usable:
        raise BadInput(f"{request.root} has none of the paths that the grid's methods retrieve by.")
    absent = dict.fromkeys(
        f"{one.cell.method} retrieves by {' and '.join(one.settings.fusion.paths)}, which this index does not have."
        for one in planned
        if one not in usable
    )
    return usable, index.build_id, index.manifest.fingerprints.model_dump(), tuple(absent)


def _with_steps(
    planned: Sequence[Planned], sets: Mapping[str, AnswerSet]
) -> tuple[tuple[Planned, ...], tuple[str, ...]]:
    """(the cells without those that a set cannot ask, a sentence for each of these)."""
    without = {name for name, found in sets.items() if not all(question.steps for question in found.questions)}
    gone = [one for one in planned if one.cell.method == GOLD_STEPS and one.cell.dataset in without]
    told = (f"{GOLD_STEPS}: the questions of {one.cell.dataset} have no sub-questions of their own." for one in gone)
    return tuple(one for one in planned if one not in gone), tuple(told)


def _served(url: str, strict: bool) -> tuple[dict[str, object], str, str]:
    """(fingerprints, build, what is wrong); with ``strict`` a service that is down is an error, else each row's."""
    try:
        found = asking.check_service(url)
    except (Unavailable, NotFound) as error:
        if strict:
            raise
        return {}, "", str(error)
    return dict(found.get("fingerprints", {})), str(found.get("build_id", "")), ""


def _absolute(root: str) -> str:
    """Workers have working folders of their own."""
    return str(Path(root).expanduser().absolute()) if root and "://" not in root else root


def _changed(grid: Grid, request: Request) -> Grid:
    """With the methods and datasets that are asked for."""
    changes = {}
    for field, value in (("methods", request.methods), ("datasets", request.datasets)):
        if value is None:
            continue
        names = tuple(name.strip() for name in value.split(",") if name.strip())
        if not names:
            raise BadInput(f"--{field} is empty: name some by comma{', or all' if field == 'methods' else ''}.")
        changes[field] = tuple(sorted(grids.method_files())) if field == "methods" and names == ("all",) else names
    return grid.model_copy(update=changes)
