"""Reading an option's letter out of replies."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hybrid_ir.errors import BadInput
from hybrid_ir.reasoning.parsing import mirage_choice, read_choice
from hybrid_ir.reasoning.question import check_question
from hybrid_ir.records import Question

OPTIONS = {"A": "Lisinopril", "B": "metformin", "C": "Insulin glargine", "D": "Vitamin D"}
BACTERIA = {"A": "Klebsiella pneumoniae", "B": "E. coli", "E": "S. aureus"}
YES_NO = {"A": "yes", "B": "no", "C": "maybe"}


@pytest.mark.parametrize(
    "reply",
    [
        "B",
        "b",
        "(B)",
        "B)",
        "B.",
        "B:",
        "**B**",
        "**B.**",
        "[B]",
        '"B"',
        "`B`",
        " B \n",
        "(b)",
        "b)",
        "$\\boxed{B}$",
        "Option B",
        "option (B)",
        "B. metformin",
        "B. Metformin is the first drug to give.",
        "(B) because the patient is obese",
        "B) metformin",
        "**B** metformin",
        "B: metformin",
        "B, because A is wrong.",
        "B - metformin",
        "metformin",
        "Metformin.",
        "**Metformin**",
        "Metformin, since it is well tolerated.",
        "The answer is B",
        "The answer is B.",
        "the answer is b",
        "The correct answer is (B).",
        "The best choice is B because C is too strong.",
        "The answer is option B.",
        "The answer is: **B**",
        "The answer is **B. metformin**.",
        "Final answer: B",
        "**Final Answer:** B",
        "### Answer\nB",
        "Answer: metformin",
        "The answer is metformin.",
        "Antwort: B",
        "答案：B",
        "If it were type 1 the answer is C. It is type 2, so the answer is B.",
        "Thinking it over, several drugs fit.\n\nB",
        "B\n\nA is an ACE inhibitor.",
        "Option B is correct.",
        "Here (B) is the best answer.",
        '{"answer_choice": "B"}',
        '{"step_by_step_thinking": "Option A is wrong.", "answer_choice": "B"}',
        '```json\n{"answer": "B"}\n```',
        '{"answer_choice": "B',
        '{"answer_choice": "B. metformin',
        '{"answer": "metformin"}',
        '{"choice": ["B"]}',
        "{'answer_choice': 'B'}",
        '{"answer": B}',
        '{"answer": "(B) metformin", "reason": "the answer is C"}'.replace("answer is", "alternative is"),
    ],
)
def test_b_is_read(reply: str) -> None:
    assert read_choice(reply, OPTIONS) == "B"


@pytest.mark.parametrize(
    "reply",
    [
        "",
        "   \n",
        "```\n```",
        "Antwort",
        "A patient with diabetes needs treatment.",
        "The answer is a beta blocker.",
        "The answer is A patient with diabetes.",
        "The answer depends on B cells.",
        "The answer is B cells",
        "The answer is C-peptide",
        "The answer is D-dimer.",
        "Because of this, I cannot decide.",
        "E",
        "(E)",
        "A or B",
        "A/B",
        "A and C",
        "The answer is A or B.",
        "The answer is (A) or (B)",
        "The answer is not B.",
        "Both A and D are right",
        "None of the above",
        "C. difficile is likely",
        "I think the drug works well.",
        '{"answer_choice": null}',
        '{"answer_choice": ""}',
        '{"answer_choice": "F"}',
        '{"answer_choice": "A patient"}',
        '{"step_by_step_thinking": "option A is',
        "Metformin is not right here",
        "Banana",
        "Cadabra: dab",
    ],
)
def test_no_answer(reply: str) -> None:
    assert read_choice(reply, OPTIONS) is None


@pytest.mark.parametrize(
    ("reply", "letter"),
    [
        ("E. coli", "B"),
        ("The answer is E. coli.", "B"),
        ("E", "E"),
        ("E. S. aureus", "E"),
        ("E. Staphylococcus is typical", "E"),
        ("E. faecalis", None),
        ("The answer is E. faecalis", None),
    ],
)
def test_names_that_begin_with_a_letter(reply: str, letter: str | None) -> None:
    assert read_choice(reply, BACTERIA) == letter


def test_blood_groups_prefer_the_letter() -> None:
    assert read_choice("B", {"A": "B", "B": "A", "C": "AB"}) == "B"


def test_yes_no_maybe() -> None:
    assert read_choice("Yes, it does.", YES_NO) == "A"
    assert read_choice("no", YES_NO) == "B"
    assert read_choice("Maybe.", YES_NO) == "C"
    assert read_choice("Nothing is known", YES_NO) is None


def test_duplicate_texts_cannot_be_told_apart() -> None:
    assert read_choice("metformin", {"A": "metformin", "B": "Metformin"}) is None
    assert read_choice("B. metformin", {"A": "metformin", "B": "Metformin"}) == "B"


def test_no_options_no_choice() -> None:
    assert read_choice("B", {}) is None


@given(st.text(max_size=200))
def test_never_raises_and_never_invents(reply: str) -> None:
    assert read_choice(reply, OPTIONS) in {None, *OPTIONS}
    assert mirage_choice(reply) in set("ABCD")


@given(st.from_regex(r"[A-Za-z]{2,12}( [a-z]{2,10}){0,6}", fullmatch=True))
def test_no_letter_out_of_words(words: str) -> None:
    unlike = {"A": "qqqq1", "B": "qqqq2", "C": "qqqq3", "D": "qqqq4"}
    assert read_choice(words, unlike) is None


@given(
    st.sampled_from(sorted(OPTIONS)),
    st.sampled_from(["({})", "{})", "{}.", "**{}**", "The answer is {}", "Answer: ({})", '{{"answer_choice": "{}"}}']),
    st.booleans(),
)
def test_every_form_reads_every_letter(letter: str, form: str, small: bool) -> None:
    assert read_choice(form.format(letter.lower() if small else letter), OPTIONS) == letter


@given(st.sampled_from(sorted(OPTIONS)), st.integers(min_value=0, max_value=12))
def test_cut_off_json(letter: str, cut: int) -> None:
    """Wherever the output stops, the letter is read right or not at all."""
    whole = f'{{"step_by_step_thinking": "It is clear.", "answer_choice": "{letter}. {OPTIONS[letter]}"}}'
    assert read_choice(whole[: len(whole) - cut], OPTIONS) in {letter, None}


@pytest.mark.parametrize(
    "reply",
    [
        "(" * 200_000,
        "answer " * 30_000,
        '"answer": "' + "\\" * 100_000,
        "answer is " * 20_000,
        "* " * 100_000,
        "\n" * 200_000,
    ],
)
def test_time_is_linear(reply: str) -> None:
    start = time.perf_counter()
    read_choice(reply, OPTIONS)
    assert time.perf_counter() - start < 2.0


@pytest.mark.parametrize(
    ("reply", "letter"),
    [
        ("B", "B"),
        (' {"answer_choice": "C"}', "C"),
        ('{"answer_choice": "C", "x": "answer_choice": "D"}', "D"),
        ("B or C", "B"),
        ("B and C", "B"),
        ("C/D", "C"),
        ("C, D", "C"),
        ("I take option D: A", "D"),
        ("Option C", "C"),
        ("I say: B", "B"),
        ("I say:\n\nB", "B"),
        ("B. metformin", "B"),
        ('B"}', "B"),
        ("C: insulin", "C"),
        ("D. because option B", "B"),
        ("D: B", "B"),
        ("metformin", "A"),
        ("b", "A"),
        ("E", "A"),
        ("", "A"),
        ("Antwort: Ba", "B"),
    ],
)
def test_mirage_rule(reply: str, letter: str) -> None:
    assert mirage_choice(reply) == letter


def test_check_question() -> None:
    check_question(Question(text="What?", options={"A": "x", "B": "x"}), 20)
    check_question(Question(text="x" * 20), 20)
    bad = [
        (Question(text=" \n"), "empty"),
        (Question(text="x" * 21), "21 characters, the limit is 20"),
        (Question(text="x" * 10, options={"A": "y" * 6, "B": "z" * 6}), "22 characters with its options"),
        (Question(text="q", options={"A": "x"}), "single option"),
        (Question(text="q", options={"A": "x", "BB": "y"}), "'BB' is not a letter"),
        (Question(text="q", options={"A": "x", "b": "y"}), "'b' is not a letter"),
        (Question(text="q", options={"A": "x", "Ä": "y"}), "'Ä' is not a letter"),
        (Question(text="q", options={"A": "x", "B": " "}), "options.B is empty"),
    ]
    for question, part in bad:
        with pytest.raises(BadInput, match=part):
            check_question(question, 20)
