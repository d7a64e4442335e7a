"""What the report of a study says: its signs, and the verdict that weighs them."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hybrid_ir.reasoning.studies import BIAS, SIGNS, VERDICTS, WEIGHTS, is_study, results, signs, verdict


@pytest.mark.parametrize(
    ("sentence", "null", "positive"),
    [
        ("There was no statistically significant difference between the groups.", True, False),
        ("Survival did not differ.", True, False),
        ("Scores were significantly higher with zinc.", False, True),
        ("Pain improved but function was similar.", True, True),
        ("The groups were compared (P = 0.43).", True, False),
        ("Residents performed more scans (P=.04).", False, True),
        ("Mortality was unchanged (p > 0.05).", True, False),
        ("The risk rose (OR 1.94, 95% CI 1.15-3.26).", False, True),
        ("The risk rose (HR = 1.2, 95% CI 0.7 to 1.9).", True, False),
        ("We enrolled 80 patients.", False, False),
        ("None of the variables predicted outcome.", True, True),
    ],
)
def test_results(sentence: str, null: bool, positive: bool) -> None:
    assert results(sentence) == (null, positive)


def test_aims_and_methods_count_nothing() -> None:
    told = ["Colds were significantly shorter (p < 0.01).", "Colds were significantly shorter (p < 0.01)."]
    aim = "The aim was to determine whether zinc improved colds without significant harm, or did not."
    names = dict(zip(SIGNS, signs("Does zinc help?", [aim, *told]), strict=True))
    assert names["null"] == names["null_results"] == 0.0
    assert names["positive_results"] == pytest.approx(np.log(3))


def test_the_later_half_counts_more_and_direction_agrees() -> None:
    up, plain = "Pressure was higher.", "Nothing is told here."
    early = dict(zip(SIGNS, signs("Does it raise pressure?", [up, plain]), strict=True))
    late = dict(zip(SIGNS, signs("Does it raise pressure?", [plain, up]), strict=True))
    against = dict(zip(SIGNS, signs("Does it lower pressure?", [plain, up]), strict=True))
    assert (early["agree"], late["agree"], against["agree"]) == (0.25, 0.75, -0.75)


def test_verdicts() -> None:
    assert is_study(["Survival did not differ (p = 0.4)."])
    assert not is_study(["Bats carry rabies virus."])
    null = ["There was no significant difference in colds (p = 0.4).", "Duration did not differ between groups."]
    clear = ["We found that colds were significantly shorter (p < 0.01).", "Zinc was effective and improved recovery."]
    mixed = ["Colds improved only when zinc was taken early.", "However, some improved only within the first day."]
    assert [verdict("Does zinc shorten colds?", text) for text in (clear, null, mixed)] == list(VERDICTS)
    assert verdict("Is zinc really necessary in colds?", null) == "no"


@given(st.text(max_size=60), st.lists(st.text(max_size=80), min_size=1, max_size=6))
def test_any_text_gives_a_verdict(question: str, sentences: list[str]) -> None:
    values = signs(question, sentences)
    assert values.shape == (len(SIGNS),)
    assert np.isfinite(values).all()
    assert verdict(question, sentences) in VERDICTS


@pytest.mark.data
def test_the_weights_are_those_that_the_training_half_gives(data) -> None:
    path = Path(__file__).parents[2] / "benchmarks" / "study_verdicts.py"
    spec = importlib.util.spec_from_file_location("study_verdicts", path)
    assert spec is not None
    assert spec.loader is not None
    benchmark = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(benchmark)
    for word, bias, weights in benchmark.fit(*benchmark.training(data)):
        assert bias == pytest.approx(BIAS[word], abs=0.011)
        assert weights == pytest.approx(WEIGHTS[word], abs=0.011)
