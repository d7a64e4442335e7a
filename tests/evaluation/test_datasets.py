"""Readers of question sets: what they find in the real files, what they say of broken ones."""

from __future__ import annotations

import json
from collections import Counter

import pytest

from hybrid_ir.errors import BadInput, NotFound
from hybrid_ir.evaluation.sets.datasets import load, pubmedqa_pairs, read

GOOD = {"id": "1", "question": "Which?", "options": {"A": "iron", "B": "zinc"}, "answer": "B", "subject": "Chemistry"}


def written(tmp_path, *rows: object):
    path = tmp_path / "mine.jsonl"
    path.write_text("".join((row if isinstance(row, str) else json.dumps(row)) + "\n" for row in rows))
    return path


@pytest.mark.data
@pytest.mark.parametrize(
    ("name", "asked", "repeats", "equal"),
    [("medqa", 1273, 0, 0), ("medmcqa", 4183, None, 21), ("mmlu", 1089, 78, 0), ("pubmedqa", 500, 0, 0)],
)
def test_mirage(data, name: str, asked: int, repeats: int | None, equal: int) -> None:
    found = load(name, data)
    assert (len(found.questions), found.problems) == (asked, ())
    assert len(found.equal_options) == equal
    if repeats is not None:
        assert len(found.repeats) == repeats
    assert len(found.distinct().questions) == asked - len(found.repeats)
    if name == "medmcqa":
        assert len(Counter(question.subject for question in found.questions)) > 10
    if name == "pubmedqa":
        assert {question.type for question in found.questions} == {"yesno"}
        assert all(question.gold == (question.id,) for question in found.questions)


@pytest.mark.data
def test_pubmedqa_with_its_abstracts(data) -> None:
    test, train = list(pubmedqa_pairs(data, "test")), list(pubmedqa_pairs(data, "cv"))
    assert (len(test), len(train)) == (500, 500)
    assert not {q.id for q, _ in test} & {q.id for q, _ in train}
    assert Counter(q.options[q.answer] for q, _ in test) == {"yes": 276, "no": 169, "maybe": 55}
    assert {q.id: q.answer for q, _ in test} == {q.id: q.answer for q in load("pubmedqa", data).questions}


def test_a_line_that_cannot_be_used_is_named_and_left_out(tmp_path) -> None:
    path = written(
        tmp_path,
        GOOD,
        "{",
        "[1]",
        {**GOOD, "id": "2", "answer": "E"},
        {key: value for key, value in GOOD.items() if key != "options"},
        {**GOOD, "id": "3", "options": {"A": "iron"}},
        {**GOOD, "id": "4", "question": " "},
        {**GOOD, "id": 5, "question": "Why?"},
        GOOD,
    )
    found = load(str(path), tmp_path)
    assert (found.name, [question.id for question in found.questions]) == ("mine", ["1", "5"])
    assert found.questions[0].subject == "Chemistry"
    told = [problem.removeprefix(f"{path}, ") for problem in found.problems]
    assert told[0].startswith("line 2: not valid JSON")
    assert told[1:] == [
        "line 3: a JSON object is wanted, this is a list.",
        "line 4: the answer 'E' is not among the options A, B.",
        "line 5: the field 'options' is missing.",
        "line 6: 'options' must hold two texts or more, each by its letter.",
        "line 7: the question is empty.",
        "line 9: id '1' was given before.",
    ]
    assert found.summary() == "mine: 2 questions, 7 lines could not be used."
    with pytest.raises(BadInput, match="line 2: not valid JSON"):
        read(path, "mine", strict=True)


def test_repeats_and_equal_options_are_told(tmp_path) -> None:
    path = written(
        tmp_path,
        GOOD,
        {**GOOD, "id": "2", "question": " which?"},
        {**GOOD, "id": "3", "answer": "A"},
        {**GOOD, "id": "4", "options": {"A": "Iron", "B": "iron"}},
    )
    found = read(path, "mine")
    assert (found.repeats, found.equal_options) == ((("2", "1"),), ("4",))
    assert [question.id for question in found.distinct().questions] == ["1", "3", "4"]
    assert [question.id for question in found.limited(2).questions] == ["1", "3"]


def test_nothing_to_read(tmp_path) -> None:
    with pytest.raises(NotFound, match="no such file"):
        load("medqa", tmp_path)
    with pytest.raises(BadInput, match=r"There is no set 'medqs'; the sets are medqa, medmcqa"):
        load("medqs", tmp_path)
    with pytest.raises(BadInput, match="no question that can be used"):
        read(written(tmp_path, ""), "mine")
    with pytest.raises(BadInput, match=r"no question that can be used \(.*line 1: not valid JSON"):
        read(written(tmp_path, "{"), "mine")
