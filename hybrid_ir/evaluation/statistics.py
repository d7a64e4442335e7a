"""What the rows of a run come to: shares with intervals, costs, and where failures arise."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Literal

from hybrid_ir.evaluation.comparisons import ACCURACY, Comparison, Mean, Rows, with_reference
from hybrid_ir.evaluation.intervals import bootstrap
from hybrid_ir.evaluation.rescore import Share, share
from hybrid_ir.evaluation.run.grid import Cell
from hybrid_ir.evaluation.run.rows import MEASURES, Row
from hybrid_ir.evaluation.run.run import Run
from hybrid_ir.evaluation.sets.questions import GoldQuestion
from hybrid_ir.records import Record

FAILURES = {
    "error": "ended in an error",
    "unread": "the model's reply could not be read",
    "no answer": "no answer was given",
    "not retrieved": "no gold document was retrieved",
    "partly retrieved": "some gold documents were retrieved, not all",
    "not used": "all gold documents were retrieved, the answer is wrong",
    "wrong": "wrong, and what should have been retrieved is not known",
}
"""Why a question is not right; each wrong row has one, the first that holds."""
Failure = Literal["error", "unread", "no answer", "not retrieved", "partly retrieved", "not used", "wrong"]


class RoundMeasures(Record):
    """The gold documents found up to the end of a round, over the questions that have any."""

    number: int
    questions: int
    """That ran this round."""
    recall: float
    """Of all questions with gold documents: one that stopped earlier keeps what it had."""
    brought_new: float
    """The share of the questions that ran it for which it found a gold document that no earlier round had."""


class CellSummary(Record):
    """One cell over its questions."""

    cell: Cell
    key: str
    asked: int
    """Rows: questions that were asked so far."""
    errors: int
    unanswered: int
    strict: Share
    """Errors and what was not answered are wrong."""
    compatible: Share
    answered: Share
    """Strict, over the questions that were answered."""
    same: float | None
    exact: float | None
    f1: float | None
    """Of open questions: the very text, exact match and F1 of the normalised texts."""
    by_subject: dict[str, Share]
    by_type: dict[str, Share]
    retrieval: dict[str, Mean]
    """Over the questions whose gold documents are known; empty where there are none."""
    rounds: tuple[RoundMeasures, ...]
    failures: dict[str, int]
    calls: float
    tokens: float
    seconds: float
    """Means of a question."""
    p95_seconds: float
    calls_per_correct: float | None
    tokens_per_correct: float | None
    seconds_per_correct: float | None
    """All that was spent, over the questions that came out right; None where none did."""
    degraded: int
    """Questions for which a retrieval path failed."""


class Summary(Record):
    """A run."""

    name: str
    title: str
    paper: str
    build_id: str
    reference: str
    answers: bool
    """False: retrieval alone was measured."""
    cells: tuple[CellSummary, ...]
    comparisons: tuple[Comparison, ...]
    left_out: tuple[str, ...]
    stopped: str
    problems: tuple[str, ...]
    """Lines of the datasets that could not be used."""
    notes: tuple[str, ...] = ()
    """What is unusual in a dataset."""


def failure(row: Row, question: GoldQuestion, answers: bool = True) -> Failure | None:
    """Why a row is not right; None where it is.  Without ``answers`` right is what brought all gold documents."""
    if row.strict:
        return None
    if row.error:
        return "error"
    if answers and row.unanswered:
        return "unread" if row.unread else "no answer"
    if answers and not row.judged:
        return None
    if not question.gold or not row.rounds:
        return "wrong"
    recall = row.rounds[-1].gold_recall or 0.0
    if recall == 1:
        return "not used" if answers else None
    return "partly retrieved" if recall else "not retrieved"


def summarise(run: Run, rows: Sequence[Row], stopped: str = "") -> Summary:
    """All of a run."""
    by_cell: dict[str, dict[str, Row]] = {}
    for row in rows:
        by_cell.setdefault(row.cell, {})[row.id] = row
    asked = [one.cell for one in run.planned if one.cell.key in by_cell]
    questions = {name: {question.id: question for question in found} for name, found in run.questions.items()}
    reference = run.grid.reference if any(c.method == run.grid.reference for c in asked) else ""
    reference = reference or (asked[0].method if asked else "")
    compared = {name: _compared(found, run.grid.answers) for name, found in run.questions.items()}
    return Summary(
        name=run.grid.name,
        title=run.grid.title or run.grid.name,
        paper=run.grid.paper,
        build_id=run.build_id,
        reference=reference,
        answers=run.grid.answers,
        cells=tuple(_cell(cell, by_cell[cell.key], questions[cell.dataset], run.grid.answers) for cell in asked),
        comparisons=tuple(with_reference(asked, by_cell, reference, compared)),
        left_out=run.left_out,
        stopped=stopped,
        problems=tuple(problem for one in run.datasets.values() for problem in one.problems),
        notes=tuple(one.summary for one in run.datasets.values()),
    )


def _compared(questions: Sequence[GoldQuestion], answers: bool) -> tuple[str, ...]:
    """Accuracy where there are answers; recall where gold documents are known: a single one is found or not."""
    most = max((len(question.gold) for question in questions), default=0)
    retrieval = () if not most else ("hit@1",) if most == 1 else ("recall@5",)
    return (*((ACCURACY,) if answers else ()), *retrieval)


def _cell(cell: Cell, rows: Rows, questions: Mapping[str, GoldQuestion], answers: bool) -> CellSummary:
    pairs = [(row, questions[identity]) for identity, row in rows.items() if identity in questions]
    said = [row for row, _ in pairs]
    judged = [row for row in said if row.judged]
    right = sum(row.strict for row in judged)
    answered = [row for row in judged if not row.error and not row.unanswered]
    seconds = sorted(row.seconds for row in said)
    exact = [float(row.exact) for row in said if row.exact is not None]
    f1 = [row.f1 for row in said if row.f1 is not None]
    with_gold = [row for row, question in pairs if question.gold and not row.error and row.rounds]
    subjects = _shares([(question.subject, row.strict) for row, question in pairs if row.judged])
    why = Counter(filter(None, (failure(row, question, answers) for row, question in pairs)))
    return CellSummary(
        cell=cell,
        key=cell.key,
        asked=len(said),
        errors=sum(bool(row.error) for row in said),
        unanswered=sum(row.unanswered for row in said),
        strict=share(right, len(judged)),
        compatible=share(sum(row.compatible for row in judged), len(judged)),
        answered=share(sum(row.strict for row in answered), len(answered)),
        same=_mean([float(row.same) for row in judged if row.same is not None]),
        exact=_mean(exact),
        f1=_mean(f1),
        by_subject={} if set(subjects) <= {""} else subjects,
        by_type=_shares([(question.type, row.strict) for row, question in pairs if row.judged]),
        retrieval=_retrieval(with_gold),
        rounds=_rounds(with_gold),
        failures={name: why[name] for name in FAILURES if why[name]},
        calls=sum(row.calls for row in said) / max(1, len(said)),
        tokens=sum(row.tokens for row in said) / max(1, len(said)),
        seconds=sum(seconds) / max(1, len(said)),
        p95_seconds=seconds[min(len(seconds) - 1, int(0.95 * len(seconds)))] if seconds else 0.0,
        calls_per_correct=sum(row.calls for row in said) / right if right else None,
        tokens_per_correct=sum(row.tokens for row in said) / right if right else None,
        seconds_per_correct=sum(seconds) / right if right else None,
        degraded=sum(bool(row.degraded) for row in said),
    )


def _shares(items: Sequence[tuple[str, bool]]) -> dict[str, Share]:
    asked, right = Counter(name for name, _ in items), Counter(name for name, good in items if good)
    return {name: share(right[name], asked[name]) for name in sorted(asked)}


def _mean(values: Sequence[float]) -> float | None:
    return sum(values) / len(values) if values else None


def _retrieval(rows: Sequence[Row]) -> dict[str, Mean]:
    found = {}
    for name in MEASURES if rows else ():
        interval = bootstrap([row.measures[name] for row in rows if name in row.measures])
        found[name] = Mean(mean=interval.mean, low=interval.low, high=interval.high)
    return found


def _rounds(rows: Sequence[Row]) -> tuple[RoundMeasures, ...]:
    measures = []
    for number in range(1, max((len(row.rounds) for row in rows), default=0) + 1):
        ran = [row for row in rows if len(row.rounds) >= number]
        after = [row.rounds[min(number, len(row.rounds)) - 1].gold_recall or 0.0 for row in rows]
        before = [(row.rounds[number - 2].gold_recall or 0.0) if number > 1 else 0.0 for row in ran]
        new = [(row.rounds[number - 1].gold_recall or 0.0) > old for row, old in zip(ran, before, strict=True)]
        measures.append(
            RoundMeasures(
                number=number,
                questions=len(ran),
                recall=sum(after) / len(after),
                brought_new=sum(new) / len(new),
            )
        )
    return tuple(measures)
