"""MedHopQA's questions in, its submission out, and no score where no answer is known."""

import csv

import pytest
from small_run import row, small_run

from hybrid_ir.errors import BadInput, NotFound
from hybrid_ir.evaluation.report.tables import tables
from hybrid_ir.evaluation.run import benchmark
from hybrid_ir.evaluation.sets import medhopqa, question_sets
from hybrid_ir.evaluation.statistics import failure, summarise

QUESTIONS = 'QIDX,Question\n7,"Which gene, if changed, causes X?"\n8,Which drug treats Y?\n'


def written(path, text):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    return path


def test_questions_with_and_without_answers(tmp_path):
    path = written(tmp_path / "q.csv", "\ufeff" + QUESTIONS)
    found = question_sets.load("q.csv", None, tmp_path, limit=None, strict=True)
    assert [(one.id, one.question, one.answer) for one in found.questions] == [
        ("7", "Which gene, if changed, causes X?", ""),
        ("8", "Which drug treats Y?", ""),
    ]
    gold = written(tmp_path / "gold.csv", "QIDX,Question,Short Answer\n7,Q?, FBN1 \n")
    assert medhopqa.read(gold, "g").questions[0].answer == "FBN1"
    written(tmp_path / medhopqa.FILE, QUESTIONS)
    assert len(question_sets.load("medhopqa", tmp_path, tmp_path, limit=None, strict=True).questions) == 2
    assert path.exists()


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "no column QIDX and no column Question"),
        ("QIDX,Q\n1,a\n", "no column Question"),
        ("QIDX,Question\n", "no question that can be used"),
        ("QIDX,Question\n,a\n", "row 1: the column QIDX is empty"),
        ("QIDX,Question\n1,a\n1,b\n", "row 2: QIDX 1 was given before"),
        ("QIDX,Question\n1,\n", "row 1: the question is empty"),
    ],
)
def test_what_a_file_gets_wrong_is_named(tmp_path, text, said):
    with pytest.raises(BadInput, match=said):
        medhopqa.read(written(tmp_path / "q.csv", text), "q", strict=True)
    with pytest.raises(NotFound):
        medhopqa.read(tmp_path / "absent.csv", "q")


def test_a_run_writes_a_submission_and_scores_what_it_can(tmp_path):
    questions = medhopqa.read(written(tmp_path / "q.csv", QUESTIONS), "q").questions
    run = small_run(("hybrid_ir",))
    run = run.model_copy(
        update={
            "grid": run.grid.model_copy(update={"datasets": ("small.csv",)}),
            "questions": {"small": questions},
        }
    )
    (planned,) = run.planned
    said = [
        row(planned, one, short=f"a {one.id}", long="It is, because.", judged=False, strict=False) for one in questions
    ]
    benchmark._submissions(tmp_path, run, said[:1])
    (made,) = tmp_path.glob("submission_*.csv")
    with made.open(encoding="utf-8", newline="") as stream:
        assert list(csv.reader(stream)) == [
            ["QIDX", "Question", "Short Answer", "Long Answer"],
            ["7", "Which gene, if changed, causes X?", "a 7", "It is, because."],
            ["8", "Which drug treats Y?", "", ""],
        ]
    (cell,) = summarise(run, said).cells
    assert (cell.asked, cell.strict.asked, cell.failures) == (2, 0, {})
    assert failure(said[0], questions[0]) is None
    shown = {table.title: table for table in tables(summarise(run, said))}
    assert shown["Accuracy, default"].rows == (("hybrid_ir", "-"),)
