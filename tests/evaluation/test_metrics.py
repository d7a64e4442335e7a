import json
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hybrid_ir.errors import BadInput, NotFound
from hybrid_ir.evaluation.metrics import (
    all_gold_at,
    hit_at,
    interleaved,
    loop_ranking,
    measure,
    ndcg_at,
    recall_at,
    reciprocal_rank,
)
from hybrid_ir.evaluation.sets import question_sets
from hybrid_ir.evaluation.sets.questions import read_questions
from hybrid_ir.records import Answer, Chunk, Evidence, Question, Retrieval, Round, SubAnswer, SubQuestion


def test_recall_counts_distinct_documents():
    assert recall_at(2, ["a", "a", "b", "c"], ["b", "c"]) == 0.5
    assert recall_at(5, ["a"], []) == 1.0
    assert all_gold_at(3, ["a", "b", "c"], ["c", "a"])
    assert not all_gold_at(2, ["a", "b", "c"], ["c", "a"])


def test_first_hits():
    assert reciprocal_rank(["a", "a", "b"], ["b"]) == 0.5
    assert reciprocal_rank(["a"], ["b"]) == 0.0
    assert hit_at(2, ["a", "b", "c"], ["b", "z"])
    assert not hit_at(1, ["a", "b"], ["b"])


def test_ndcg_by_hand():
    assert ndcg_at(10, ["x", "g", "y", "h"], ["g", "h"]) == pytest.approx(
        (1 / math.log2(3) + 1 / math.log2(5)) / (1 + 1 / math.log2(3))
    )
    assert ndcg_at(1, ["g"], ["g", "h"]) == 1.0
    assert ndcg_at(5, ["a"], []) == 1.0


IDS = st.lists(st.sampled_from("abcdefgh"), max_size=12)


@given(IDS, st.lists(st.sampled_from("abcdefgh"), min_size=1, max_size=4, unique=True))
def test_measures_are_shares_and_the_best_order_has_them_all(ranked, gold):
    for name in ("recall@3", "all_gold@3", "hit@3", "ndcg@3", "mrr"):
        assert 0.0 <= measure(name, ranked, gold) <= 1.0
        assert measure(name, [*gold, *ranked], gold) == 1.0 or (name in ("recall@3", "all_gold@3") and len(gold) > 3)


def test_an_unknown_measure_is_named():
    for name in ("recall", "precision@5", "recall@x"):
        with pytest.raises(BadInput, match=name):
            measure(name, [], [])


def test_interleaving_gives_every_list_its_turn():
    assert interleaved([["a", "b", "c"], ["x"], ["b", "y"]]) == ["a", "x", "b", "y", "c"]
    assert interleaved([]) == []


def test_bad_lines_are_named_and_cost_no_other(tmp_path):
    path = tmp_path / "q.jsonl"
    good = {"question": "q", "answer": "a"}
    rows = [
        {**good, "id": "1", "type": "open"},
        {"id": "2"},
        ["list"],
        {**good, "id": "1"},
        {**good, "id": "3", "type": "essay"},
        {**good, "id": "4", "options": {"A": "x", "B": "y"}, "answer": "E"},
        {**good, "id": "5", "question": " "},
        {**good, "id": "6"},
    ]
    path.write_text("\n\n".join(map(json.dumps, rows)) + "\n{bad\n")
    questions, problems = read_questions(path)
    assert [question.id for question in questions] == ["1", "6"]
    wanted = [
        "line 3: the field 'question' is missing.",
        "line 5: a JSON object is wanted, this is a list.",
        "line 7: id '1' was given before.",
        "line 9: the field 'type' cannot be used (input should be 'open', 'choice' or 'yesno').",
        "line 11: the answer 'E' is not among the options A, B.",
        "line 13: the question is empty.",
        "line 16: not valid JSON",
    ]
    assert len(problems) == len(wanted)
    for problem, part in zip(problems, wanted, strict=True):
        assert f"{path}, {part}" in problem
    with pytest.raises(NotFound):
        read_questions(tmp_path / "none.jsonl")
    (tmp_path / "none.jsonl").write_text(json.dumps({"id": "2", "type": "open"}))
    for strict, file, part in (
        (True, path, "line 3"),
        (False, tmp_path / "none.jsonl", "no question that can be used"),
    ):
        with pytest.raises(BadInput, match=part):
            question_sets.load(str(file), None, tmp_path, limit=None, strict=strict)


def test_a_loop_ranks_what_it_cites_then_round_after_round():
    def piece(document):
        return Chunk(
            id=f"{document}#0", document_id=document, position=0, title="", text="t", start=0, end=1, source="s"
        )

    def found(*documents):
        evidence = tuple(Evidence(chunk=piece(document), score=1.0, paths={}) for document in documents)
        sub_question = SubQuestion(text="q")
        return SubAnswer(sub_question=sub_question, retrieval=Retrieval(query="q", evidence=evidence), statements=())

    answer = Answer(
        question=Question(text="q"),
        build_id="b",
        reasoner="r",
        choice=None,
        short="",
        statements=(),
        enough_evidence=True,
        citations=(piece("z"), piece("b")),
        rounds=(
            Round(number=1, sub_answers=(found("a", "b"), found("c"))),
            Round(number=2, sub_answers=(found("d", "a"),)),
        ),
        stopped="rounds",
        seconds=0.0,
    )
    assert loop_ranking(answer) == ["z", "b", "a", "c", "d"]
