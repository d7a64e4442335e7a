"""Predictions made elsewhere, read and scored."""

import json

import pytest
from typer.testing import CliRunner

from hybrid_ir.cli import app
from hybrid_ir.errors import BadInput, NotFound
from hybrid_ir.evaluation import predictions
from hybrid_ir.evaluation.rescore import rescore, table
from hybrid_ir.evaluation.sets import datasets, question_sets

REPLIES = {
    "q1": ['{"step_by_step_thinking": "…", "answer_choice": "B"}'],
    "q2": ["(B)"],
    "q3": ["I cannot say."],
    "q4": ["B or C"],
    "q5": [],
    "q6": ["The answer is C.", "A"],
}
"""Read strictly: B, B, -, -, nothing, C.  By MIRAGE: B, A, A, B, nothing, A."""


@pytest.fixture
def questions(tmp_path):
    rows = [
        {"id": f"q{n}", "question": f"What is {n}?", "options": dict(zip("ABCD", "wxyz", strict=True)), "answer": gold}
        for n, gold in enumerate("BBABDCA", start=1)
    ]
    rows[0]["subject"] = "anatomy"
    file = tmp_path / "set.jsonl"
    file.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return file


@pytest.fixture
def folder(tmp_path):
    made = tmp_path / "predictions"
    made.mkdir()
    for number, (identity, said) in enumerate(REPLIES.items()):
        (made / f"{'test_' if number % 2 else ''}{identity}.json").write_text(json.dumps(said), encoding="utf-8")
    return made


@pytest.fixture
def lines(tmp_path):
    file = tmp_path / "predictions.jsonl"
    rows = [{"id": identity, "raw": said[0] if len(said) == 1 else said} for identity, said in REPLIES.items()]
    file.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return file


@pytest.mark.parametrize("form", ["folder", "lines"])
def test_both_readings_of_both_forms(questions, form, request):
    asked = datasets.read(questions, "set")
    found = rescore(asked, predictions.read(request.getfixturevalue(form), [q.id for q in asked.questions]))
    assert [reading.strict for reading in found.readings] == ["B", "B", None, None, None, "C", None]
    assert [reading.compatible for reading in found.readings] == ["B", "A", "A", "B", None, "A", None]
    assert (found.strict.right, found.compatible.right, found.strict.asked) == (3, 3, 7)
    assert (found.unread, found.missing, found.guessed_right, found.read_otherwise) == (2, 2, 2, 2)
    assert found.by_subject["anatomy"].right == 1
    assert "as MIRAGE" in table(found)


def test_equal_options_count_the_same_strictly_and_not_for_mirage(tmp_path):
    row = {"id": "q", "question": "?", "options": {"A": "Iron", "B": "iron ", "C": "Zinc"}, "answer": "A"}
    (tmp_path / "s.jsonl").write_text(json.dumps(row), encoding="utf-8")
    (tmp_path / "p.jsonl").write_text(json.dumps({"id": "q", "raw": "B"}), encoding="utf-8")
    found = rescore(datasets.read(tmp_path / "s.jsonl", "s"), predictions.read(tmp_path / "p.jsonl", ["q"]))
    assert (found.strict.right, found.compatible.right) == (1, 0)


def test_what_cannot_be_used_on_either_side_is_told(tmp_path):
    good = {"question": "?", "options": {"A": "Iron", "B": "Zinc"}, "answer": "A"}
    odd = [{"id": "no"}, {**good, "id": "E", "answer": "E"}, *({**good, "id": f"q{n}"} for n in (1, 2, 1))]
    (tmp_path / "s.jsonl").write_text("\n".join(map(json.dumps, odd)) + "\n{", encoding="utf-8")
    replies = [{"id": f"q{n}", "raw": "A"} for n in range(1, 15)] + [{"id": "q1"}]
    (tmp_path / "p.jsonl").write_text("\n".join(map(json.dumps, replies)), encoding="utf-8")
    asked = question_sets.load(str(tmp_path / "s.jsonl"), None, tmp_path, limit=None, strict=False)
    found = rescore(asked, predictions.read(tmp_path / "p.jsonl", [q.id for q in asked.questions]))
    said = table(found)
    for what in (
        "line 1: the field 'question'",
        "line 2: the answer 'E'",
        "line 5: id 'q1'",
        "line 6: not valid",
        "p.jsonl",
    ):
        assert what in said
    assert found.unknown == tuple(f"q{n}" for n in range(3, 15))
    assert "not in the set: q3, q4" in said
    assert "and 2 more" in said


def test_open_questions_are_left_out_and_said(tmp_path):
    rows = [
        {"id": "open", "question": "?", "type": "open", "answer": "iron"},
        {"id": "choice", "question": "?", "type": "choice", "options": {"A": "Iron", "B": "Zinc"}, "answer": "A"},
    ]
    (tmp_path / "s.jsonl").write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
    asked = question_sets.load("s.jsonl", None, tmp_path, limit=None, strict=False).with_options()
    assert [q.id for q in asked.questions] == ["choice"]
    assert asked.problems == ("Left out: questions without options (1).",)
    (tmp_path / "s.jsonl").write_text(json.dumps(rows[0]), encoding="utf-8")
    with pytest.raises(BadInput, match="s has open questions alone"):
        question_sets.load("s.jsonl", None, tmp_path, limit=None, strict=False).with_options()


def test_odd_entries_are_named_and_cost_no_other(lines):
    with lines.open("a", encoding="utf-8") as file:
        file.write('{"id": "elsewhere", "raw": "A"}\n{"id": "q1", "raw": "A"}\nnonsense\n[1]\n{"id": "q7"}\n')
        file.write('{"id": "q7", "raw": {"A": 1}}\n{"id": "q7", "raw": [1]}\n\n')
    found = predictions.read(lines, [f"q{n}" for n in range(1, 8)])
    assert found.replies["q1"] == tuple(REPLIES["q1"])
    assert found.unknown == ("elsewhere",)
    assert [problem.split(": ")[0].rsplit(" ", 1)[1] for problem in found.problems] == [
        "8",
        "9",
        "10",
        "11",
        "12",
        "13",
    ]
    for said in ("given before", "not valid JSON", "id and raw", "'raw' is missing", "a list of replies"):
        assert any(said in problem for problem in found.problems), said
    with pytest.raises(BadInput):
        predictions.read(lines, ["q1"], strict=True)


def test_ids_of_no_question_are_an_error_with_strict(folder):
    (folder / "test_q99.json").write_text('["A"]', encoding="utf-8")
    ids = list(REPLIES)
    assert predictions.read(folder, ids).unknown == ("q99",)
    with pytest.raises(BadInput, match="'q99'"):
        predictions.read(folder, ids, strict=True)


def test_nothing_to_score_is_said(tmp_path):
    with pytest.raises(NotFound):
        predictions.read(tmp_path / "nowhere", ["q1"])
    (tmp_path / "empty.jsonl").write_text("", encoding="utf-8")
    (tmp_path / "bytes.jsonl").write_bytes(b"\xff\xfe\x00")
    (tmp_path / "none").mkdir()
    for name, said in (("empty.jsonl", "it is empty"), ("bytes.jsonl", "not UTF-8"), ("none", "it is empty")):
        with pytest.raises(BadInput, match=said):
            predictions.read(tmp_path / name, ["q1"])


def test_the_command(questions, folder, tmp_path):
    said = [
        "benchmark",
        "score",
        "--dataset",
        str(questions),
        "--predictions",
        str(folder),
        "--out",
        str(tmp_path / "r"),
    ]
    result = CliRunner().invoke(app, said)
    assert result.exit_code == 0, result.output
    assert "0.429" in result.output
    assert len((tmp_path / "r").read_text(encoding="utf-8").splitlines()) == 7
    found = json.loads(CliRunner().invoke(app, [*said, "--json"]).output)
    assert found["strict"]["right"] == 3
    assert "readings" not in found
    assert isinstance(CliRunner().invoke(app, [*said[:3], "nonsense", *said[4:], "--data", "x"]).exception, BadInput)


@pytest.mark.data
def test_mirage_reads_its_own_files_alike(data, tmp_path):
    """Its rule, applied by hand to each form of reply, over all of MedQA."""
    asked = datasets.load("medqa", data)
    forms = [
        ('{{"answer_choice": "{0}"}}', lambda gold: gold),
        ("{0}", lambda gold: gold),
        ("{0} or A", lambda gold: gold),
        ("{0}, as said", lambda gold: gold),
        ("As I think: {0}", lambda gold: gold),
        ("I would choose option {0}", lambda gold: gold),
        ("({0})", lambda gold: "A"),
        ("the answer is {0}", lambda gold: "A"),
        ("", lambda gold: "A"),
    ]
    right = 0
    for number, question in enumerate(asked.questions):
        form, read = forms[number % len(forms)]
        right += read(question.answer) == question.answer
        (tmp_path / f"test_{question.id}.json").write_text(json.dumps([form.format(question.answer)]), encoding="utf-8")
    found = rescore(asked, predictions.read(tmp_path, [question.id for question in asked.questions]))
    assert (found.compatible.right, found.missing) == (right, 0)
