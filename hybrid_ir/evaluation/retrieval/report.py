"""What came of a retrieval benchmark: a summary, a table, Parquet rows and a plot."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from hybrid_ir.evaluation.intervals import bootstrap, paired
from hybrid_ir.evaluation.retrieval.methods import Row
from hybrid_ir.records import Record

FIRST, SECOND = "#2f6f9f", "#c8553d"


class Cell(Record):
    """One measure of one method over a set's questions."""

    mean: float
    low: float
    high: float


class Line(Record):
    """One method."""

    method: str
    questions: int
    measures: dict[str, Cell]
    seconds: float
    """Median of a question; what earlier methods of the same run had ranked already costs nothing again."""


class Comparison(Record):
    """The default fusion less the best single path, over the same questions, by the set's first measure."""

    fusion: str
    path: str
    measure: str
    difference: Cell
    p: float


class Summary(Record):
    """One set."""

    set: str
    documents: int
    questions: int
    build_id: str
    lines: tuple[Line, ...]
    comparison: Comparison | None = None


def summarise(
    name: str, documents: int, build_id: str, rows: Sequence[Row], paths: Sequence[str], fusion: str
) -> Summary:
    """Means with 95 % bootstrap intervals, and the method ``fusion`` against the best of its paths alone."""
    by_method: dict[str, list[Row]] = {}
    for row in rows:
        by_method.setdefault(row.method, []).append(row)
    lines = tuple(_line(method, found) for method, found in by_method.items())
    comparison = _comparison(by_method, paths, fusion, next(iter(rows[0].measures))) if rows else None
    questions = len({row.question_id for row in rows})
    return Summary(
        set=name,
        documents=documents,
        questions=questions,
        build_id=build_id,
        lines=lines,
        comparison=comparison,
    )


def _line(method: str, rows: Sequence[Row]) -> Line:
    cells = {}
    for measure in rows[0].measures:
        interval = bootstrap([row.measures[measure] for row in rows])
        cells[measure] = Cell(mean=interval.mean, low=interval.low, high=interval.high)
    seconds = sorted(row.seconds for row in rows)[len(rows) // 2]
    return Line(method=method, questions=len(rows), measures=cells, seconds=seconds)


def _comparison(rows: dict[str, list[Row]], paths: Sequence[str], fusion: str, measure: str) -> Comparison | None:
    alone = {path: [row.measures[measure] for row in rows[path]] for path in paths if path in rows}
    if fusion not in rows or not alone:
        return None
    best = max(alone, key=lambda path: sum(alone[path]))
    found = paired([row.measures[measure] for row in rows[fusion]], alone[best])
    cell = Cell(mean=found.interval.mean, low=found.interval.low, high=found.interval.high)
    return Comparison(fusion=fusion, path=best, measure=measure, difference=cell, p=found.p)


def table(summary: Summary) -> str:
    """For a terminal."""
    width = max((len(line.method) for line in summary.lines), default=6)
    measures = list(summary.lines[0].measures) if summary.lines else []
    head = f"{summary.set}: {summary.questions} questions over {summary.documents:,} documents"
    titles = "".join(f"  {measure:<18}" for measure in measures)
    shown = [head, f"  {'':<{width}}{titles}", *(_shown(line, width) for line in summary.lines)]
    if (found := summary.comparison) is not None:
        gap = found.difference
        shown.append(
            f"  {found.fusion} less {found.path}, {found.measure}: "
            f"{gap.mean:+.3f} [{gap.low:+.3f}, {gap.high:+.3f}], p = {found.p:.3f}"
        )
    return "\n".join(shown)


def _shown(line: Line, width: int) -> str:
    cells = (f"{cell.mean:.3f} [{cell.low:.3f}, {cell.high:.3f}]" for cell in line.measures.values())
    return f"  {line.method:<{width}}" + "".join(f"  {cell:<18}" for cell in cells)


def write_rows(path: Path, rows: Sequence[Row]) -> None:
    """One row for each question and method: ids, ranked and gold documents, every measure."""
    measures = list(rows[0].measures) if rows else []
    columns = {
        "question_id": pa.array([row.question_id for row in rows], pa.string()),
        "method": pa.array([row.method for row in rows], pa.string()),
        "ranked": pa.array([list(row.ranked) for row in rows], pa.list_(pa.string())),
        "gold": pa.array([list(row.gold) for row in rows], pa.list_(pa.string())),
        **{name: pa.array([row.measures[name] for row in rows], pa.float64()) for name in measures},
        "seconds": pa.array([row.seconds for row in rows], pa.float64()),
    }
    pq.write_table(pa.table(columns), path)


def plot(path: Path, summary: Summary) -> None:
    """The set's first measure of every method with its interval.  Needs matplotlib (extra ``bench``)."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    measure = next(iter(summary.lines[0].measures))
    names = [line.method for line in summary.lines][::-1]
    cells = [line.measures[measure] for line in summary.lines][::-1]
    figure = Figure(figsize=(7.5, 1.2 + 0.36 * len(names)), layout="constrained")
    axes = figure.subplots()
    errors = [[c.mean - c.low for c in cells], [c.high - c.mean for c in cells]]
    single = [name in ("graph", "dense", "sparse") for name in names]
    axes.barh(names, [c.mean for c in cells], xerr=errors, color=[FIRST if s else SECOND for s in single], height=0.65)
    for place, cell in enumerate(cells):
        axes.text(0.01, place, f"{cell.mean:.3f}", va="center", color="white", fontsize=8)
    axes.set_xlim(0, 1)
    axes.set_xlabel(f"{measure} with its 95 % bootstrap interval")
    axes.set_title(f"{summary.set}: {summary.questions} questions, {summary.documents:,} documents", fontsize=10)
    axes.spines[["top", "right"]].set_visible(False)
    FigureCanvasAgg(figure)  # no display is looked for
    figure.savefig(path, format="png", dpi=150)
