import pytest

from hybrid_ir.errors import BadInput, NotFound
from hybrid_ir.evaluation.metrics import all_gold_at, recall_at
from hybrid_ir.evaluation.questions import read_questions


def test_recall_counts_distinct_documents():
    assert recall_at(2, ["a", "a", "b", "c"], ["b", "c"]) == 0.5
    assert recall_at(5, ["a"], []) == 1.0
    assert all_gold_at(3, ["a", "b", "c"], ["c", "a"])
    assert not all_gold_at(2, ["a", "b", "c"], ["c", "a"])


def test_a_bad_line_is_named(tmp_path):
    path = tmp_path / "q.jsonl"
    path.write_text('{"id": "1", "question": "q", "answer": "a"}\n\n{"id": "2"}\n')
    with pytest.raises(BadInput, match=r"line 3: question"):
        read_questions(path)
    with pytest.raises(NotFound):
        read_questions(tmp_path / "none.jsonl")
