"""What the rows of a run come to: shares with intervals, paired tests, costs, and where failures arise."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Literal

from scipy.stats import binomtest

from hybrid_ir.evaluation.intervals import bootstrap, paired
from hybrid_ir.evaluation.metrics import measure
from hybrid_ir.evaluation.rescore import Share, share
from hybrid_ir.evaluation.retrieval.report import Cell as Mean
from hybrid_ir.evaluation.run.grid import Cell
from hybrid_ir.evaluation.run.rows import Row
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

RETRIEVAL = ("recall@5", "all_gold@5", "ndcg@10", "mrr")


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
    exact: float | None
    f1: float | None
    """Of open questions."""
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


class Comparison(Record):
    """Two cells over the questions that both have been asked."""

    a: str
    b: str
    """Keys; ``a`` less ``b``."""
    questions: int
    only_a: int
    only_b: int
    """Questions that one of them alone has right."""
    difference: Mean
    """Of accuracy, with a paired bootstrap interval."""
    p: float
    """McNemar's exact test."""
    p_corrected: float
    """After Holm, over all comparisons of the same model and dataset."""


class Summary(Record):
    """A run."""

    name: str
    title: str
    paper: str
    build_id: str
    reference: str
    cells: tuple[CellSummary, ...]
    comparisons: tuple[Comparison, ...]
    left_out: tuple[str, ...]
    stopped: str
    problems: tuple[str, ...]
    """Lines of the datasets that could not be used."""
    notes: tuple[str, ...] = ()
    """What is unusual in a dataset."""


def mcnemar(only_a: int, only_b: int) -> float:
    """The two-sided exact test (McNemar 1947, binomial) that two methods are right equally often.

    Only questions that one of them alone has right count; 1 where there are none.
    """
    if only_a + only_b == 0:
        return 1.0
    return float(binomtest(only_a, only_a + only_b, 0.5).pvalue)


def holm(p: Sequence[float]) -> list[float]:
    """Corrected for many comparisons (Holm 1979): never smaller than given, in the same order, at most 1."""
    corrected, highest = [0.0] * len(p), 0.0
    for rank, place in enumerate(sorted(range(len(p)), key=p.__getitem__)):
        highest = max(highest, min(1.0, (len(p) - rank) * p[place]))
        corrected[place] = highest
    return corrected


def failure(row: Row, question: GoldQuestion) -> Failure | None:
    """Why a row is not right; None where it is."""
    if row.strict:
        return None
    if row.error:
        return "error"
    if row.unanswered:
        return "unread" if row.unread else "no answer"
    if not question.gold or not row.rounds:
        return "wrong"
    recall = row.rounds[-1].gold_recall or 0.0
    return "not retrieved" if recall == 0 else "not used" if recall == 1 else "partly retrieved"


def compare(a: Mapping[str, Row], b: Mapping[str, Row], names: tuple[str, str]) -> Comparison:
    """Two sets of rows by question, over the questions that stand in both; ``p_corrected`` is not corrected yet."""
    shared = [question for question in a if question in b]
    right = [(a[question].strict, b[question].strict) for question in shared]
    counts = Counter(right)
    only_a, only_b = counts[True, False], counts[False, True]
    p = mcnemar(only_a, only_b)
    if right:
        found = paired([float(one) for one, _ in right], [float(other) for _, other in right]).interval
        mean = Mean(mean=found.mean, low=found.low, high=found.high)
    else:
        mean = Mean(mean=0.0, low=0.0, high=0.0)
    return Comparison(
        a=names[0],
        b=names[1],
        questions=len(shared),
        only_a=only_a,
        only_b=only_b,
        difference=mean,
        p=p,
        p_corrected=p,
    )


def corrected(found: Sequence[Comparison]) -> list[Comparison]:
    """With Holm's correction over them all."""
    values = holm([one.p for one in found])
    return [one.model_copy(update={"p_corrected": p}) for one, p in zip(found, values, strict=True)]


def summarise(run: Run, rows: Sequence[Row], stopped: str = "") -> Summary:
    """All of a run."""
    by_cell: dict[str, dict[str, Row]] = {}
    for row in rows:
        by_cell.setdefault(row.cell, {})[row.id] = row
    asked = [one.cell for one in run.planned if one.cell.key in by_cell]
    questions = {name: {question.id: question for question in found} for name, found in run.questions.items()}
    reference = run.grid.reference if any(c.method == run.grid.reference for c in asked) else ""
    reference = reference or (asked[0].method if asked else "")
    return Summary(
        name=run.grid.name,
        title=run.grid.title or run.grid.name,
        paper=run.grid.paper,
        build_id=run.build_id,
        reference=reference,
        cells=tuple(_cell(cell, by_cell[cell.key], questions[cell.dataset]) for cell in asked),
        comparisons=tuple(_comparisons(asked, by_cell, reference)),
        left_out=run.left_out,
        stopped=stopped,
        problems=tuple(problem for one in run.datasets.values() for problem in one.problems),
        notes=tuple(one.summary for one in run.datasets.values()),
    )


def _comparisons(cells: Sequence[Cell], rows: Mapping[str, Mapping[str, Row]], reference: str) -> list[Comparison]:
    """Every cell with the reference's first one of the same model and dataset, corrected within that family."""
    families: dict[tuple[str, str], list[Cell]] = {}
    for cell in cells:
        families.setdefault((cell.model, cell.dataset), []).append(cell)
    found: list[Comparison] = []
    for family in families.values():
        base = next((cell for cell in family if cell.method == reference), None)
        if base is not None:
            others = [cell for cell in family if cell != base]
            found += corrected([compare(rows[base.key], rows[c.key], (base.key, c.key)) for c in others])
    return found


def _cell(cell: Cell, rows: Mapping[str, Row], questions: Mapping[str, GoldQuestion]) -> CellSummary:
    pairs = [(row, questions[identity]) for identity, row in rows.items() if identity in questions]
    said = [row for row, _ in pairs]
    right = sum(row.strict for row in said)
    answered = [row for row in said if not row.error and not row.unanswered]
    seconds = sorted(row.seconds for row in said)
    exact = [float(row.exact) for row in said if row.exact is not None]
    f1 = [row.f1 for row in said if row.f1 is not None]
    with_gold = [(row, question) for row, question in pairs if question.gold and not row.error and row.rounds]
    subjects = _shares([(question.subject, row.strict) for row, question in pairs])
    why = Counter(filter(None, (failure(row, question) for row, question in pairs)))
    return CellSummary(
        cell=cell,
        key=cell.key,
        asked=len(said),
        errors=sum(bool(row.error) for row in said),
        unanswered=sum(row.unanswered for row in said),
        strict=share(right, len(said)),
        compatible=share(sum(row.compatible for row in said), len(said)),
        answered=share(sum(row.strict for row in answered), len(answered)),
        exact=_mean(exact),
        f1=_mean(f1),
        by_subject={} if set(subjects) <= {""} else subjects,
        by_type=_shares([(question.type, row.strict) for row, question in pairs]),
        retrieval=_retrieval(with_gold),
        rounds=_rounds([row for row, _ in with_gold]),
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


def _retrieval(pairs: Sequence[tuple[Row, GoldQuestion]]) -> dict[str, Mean]:
    """Of the documents as the loop ranks them: what the answer cites, then round after round."""
    found = {}
    for name in RETRIEVAL if pairs else ():
        interval = bootstrap([measure(name, row.ranked, question.gold) for row, question in pairs])
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
