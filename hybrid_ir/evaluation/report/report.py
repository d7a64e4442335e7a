"""The report of a run: ``report.html``, ``report.md`` and ``summary.json`` in its folder; and of two runs compared."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from hybrid_ir.errors import BadInput
from hybrid_ir.evaluation.comparisons import ACCURACY, Comparison, compare, corrected
from hybrid_ir.evaluation.report import page, plots, tables
from hybrid_ir.evaluation.run import journal
from hybrid_ir.evaluation.run import run as runs
from hybrid_ir.evaluation.run.rows import Row
from hybrid_ir.evaluation.run.run import Run
from hybrid_ir.evaluation.statistics import Summary, summarise

PAGE, MARKDOWN, SUMMARY = "report.html", "report.md", "summary.json"
NO_PLOTS = "No plots: pip install 'hybrid-ir[bench]' brings matplotlib."


def write(folder: Path, run: Run, rows: Sequence[Row], stopped: str = "") -> Summary:
    """Make the report anew."""
    summary = summarise(run, rows, stopped)
    pictures, without = _pictures(summary)
    (folder / PAGE).write_text(page.page(run, summary, rows, pictures, without), encoding="utf-8")
    (folder / MARKDOWN).write_text(markdown(run, summary), encoding="utf-8")
    (folder / SUMMARY).write_text(summary.model_dump_json(indent=1) + "\n", encoding="utf-8")
    return summary


def markdown(run: Run, summary: Summary) -> str:
    """The tables."""
    told = [f"# {summary.title}", "", f"Build {run.build_id or '(a service)'}, begun {run.started}."]
    if summary.stopped:
        told.append(f"\n**Not finished.** {summary.stopped}")
    told += [f"\nLeft out: {said}" for said in summary.left_out]
    told += [f"\n{problem}" for problem in summary.problems]
    return "\n".join(told) + "\n\n" + "\n".join(map(tables.markdown, tables.tables(summary)))


def text(summary: Summary, folder: Path) -> str:
    """For a terminal."""
    shown = [
        *tables.accuracy(summary),
        tables.retrieval(summary),
        tables.comparisons(summary),
        tables.failures(summary),
    ]
    told = [tables.terminal(table) for table in shown if table.rows]
    told += [f"Left out: {said}" for said in summary.left_out]
    told += [f"Not finished. {summary.stopped}"] if summary.stopped else []
    return "\n\n".join([*told, f"The report, with every question: {folder / PAGE}"])


def compare_runs(a: Path, b: Path) -> list[Comparison]:
    """The cells that two runs share, over the questions that both asked; corrected over all of them.

    Raises NotFound where a folder holds no run, BadInput where they share nothing, or their questions differ.
    """
    first, second = runs.read(a), runs.read(b)
    for name, one in first.datasets.items():
        other = second.datasets.get(name)
        if other is not None and other.sha256 != one.sha256 and first.limit == second.limit:
            raise BadInput(f"{a} and {b} asked different questions as {name}; there is nothing to compare.")
    rows = [_by_cell(folder) for folder in (a, b)]
    shared = [one.cell.key for one in first.planned if one.cell.key in rows[0] and one.cell.key in rows[1]]
    if not shared:
        raise BadInput(
            f"{a} and {b} share no method, model, dataset, rounds, top-k and seed. {a} has "
            f"{', '.join(list(rows[0])[:5]) or 'no rows'}; {b} has {', '.join(list(rows[1])[:5]) or 'no rows'}."
        )
    measures = [ACCURACY] if first.grid.answers and second.grid.answers else []
    gold = (row.measures for key in shared for row in rows[0][key].values())
    measures += ["recall@5"] if any(gold) else []
    found = []
    for measure in measures:
        found += corrected([compare(rows[0][key], rows[1][key], (key, key), measure) for key in shared])
    return found


def comparison_text(found: Sequence[Comparison], a: Path, b: Path) -> str:
    """For a terminal."""
    rows = tuple(
        (
            one.a,
            one.measure,
            str(one.questions),
            tables.difference(one),
            f"{one.only_a} : {one.only_b}",
            f"{one.p:.3f}",
            f"{one.p_corrected:.3f}",
        )
        for one in found
    )
    header = ("cell", "measure", "questions", "difference [95 %]", "one alone better", "p", "p, Holm")
    return tables.terminal(tables.Table(f"{a} less {b}", header, rows))


def _by_cell(folder: Path) -> dict[str, dict[str, Row]]:
    found: dict[str, dict[str, Row]] = {}
    for (cell, question), row in journal.read(folder / journal.NAME).items():
        found.setdefault(cell, {})[question] = row
    return found


def _pictures(summary: Summary) -> tuple[list[tuple[str, bytes]], str]:
    try:
        return plots.plots(summary), ""
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] != "matplotlib":
            raise
        return [], NO_PLOTS
