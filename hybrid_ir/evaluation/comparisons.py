"""Two methods over the same questions: is the difference more than noise?"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from scipy.stats import binomtest

from hybrid_ir.evaluation.intervals import paired
from hybrid_ir.evaluation.run.grid import Cell
from hybrid_ir.evaluation.run.rows import Row
from hybrid_ir.records import Record

ACCURACY = "accuracy"
Rows = Mapping[str, Row]
"""By question."""


class Mean(Record):
    """With its 95 % bootstrap interval."""

    mean: float
    low: float
    high: float


class Comparison(Record):
    """Two cells over the questions that both have been asked."""

    a: str
    b: str
    """Keys; ``a`` less ``b``."""
    measure: str = ACCURACY
    """What is compared: ``accuracy``, or a measure of retrieval."""
    questions: int
    only_a: int
    only_b: int
    """Questions that one of them alone has right, or has better."""
    difference: Mean
    """With a paired bootstrap interval."""
    p: float
    """Of accuracy McNemar's exact test, else of the paired bootstrap."""
    p_corrected: float
    """After Holm, over all comparisons of the same model, dataset and measure."""


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


def compare(a: Rows, b: Rows, names: tuple[str, str], measure: str = ACCURACY) -> Comparison:
    """Over the questions that stand in both; of retrieval, those with gold documents.  Not corrected yet."""
    shared = [one for one in a if one in b]
    if measure == ACCURACY:
        values = [(float(a[one].strict), float(b[one].strict)) for one in shared]
    else:
        measured = [one for one in shared if measure in a[one].measures and measure in b[one].measures]
        values = [(a[one].measures[measure], b[one].measures[measure]) for one in measured]
    signs = Counter((one > other) - (one < other) for one, other in values)
    p, mean = 1.0, Mean(mean=0.0, low=0.0, high=0.0)
    if values:
        found = paired([one for one, _ in values], [other for _, other in values])
        mean = Mean(mean=found.interval.mean, low=found.interval.low, high=found.interval.high)
        p = mcnemar(signs[1], signs[-1]) if measure == ACCURACY else found.p
    return Comparison(
        a=names[0],
        b=names[1],
        measure=measure,
        questions=len(values),
        only_a=signs[1],
        only_b=signs[-1],
        difference=mean,
        p=p,
        p_corrected=p,
    )


def corrected(found: Sequence[Comparison]) -> list[Comparison]:
    """With Holm's correction over them all."""
    values = holm([one.p for one in found])
    return [one.model_copy(update={"p_corrected": p}) for one, p in zip(found, values, strict=True)]


def with_reference(
    cells: Sequence[Cell], rows: Mapping[str, Rows], reference: str, measures: Mapping[str, Sequence[str]]
) -> list[Comparison]:
    """Every cell with the reference's first one of the same model and dataset, corrected within that family.

    ``measures``: what is compared, by dataset.
    """
    families: dict[tuple[str, str], list[Cell]] = {}
    for cell in cells:
        families.setdefault((cell.model, cell.dataset), []).append(cell)
    found: list[Comparison] = []
    for (_, dataset), family in families.items():
        base = next((cell for cell in family if cell.method == reference), None)
        if base is None:
            continue
        others = [cell for cell in family if cell != base]
        for measure in measures[dataset]:
            found += corrected([compare(rows[base.key], rows[c.key], (base.key, c.key), measure) for c in others])
    return found
