"""Measures of answers, against sklearn's and by hand."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hybrid_ir.evaluation.answers import (
    Said,
    accepted,
    accuracy,
    confusion,
    exact_match,
    macro_f1,
    normalised,
    right_choice,
    score,
    token_f1,
)
from hybrid_ir.evaluation.intervals import wilson
from hybrid_ir.evaluation.sets.questions import GoldQuestion

LABELS = st.sampled_from(["yes", "no", "maybe"])
YES_NO = GoldQuestion(id="1", question="q?", type="yesno", options={"A": "yes", "B": "no", "C": "maybe"}, answer="A")
EQUAL = GoldQuestion(id="2", question="q?", type="choice", options={"A": "Iron", "B": "iron ", "C": "zinc"}, answer="A")
OPEN = GoldQuestion(id="3", question="q?", answer="The intrinsic factor", aliases=("IF",))


def test_measures_by_hand() -> None:
    gold, said = ["yes", "yes", "no", "maybe"], ["yes", "no", "no", None]
    assert accuracy(gold, said) == 0.5
    # yes: 2 of 2 + 1; no: 2 of 1 + 2; maybe: never said
    assert macro_f1(gold, said) == pytest.approx((2 / 3 + 2 / 3 + 0) / 3)
    assert confusion(gold, said)["maybe", None] == 1
    assert math.isnan(accuracy([], []))
    assert math.isnan(macro_f1([], []))
    with pytest.raises(ValueError, match="argument 2"):
        accuracy(gold, said[:1])


@given(st.lists(st.tuples(LABELS, LABELS | st.none()), min_size=1))
def test_measures_lie_between_none_and_all(pairs) -> None:
    gold, said = [g for g, _ in pairs], [s for _, s in pairs]
    assert 0 <= macro_f1(gold, said) <= 1
    assert macro_f1(gold, gold) == accuracy(gold, gold) == 1
    assert (accuracy(gold, said) == 1) == (macro_f1(gold, said) == 1)
    assert sum(confusion(gold, said).values()) == len(pairs)


def test_always_yes_has_the_figures_that_everyone_reports() -> None:
    """PubMedQA's test half: 276 yes, 169 no, 55 maybe."""
    gold = ["yes"] * 276 + ["no"] * 169 + ["maybe"] * 55
    assert accuracy(gold, ["yes"] * 500) == 0.552
    assert macro_f1(gold, ["yes"] * 500) == pytest.approx(0.2371, abs=1e-4)


def test_wilson() -> None:
    found = wilson(81, 263)  # Newcombe 1998, table I
    assert (round(found.low, 4), round(found.high, 4)) == (0.2553, 0.3662)
    assert (wilson(0, 10).low, wilson(10, 10).high) == (0.0, 1.0)
    assert math.isnan(wilson(0, 0).mean)


@given(st.integers(1, 500), st.data())
def test_wilson_holds_the_share(asked: int, data) -> None:
    right = data.draw(st.integers(0, asked))
    found = wilson(right, asked)
    assert 0 <= found.low <= found.mean + 1e-12
    assert found.mean <= found.high + 1e-12 <= 1 + 2e-12


def test_equal_options_are_one_answer_but_not_to_mirage() -> None:
    assert accepted(EQUAL) == {"A", "B"}
    assert right_choice(EQUAL, "B")
    assert not right_choice(EQUAL, "B", by_letter=True)
    assert not right_choice(EQUAL, "C")
    assert not right_choice(EQUAL, None)


def test_open_answers() -> None:
    assert normalised("The  Intrinsic-Factor!") == "intrinsicfactor"
    assert normalised("An iron deficiency.") == "iron deficiency"
    assert exact_match("intrinsic factor", ["The intrinsic factor"])
    assert not exact_match("", ["", "the"])
    assert token_f1("gastric intrinsic factor", ["intrinsic factor"]) == pytest.approx(0.8)
    assert token_f1("zinc", ["iron"]) == token_f1("", ["iron"]) == 0.0


def test_a_score_says_what_it_can() -> None:
    polar = score([YES_NO, YES_NO], [Said("A", "yes"), Said(None)])
    assert (polar.asked, polar.unanswered, polar.accuracy.mean, polar.by_letter) == (2, 1, 0.5, 0.5)
    assert polar.macro_f1 == pytest.approx(2 / 3)
    assert math.isnan(polar.exact)
    choices = score([EQUAL, EQUAL], [Said("B"), Said("A")])
    assert (choices.accuracy.mean, choices.by_letter) == (1.0, 0.5)
    assert math.isnan(choices.macro_f1)
    texts = score([OPEN, OPEN], [Said(None, "Intrinsic factor"), Said(None, "the intrinsic factor of Castle")])
    assert (texts.accuracy.mean, texts.exact) == (0.5, 0.5)
    assert texts.f1 == pytest.approx((1 + 2 * 2 / 6) / 2, abs=0.01)
    assert score([], []).asked == 0
