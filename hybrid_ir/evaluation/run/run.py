"""A run's folder: what was asked of what, by which versions, so that it can be repeated; and its rows at the end.

run.json            grid, cells with their whole settings, build, datasets, versions, commit, seeds
journal.jsonl       a row for each finished question, as it came
rows.parquet        the same at the end, in the grid's order
predictions.jsonl   cell, question, what was said: the same bytes for the same predictions
summary.json, report.html, report.md
"""

from __future__ import annotations

import itertools
import json
import platform
import subprocess
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, Literal

import pyarrow.parquet as pq
from pydantic import Field, ValidationError

from hybrid_ir.errors import BadInput, Conflict, Damaged, NotFound
from hybrid_ir.evaluation.run import journal
from hybrid_ir.evaluation.run.grid import Grid, Planned, fingerprint
from hybrid_ir.evaluation.run.rows import Row, table
from hybrid_ir.evaluation.sets.question_sets import DatasetRecord
from hybrid_ir.evaluation.sets.questions import GoldQuestion
from hybrid_ir.records import Record

PACKAGES = ("hybrid-ir", "ray", "torch", "transformers", "spacy", "faiss-cpu", "numpy", "pyarrow", "scipy", "numba")
RUN, PREDICTIONS, PARQUET = "run.json", "predictions.jsonl", "rows.parquet"


class Run(Record):
    """All that a run depends on."""

    format: Literal[1] = 1
    started: str
    """Date and time, UTC."""
    grid: Grid
    planned: tuple[Planned, ...]
    left_out: tuple[str, ...] = ()
    root: str = ""
    url: str = ""
    """Of the service that was asked, in the place of an index."""
    build_id: str
    fingerprints: dict[str, Any]
    """Of the models that the build was made with."""
    data: str = ""
    beside: str
    """The folder that paths in the grid start from."""
    limit: int | None = None
    datasets: dict[str, DatasetRecord]
    versions: dict[str, str]
    commit: str = ""
    """Of the code, with ``+`` where files were changed; empty outside a checkout."""
    questions: dict[str, tuple[GoldQuestion, ...]] = Field(default_factory=dict, exclude=True)
    """By dataset; not written to ``run.json``."""

    def all(self) -> Iterable[tuple[Planned, GoldQuestion]]:
        """Every question of every cell, in the grid's order."""
        return ((one, question) for one in self.planned for question in self.questions[one.cell.dataset])

    def todo(self) -> Iterable[tuple[Planned, GoldQuestion]]:
        """The same in the order of asking: of a model and dataset, question by question.

        So a run that stops early has asked its methods the same questions, and what one of them had to read or encode
        is still at hand for the next.  Which comes first goes round, so that none always pays for the others.
        """
        for (_, dataset), group in itertools.groupby(self.planned, lambda one: (one.cell.model, one.cell.dataset)):
            cells = list(group)
            for number, question in enumerate(self.questions[dataset]):
                first = number % len(cells)
                yield from ((one, question) for one in (*cells[first:], *cells[:first]))

    def total(self) -> int:
        return sum(len(self.questions[one.cell.dataset]) for one in self.planned)


def versions() -> dict[str, str]:
    """Of Python and of the packages that a result may depend on."""
    found = {"python": platform.python_version()}
    for name in PACKAGES:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            continue
    return found


def commit() -> str:
    """Of the checkout that this file lies in."""
    here = Path(__file__).parent

    def git(*arguments: str) -> str:
        done = subprocess.run(  # noqa: S603
            ["git", *arguments],  # noqa: S607
            cwd=here,
            capture_output=True,
            text=True,
            timeout=20,
            check=True,
        )
        return done.stdout.strip()

    try:
        return git("rev-parse", "HEAD") + ("+" if git("status", "--porcelain", "--untracked-files=no", ".") else "")
    except (OSError, subprocess.SubprocessError):
        return ""


def now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")


def begin(folder: Path, run: Run) -> list[str]:
    """Write ``run.json``, or find it there and hold this run against it.

    Gives sentences on what differs without harm (versions, commit).  Raises Conflict where rows of this run would
    stand beside rows of another.
    """
    path = folder / RUN
    if not path.exists():
        if (folder / journal.NAME).exists() and (folder / journal.NAME).stat().st_size:
            raise Damaged(f"{folder}: has rows but no {RUN}. Name another --out.")
        try:
            folder.mkdir(parents=True, exist_ok=True)
            part = path.with_suffix(".part")
            part.write_text(run.model_dump_json(indent=1) + "\n", encoding="utf-8")
            part.replace(path)
        except OSError as error:
            raise BadInput(f"{folder}: results cannot be written there ({error.strerror or error}).") from error
        return []
    before = read(folder)
    for what, old, new in (
        ("index", before.build_id, run.build_id),
        ("service", before.url, run.url),
        ("questions", _hashes(before), _hashes(run)),
        ("options_in_query", before.grid.options_in_query, run.grid.options_in_query),
        ("answers", before.grid.answers, run.grid.answers),
        ("grid", [one.cell.key for one in before.planned], [one.cell.key for one in run.planned]),
        ("settings", list(map(fingerprint, before.planned)), list(map(fingerprint, run.planned))),
    ):
        if old != new:
            raise Conflict(
                f"{folder}: holds a run with other {what}. Name another --out, or repeat that run: --rerun {folder}"
            )
    told = []
    if before.versions != run.versions:
        names = [
            n for n in before.versions.keys() | run.versions.keys() if before.versions.get(n) != run.versions.get(n)
        ]
        told.append(f"Other versions than when this run began: {', '.join(sorted(names))}.")
    if before.commit != run.commit:
        told.append("Other code than when this run began.")
    return told


def read(folder: Path) -> Run:
    """Raises NotFound where the folder holds no run."""
    path = folder / RUN
    try:
        return Run.model_validate_json(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise NotFound(f"{folder}: no run is there ({RUN} is missing).") from None
    except (OSError, ValidationError, UnicodeDecodeError) as error:
        reason = str(error).splitlines()[0]
        raise Damaged(f"{path}: cannot be read as a run of this version ({reason}).") from error


def ordered(run: Run, rows: Mapping[journal.Key, Row]) -> list[Row]:
    """The rows in the grid's order; those of no question of the run are left out."""
    keys = ((one.cell.key, question.id) for one, question in run.all())
    return [rows[key] for key in keys if key in rows]


def write(folder: Path, rows: Sequence[Row]) -> None:
    """``rows.parquet`` and ``predictions.jsonl``."""
    pq.write_table(table(rows), folder / PARQUET)
    fields = ("cell", "id", "prediction", "choice", "short", "cited")
    lines = (json.dumps({name: getattr(row, name) for name in fields}, ensure_ascii=False) for row in rows)
    (folder / PREDICTIONS).write_text("".join(line + "\n" for line in lines), encoding="utf-8")


def _hashes(run: Run) -> dict[str, str]:
    return {name: one.sha256 for name, one in run.datasets.items()}
