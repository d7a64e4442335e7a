"""Paired tests, corrections and the sums over a run's rows."""

import math
from math import comb

import pytest
from hypothesis import given
from hypothesis import strategies as st
from small_run import QUESTIONS, row, small_run

from hybrid_ir.evaluation.comparisons import compare, holm, mcnemar
from hybrid_ir.evaluation.report.tables import tables
from hybrid_ir.evaluation.statistics import failure, summarise

P = st.floats(0, 1)


@given(st.integers(0, 60), st.integers(0, 60))
def test_mcnemar_is_the_two_sided_binomial_test(a, b):
    p, n = mcnemar(a, b), a + b
    tail = sum(comb(n, k) for k in range(min(a, b) + 1)) / 2**n
    assert p == pytest.approx(min(1.0, 2 * tail) if n else 1.0)
    assert p == pytest.approx(mcnemar(b, a))


@given(st.lists(P, max_size=12))
def test_holm_keeps_the_order_and_stays_between_no_correction_and_bonferronis(p):
    found = holm(p)
    assert all(min(1.0, len(p) * one) >= other >= one or math.isclose(other, one) for one, other in zip(p, found, strict=True))  # fmt: skip # noqa: E501
    order = sorted(range(len(p)), key=p.__getitem__)
    assert [found[n] for n in order] == sorted(found)
    assert all(0 <= one <= 1 for one in found)


def test_holm_by_hand():
    assert holm([0.01, 0.04, 0.03, 0.005]) == pytest.approx([0.03, 0.06, 0.06, 0.02])
    assert holm([]) == []


@pytest.fixture
def run():
    return small_run()


def rows_of(run):
    """hybrid_ir: right, no gold, part of it read wrongly, right; medrag: wrong, error, unread, unanswered."""
    first, second = run.planned
    q1, q2, q3, q4 = QUESTIONS
    return [
        row(first, q1, documents=("d1", "d2")),
        row(first, q2, right=False, documents=("d9",)),
        row(first, q3, right=False, documents=("d4",), exact=False, f1=0.5),
        row(first, q4),
        row(second, q1, right=False, documents=("d1",)),
        row(second, q2, choice=None, strict=False, compatible=False, error="odd", kind="BadInput", rounds=(), calls=0),
        row(second, q3, short="", strict=False, compatible=False, unread=1),
        row(second, q4, choice=None, strict=False, compatible=True),
    ]


def test_every_row_that_is_not_right_has_one_reason(run):
    rows = rows_of(run)
    found = [failure(one, question) for one, question in zip(rows, QUESTIONS * 2, strict=True)]
    assert found == [None, "not retrieved", "not used", None, "partly retrieved", "error", "unread", "no answer"]
    assert failure(row(run.planned[0], QUESTIONS[3], right=False), QUESTIONS[3]) == "wrong"


def test_a_run_is_summed_up_with_the_unanswered_apart(run):
    made = summarise(run, rows_of(run), "stopped")
    first, second = made.cells
    assert (first.strict.right, first.asked, first.errors, first.unanswered) == (2, 4, 0, 0)
    assert (second.strict.right, second.errors, second.unanswered) == (0, 1, 2)
    assert (second.answered.asked, second.compatible.right) == (1, 1)
    assert second.calls_per_correct is None
    assert (first.calls_per_correct, first.tokens_per_correct, first.seconds_per_correct) == (4.0, 200.0, 1.0)
    assert (first.exact, first.f1) == (0.0, 0.5)
    assert first.failures == {"not retrieved": 1, "not used": 1}
    assert {name: one.right for name, one in first.by_subject.items()} == {"": 1, "anatomy": 1, "eyes": 0}
    assert {name: one.asked for name, one in first.by_type.items()} == {"choice": 3, "open": 1}
    assert first.retrieval["recall@5"].mean == pytest.approx(2 / 3)
    assert [(of.number, of.questions) for of in first.rounds] == [(1, 3)]
    assert first.rounds[0].recall == pytest.approx(2 / 3)
    assert (made.reference, made.stopped) == ("hybrid_ir", "stopped")
    compared, found = made.comparisons
    assert (found.measure, found.only_a, found.only_b, found.questions) == ("recall@5", 2, 0, 3)
    assert found.difference.mean == pytest.approx(0.5)
    assert (compared.only_a, compared.only_b, compared.questions) == (2, 0, 4)
    assert compared.difference.mean == pytest.approx(0.5)
    assert compared.p == compared.p_corrected == 0.5


def test_a_later_round_counts_where_it_brings_gold_that_no_earlier_one_had(run):
    first, q1 = run.planned[0], QUESTIONS[0]
    one = row(first, q1, documents=("d1",))
    two = one.rounds[0].model_copy(update={"gold_recall": 1.0})
    stopped = row(first, QUESTIONS[1], documents=("d3",))
    found = summarise(run, [one.model_copy(update={"rounds": (*one.rounds, two)}), stopped]).cells[0].rounds
    assert [(of.questions, of.recall, of.brought_new) for of in found] == [(2, 0.75, 1.0), (1, 1.0, 1.0)]


def test_an_unfinished_run_compares_what_both_have_been_asked(run):
    rows = rows_of(run)
    made = summarise(run, [*rows[:4], rows[4]])
    assert made.comparisons[0].questions == 1
    assert summarise(run, []).cells == ()
    nothing = compare({}, {}, ("a", "b"))
    assert (nothing.questions, nothing.p, nothing.difference.mean) == (0, 1.0, 0.0)


def test_of_retrieval_alone_right_is_what_found_all_gold():
    run = small_run(answers=False)
    first, second = run.planned
    none = {"choice": None, "short": "", "strict": False, "compatible": False, "calls": 0}
    rows = [
        row(first, QUESTIONS[0], documents=("d1", "d2"), **none),
        row(first, QUESTIONS[1], documents=("d9",), **none),
        row(second, QUESTIONS[0], documents=("d9", "d1"), **none),
        row(second, QUESTIONS[1], documents=("d3",), **none),
    ]
    made = summarise(run, rows)
    assert [one.failures for one in made.cells] == [{"not retrieved": 1}, {"partly retrieved": 1}]
    (compared,) = made.comparisons
    assert (compared.measure, compared.only_a, compared.only_b) == ("recall@5", 1, 1)
    assert compared.difference.mean == pytest.approx(-0.25)
    assert made.cells[0].retrieval["hit@1"].mean == 0.5
    shown = {table.title: table for table in tables(made)}
    assert not {"Scores", "Accuracy, default"} & set(shown)
    assert [line[1:3] for line in shown["Where failures arise"].rows] == [("1", "1"), ("1", "0")]
