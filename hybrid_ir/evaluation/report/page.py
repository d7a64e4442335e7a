"""A run as one HTML page that loads nothing: styles and pictures are in it, and every text is escaped."""

from __future__ import annotations

import base64
from collections.abc import Sequence
from html import escape

from hybrid_ir.evaluation.report.tables import Table, tables
from hybrid_ir.evaluation.run.rows import Row
from hybrid_ir.evaluation.run.run import Run
from hybrid_ir.evaluation.sets.questions import GoldQuestion
from hybrid_ir.evaluation.statistics import FAILURES, Summary, failure

SHOWN_QUESTIONS = 400
"""A page that a browser opens at once; the rest stands in ``rows.parquet``."""
SHOWN_CHARS = 4000

STYLE = """
body { font: 15px/1.45 system-ui, sans-serif; max-width: 72rem; margin: 2rem auto; padding: 0 1rem; color: #1c2733; }
h1 { font-size: 1.5rem; } h2 { font-size: 1.1rem; margin-top: 2.2rem; }
table { border-collapse: collapse; font-size: .85rem; } .wide { overflow-x: auto; }
th, td { padding: .25rem .6rem; text-align: left; border-bottom: 1px solid #dde3e8; white-space: nowrap; }
td { font-variant-numeric: tabular-nums; }
th { background: #f3f6f8; white-space: normal; vertical-align: bottom; }
tr.paper td { color: #6b7785; font-style: italic; }
.note { color: #566270; font-size: .85rem; max-width: 60rem; } .stop { background: #fdf1e3; padding: .6rem .9rem; }
details { border-bottom: 1px solid #e6eaee; padding: .3rem 0; } details details { margin-left: 1.2rem; }
summary { cursor: pointer; } .right { color: #2f7a3d; } .wrong { color: #b0402c; } .id { color: #7b8794; }
pre { white-space: pre-wrap; background: #f6f8fa; padding: .5rem .7rem; font-size: .8rem; overflow-wrap: anywhere; }
img { max-width: 100%; height: auto; }
@media (prefers-color-scheme: dark) {
  body { background: #14181d; color: #dbe2ea; } th, pre { background: #1e252d; } th, td { border-color: #2c3640; }
  img { background: #fff; } .stop { background: #3a2c17; } .note, tr.paper td, .id { color: #93a1b0; }
  .right { color: #7ccf8b; } .wrong { color: #f0907c; } details { border-color: #2c3640; }
}
"""
POLICY = "default-src 'none'; img-src data:; style-src 'unsafe-inline'"


def page(run: Run, summary: Summary, rows: Sequence[Row], pictures: Sequence[tuple[str, bytes]], no_plots: str) -> str:
    """The whole page."""
    parts = [f"<h1>{escape(summary.title)}</h1>", _head(run, summary)]
    for table in tables(summary):
        parts.append(_table(table))
    for caption, png in pictures:
        data = base64.b64encode(png).decode()
        parts.append(f'<h2>{escape(caption)}</h2><img alt="{escape(caption)}" src="data:image/png;base64,{data}">')
    if no_plots:
        parts.append(f'<p class="note">{escape(no_plots)}</p>')
    parts.append(_questions(run, rows))
    body = "\n".join(parts)
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f'<meta http-equiv="Content-Security-Policy" content="{POLICY}">'
        f"<title>{escape(summary.title)}</title><style>{STYLE}</style></head>\n<body>\n{body}\n</body></html>\n"
    )


def _head(run: Run, summary: Summary) -> str:
    facts = [f"Build {run.build_id or '(a service)'}, begun {run.started}.", *summary.notes]
    made = [f"commit {run.commit}"] if run.commit else []
    made += [f"{name} {number}" for name, number in run.versions.items()]
    told = [f'<p class="note">{escape(" ".join(facts))}</p>']
    told.append(f'<details class="note"><summary>Versions</summary>{escape(", ".join(made))}</details>')
    if summary.stopped:
        told.append(f'<p class="stop">Not finished. {escape(summary.stopped)}</p>')
    told += [f'<p class="note">Left out: {escape(said)}</p>' for said in summary.left_out]
    told += [f'<p class="note">{escape(problem)}</p>' for problem in summary.problems]
    return "\n".join(told)


def _table(table: Table) -> str:
    head = "".join(f"<th>{escape(cell)}</th>" for cell in table.header)
    lines = []
    for row in table.rows:
        kind = ' class="paper"' if "from the paper" in row[0] else ""
        lines.append(f"<tr{kind}>" + "".join(f"<td>{escape(cell)}</td>" for cell in row) + "</tr>")
    note = f'<p class="note">{escape(table.note)}</p>' if table.note else ""
    body = "\n".join(lines)
    return f'<h2>{escape(table.title)}</h2><div class="wide"><table><tr>{head}</tr>\n{body}</table></div>{note}'


def _questions(run: Run, rows: Sequence[Row]) -> str:
    """Every question with what each cell made of it; those that not all had right come first."""
    cells = {one.cell.key: one.cell for one in run.planned}
    by_question: dict[tuple[str, str], list[Row]] = {}
    for row in rows:
        by_question.setdefault((cells[row.cell].dataset, row.id), []).append(row)
    known = {(name, question.id): question for name, found in run.questions.items() for question in found}
    order = sorted(by_question, key=lambda key: _right(run, known[key], by_question[key]) == len(by_question[key]))
    shown = [_question(run, known[key], key[0], by_question[key]) for key in order[:SHOWN_QUESTIONS]]
    left = len(order) - len(shown)
    more = f'<p class="note">{left} more questions are in rows.parquet.</p>' if left else ""
    return "<h2>Questions</h2>\n" + "\n".join(shown) + more


def _question(run: Run, question: GoldQuestion, dataset: str, rows: Sequence[Row]) -> str:
    right = _right(run, question, rows)
    options = "\n".join(f"{letter}. {text}" for letter, text in question.options.items())
    told = question.question + (f"\n\n{options}" if options else "") + f"\n\nRight: {question.answer}"
    if question.gold:
        told += f"\nGold documents: {', '.join(question.gold)}"
    kind = "right" if right == len(rows) else "wrong"
    first = " ".join(question.question.split())[:140]
    return (
        f'<details><summary><span class="{kind}">{right}/{len(rows)}</span> <span class="id">'
        f"{escape(dataset)} {escape(question.id)}</span> {escape(first)}</summary><pre>{escape(told)}</pre>"
        + "".join(_row(run, question, row) for row in rows)
        + "</details>"
    )


def _good(run: Run, row: Row) -> str:
    if not run.grid.answers:
        return "all gold documents found"
    return "right" if row.judged else "the right answer is not known"


def _right(run: Run, question: GoldQuestion, rows: Sequence[Row]) -> int:
    return sum(failure(row, question, run.grid.answers) is None for row in rows)


def _row(run: Run, question: GoldQuestion, row: Row) -> str:
    cell = next(one.cell for one in run.planned if one.cell.key == row.cell)
    why = failure(row, question, run.grid.answers)
    verdict = FAILURES[why] if why else _good(run, row)
    said = (row.choice or row.short or "-") if run.grid.answers else f"{len(row.ranked)} documents"
    lines = [f"stopped: {row.stopped}; {row.calls} calls, {row.tokens:,} tokens, {row.seconds:.2f} s"]
    lines += ["; ".join(f"{name} {value:.3f}" for name, value in row.measures.items())] if row.measures else []
    lines += [f"error: {row.error}"] if row.error else []
    lines += [f"degraded: {', '.join(row.degraded)}"] if row.degraded else []
    for number, round_ in enumerate(row.rounds, start=1):
        recall = "" if round_.gold_recall is None else f" (gold recall so far {round_.gold_recall:.2f})"
        lines.append(f"\nround {number}{recall}" + (f": missing {round_.missing}" if round_.missing else ""))
        for asked in round_.asked:
            lines.append(f"  ? {asked.text}")
            lines.append(f"    found: {', '.join(asked.evidence) or 'nothing'}")
            lines += [f"    - {statement}" for statement in asked.statements]
    if run.grid.answers:
        lines.append(f"\ncited: {', '.join(row.cited) or 'nothing'}")
    if row.prediction and row.prediction not in (row.choice, row.short):
        lines.append(f"reply: {row.prediction[-SHOWN_CHARS:]}")
    kind = "right" if why is None else "wrong"
    return (
        f'<details><summary>{escape(cell.label)}, {escape(cell.model)}: <span class="{kind}">{escape(said[:200])}, '
        f"{escape(verdict)}</span></summary><pre>{escape(chr(10).join(lines))}</pre></details>"
    )
