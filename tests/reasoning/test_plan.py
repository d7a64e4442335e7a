"""A question taken apart: sides, descriptions, sequels; every part reads as a question."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hybrid_ir.reasoning.focus import focus_of
from hybrid_ir.reasoning.plan import Plan, plan_of, resolved
from hybrid_ir.records import Question


def plan(text: str) -> Plan:
    focus = focus_of(Question(text=text))
    return plan_of(focus.whole, focus.need)


def test_each_side_is_a_question_of_its_own() -> None:
    found = plan("Which adverse effect or disease is induced both by zinc phosphide and by 1,3-butadiene?")
    assert [(side.text, side.subject) for side in found.sides] == [
        ("Which adverse effect or disease is induced by zinc phosphide?", "zinc phosphide"),
        ("Which adverse effect or disease is induced by 1,3-butadiene?", "1,3-butadiene"),
    ]
    assert not plan("Which measure both corrects the acidosis and removes the cause?").sides


@pytest.mark.parametrize(
    ("text", "part", "filled"),
    [
        (
            "Through which transporter does the inhibitor that binds antacids raise the level of metformin?",
            "What is the inhibitor that binds antacids?",
            "Through which transporter does X raise the level of metformin?",
        ),
        (
            "By which route could the infection that cave animals carry reach the brain?",
            "What is the infection that cave animals carry?",
            "By which route could X reach the brain?",
        ),
        (
            "Which drug blocks the receptors that fat cells use?",
            "What are the receptors that fat cells use?",
            "Which drug blocks X?",
        ),
        (
            "Who ruled the country where the composer of Norma died?",
            "What is the composer of Norma?",
            "Who ruled the country where X died?",
        ),
    ],
)
def test_a_description_is_asked_for_and_filled_in(text: str, part: str, filled: str) -> None:
    found = plan(text)
    assert found.hops[0].text == part
    assert found.filled(found.hops[0], "X") == filled


def test_a_pronoun_waits_for_the_first_answer() -> None:
    found = plan("Which drug caused parkinsonism and which class does it belong to?")
    assert found.first == "Which drug caused parkinsonism?"
    assert resolved(found.sequel, "Haloperidol") == "Which class does Haloperidol belong to?"


def test_what_cannot_be_cut_out_for_certain_is_left_alone() -> None:
    assert not plan("The response to which vaccine may be weaker?").hops
    assert not plan("A man who smokes coughs. Which drug helps?").hops


@settings(deadline=None)
@given(st.text(min_size=1, max_size=200).filter(lambda text: text.strip()))
def test_no_text_breaks_it(text: str) -> None:
    focus = focus_of(Question(text=text))
    found = plan_of(focus.whole, focus.need)
    assert all(focus.whole[hop.start : hop.end] == hop.subject for hop in found.hops)
