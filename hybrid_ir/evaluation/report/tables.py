"""A run's summary as tables of texts, from which the page, the Markdown and the terminal's lines are made."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from hybrid_ir.evaluation.comparisons import ACCURACY, Comparison
from hybrid_ir.evaluation.report import paper
from hybrid_ir.evaluation.rescore import Share
from hybrid_ir.evaluation.statistics import FAILURES, CellSummary, Summary


@dataclass(frozen=True)
class Table:
    """Texts only; nothing in it is markup."""

    title: str
    header: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    note: str = ""


def tables(summary: Summary) -> list[Table]:
    """All of a run, those without rows left out."""
    found = [
        *accuracy(summary),
        comparisons(summary),
        scores(summary),
        retrieval(summary),
        rounds(summary),
        failures(summary),
        costs(summary),
        *breakdowns(summary),
    ]
    return [table for table in found if table.rows]


def accuracy(summary: Summary) -> list[Table]:
    """Methods by datasets, as the paper lays its tables out, and the paper's own lines beneath."""
    made: list[Table] = []
    if not summary.answers:
        return made
    datasets = list(dict.fromkeys(one.cell.dataset for one in summary.cells))
    for model in dict.fromkeys(one.cell.model for one in summary.cells):
        of_model = [one for one in summary.cells if one.cell.model == model]
        rows = []
        most = {d: max((one.asked for one in of_model if one.cell.dataset == d), default=0) for d in datasets}
        for label in dict.fromkeys(one.cell.label for one in of_model):
            by_set = {one.cell.dataset: one for one in of_model if one.cell.label == label}
            told = (_of_all(by_set[d], most[d]) if d in by_set else "-" for d in datasets)
            rows.append((label, *told))
        if set(datasets) & set(paper.DATASETS):
            rows += _paper_rows(summary, datasets)
        counts = ", ".join(f"{d}: {count}" for d, count in most.items())
        note = f"In %, with Wilson's 95 % interval; what is not answered is wrong. Questions: {counts}."
        made.append(Table(f"Accuracy, {model}", ("method", *datasets), tuple(rows), note))
    return made


def _of_all(one: CellSummary, most: int) -> str:
    """The accuracy, and of how many questions where others were asked more."""
    return percent(one.strict) + (f" of {one.asked}" if one.asked < most else "")


def _paper_rows(summary: Summary, datasets: Sequence[str]) -> list[tuple[str, ...]]:
    rows = []
    for model in paper.models(summary.paper):
        for method in paper.TABLES[summary.paper][model]:
            numbers = [paper.number(summary.paper, model, method, dataset) for dataset in datasets]
            told = ("-" if number is None else f"{number:.1f}" for number in numbers)
            rows.append((f"{method}, {model} ({paper.MARK})", *told))
    return rows


def comparisons(summary: Summary) -> Table:
    labels = {one.key: one.cell for one in summary.cells}
    rows = tuple(
        (
            labels[one.a].dataset,
            labels[one.a].model,
            f"{labels[one.a].label} less {labels[one.b].label}",
            one.measure,
            str(one.questions),
            difference(one),
            f"{one.only_a} : {one.only_b}",
            _p(one.p),
            _p(one.p_corrected),
            "a difference" if one.p_corrected < 0.05 else "noise, as far as this tells",
        )
        for one in summary.comparisons
    )
    header = ("dataset", "model", "methods", "of", "questions", "difference [95 %]", "one alone better", "p")
    note = (
        "Over the questions that both were asked: paired bootstrap interval; p of accuracy by McNemar's exact test, of "
        "retrieval by the bootstrap, but no less than a test of signs can give; Holm's correction by model, dataset "
        "and measure. Accuracy in points."
    )
    return _lean(Table(f"{summary.reference} against the others", (*header, "p, Holm", "reading"), rows, note))


def scores(summary: Summary) -> Table:
    rows = tuple(
        (
            *_named(one),
            str(one.asked),
            percent(one.strict),
            percent(one.compatible),
            percent(one.answered),
            str(one.unanswered),
            str(one.errors),
            _number(one.same, 3),
            _number(one.exact, 3),
            _number(one.f1, 3),
        )
        for one in summary.cells
        if summary.answers
    )
    header = ("dataset", "model", "method", "asked", "strict", "as MIRAGE", "of answered", "unanswered", "errors")
    note = (
        "As MIRAGE: a reply that cannot be read counts as A, and only the gold letter is right. Of answered: without "
        "unanswered questions and errors. EM (the very text), normalised EM and F1: of open questions, whose strict "
        "score asks for an accepted text within the short answer. Questions without a known answer are not scored."
    )
    return _lean(Table("Scores", (*header, "EM", "EM, normalised", "F1"), rows, note))


def retrieval(summary: Summary) -> Table:
    names = list(dict.fromkeys(name for one in summary.cells for name in one.retrieval))
    rows = tuple((*_named(one), *(_mean(one, name) for name in names)) for one in summary.cells if one.retrieval)
    note = (
        "Of the documents found, best first; of a loop what its answer cites, then round after round. 95 % bootstrap."
    )
    return _lean(Table("Retrieval, where gold documents are known", ("dataset", "model", "method", *names), rows, note))


def rounds(summary: Summary) -> Table:
    rows = tuple(
        (*_named(one), str(of.number), str(of.questions), f"{of.recall:.3f}", f"{100 * of.brought_new:.1f} %")
        for one in summary.cells
        for of in one.rounds
        if len(one.rounds) > 1
    )
    header = ("dataset", "model", "method", "round", "questions that ran it", "gold recall so far", "brought new gold")
    note = (
        "Gold recall over all evidence up to the end of that round; a question that stopped earlier keeps what it had."
    )
    return _lean(Table("Does a later round bring new evidence?", header, rows, note))


def failures(summary: Summary) -> Table:
    names = [name for name in FAILURES if any(name in one.failures for one in summary.cells)]
    rows = tuple(
        (*_named(one), str(one.asked - sum(one.failures.values())), *(str(one.failures.get(name, 0)) for name in names))
        for one in summary.cells
    )
    note = "; ".join(f"{name}: {FAILURES[name]}" for name in names)
    right = "right" if summary.answers else "all found"
    return _lean(Table("Where failures arise", ("dataset", "model", "method", right, *names), rows, note))


def costs(summary: Summary) -> Table:
    rows = tuple(
        (
            *_named(one),
            f"{one.calls:.1f}",
            f"{one.tokens:,.0f}",
            f"{one.seconds:.2f}",
            f"{one.p95_seconds:.2f}",
            _number(one.calls_per_correct, 1),
            _number(one.tokens_per_correct, 0),
            _number(one.seconds_per_correct, 2),
            str(one.degraded),
        )
        for one in summary.cells
    )
    each = ("calls", "tokens", "seconds", "seconds, 95th")
    right = ("calls per right answer", "tokens per right answer", "seconds per right answer", "degraded")
    note = "Means of a question. Seconds are of a question while others run beside it, not of the machine."
    return _lean(Table("Cost", ("dataset", "model", "method", *each, *right), rows, note))


def breakdowns(summary: Summary) -> list[Table]:
    """By subject and by type of question, a dataset each."""
    made: list[Table] = []
    for dataset in dict.fromkeys(one.cell.dataset for one in summary.cells) if summary.answers else ():
        cells = [one for one in summary.cells if one.cell.dataset == dataset]
        several = len({one.cell.model for one in cells}) > 1
        labels = [one.cell.label + (f", {one.cell.model}" if several else "") for one in cells]
        for what, field in (("subject", "by_subject"), ("type of question", "by_type")):
            kinds: list[dict[str, Share]] = [getattr(one, field) for one in cells]
            names = sorted(set().union(*kinds)) if kinds else []
            if len(names) < 2:
                continue
            rows = [[f"{percent(k[name])} ({k[name].asked})" if name in k else "-" for name in names] for k in kinds]
            down, across = labels, [name or "(none)" for name in names]
            if len(across) > len(down):  # a page is higher than wide
                down, across, rows = across, down, [list(column) for column in zip(*rows, strict=True)]
            lines = tuple((name, *row) for name, row in zip(down, rows, strict=True))
            made.append(Table(f"{dataset} by {what}", ("", *across), lines))
    return made


def difference(one: Comparison) -> str:
    """Accuracy in points, a measure of retrieval as it is."""
    scale, digits = (100, 1) if one.measure == ACCURACY else (1, 3)
    of = one.difference
    mean, low, high = (f"{scale * value:+.{digits}f}" for value in (of.mean, of.low, of.high))
    return f"{mean} [{low}, {high}]"


def percent(share: Share) -> str:
    """``72.2 [69.7, 74.6]``; a dash where nothing was asked."""
    if not share.asked:
        return "-"
    return f"{100 * share.mean:.1f} [{100 * share.low:.1f}, {100 * share.high:.1f}]"


def _lean(table: Table) -> Table:
    """Without the dataset, the model, calls and tokens where they say the same in every row."""
    rows, header = table.rows, table.header
    same = {n: rows[0][n] for n in range(len(header)) if rows and len({row[n] for row in rows}) == 1}
    gone = {n for n in same if header[n] in ("dataset", "model")}
    gone |= {n for n, value in same.items() if header[n].startswith(("calls", "tokens")) and value in ("0", "0.0")}
    if not gone:
        return table
    kept = [n for n in range(len(header)) if n not in gone]
    picked = tuple(tuple(row[n] for n in kept) for row in rows)
    return Table(table.title, tuple(header[n] for n in kept), picked, table.note)


def _named(one: CellSummary) -> tuple[str, str, str]:
    return one.cell.dataset, one.cell.model, one.cell.label


def _mean(one: CellSummary, name: str) -> str:
    mean = one.retrieval.get(name)
    return f"{mean.mean:.3f} [{mean.low:.3f}, {mean.high:.3f}]" if mean else "-"


def _number(value: float | None, digits: int) -> str:
    return "-" if value is None else f"{value:,.{digits}f}"


def _p(value: float) -> str:
    return "< .001" if value < 0.001 else f"{value:.3f}"


def markdown(table: Table) -> str:
    """A pipe table; what texts hold of Markdown's signs is escaped."""
    lines = [f"## {_plain(table.title)}", "", _line(table.header), "|" + "---|" * len(table.header)]
    lines += [_line(row) for row in table.rows]
    return "\n".join([*lines, *(["", _plain(table.note)] if table.note else [])]) + "\n"


def _line(cells: Sequence[str]) -> str:
    return "| " + " | ".join(map(_plain, cells)) + " |"


def _plain(text: str) -> str:
    return "".join("\\" + sign if sign in "\\`*|<>" else sign for sign in " ".join(text.split()))


def terminal(table: Table) -> str:
    """Columns for a terminal."""
    widths = [max(len(row[n]) for row in (table.header, *table.rows)) for n in range(len(table.header))]
    shown = [table.title]
    for row in (table.header, *table.rows):
        shown.append("  " + "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip())
    return "\n".join(shown)
