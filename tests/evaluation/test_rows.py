"""A row from an answer: read strictly and as MIRAGE does; retrieval with the options behind the question."""

import asyncio

import pytest
from typer.testing import CliRunner

from hybrid_ir.cli import app
from hybrid_ir.errors import BadInput, Conflict
from hybrid_ir.evaluation.run.asking import WithOptions
from hybrid_ir.evaluation.run.grid import Cell
from hybrid_ir.evaluation.run.rows import error_row, row_of, row_retrieved, table
from hybrid_ir.evaluation.sets.questions import GoldQuestion
from hybrid_ir.index.manifest import Counts, Fingerprints, Manifest
from hybrid_ir.opened import Index
from hybrid_ir.records import (
    Answer,
    Chunk,
    Evidence,
    ModelCall,
    PathHit,
    Question,
    Retrieval,
    Round,
    SubAnswer,
    SubQuestion,
)
from hybrid_ir.roles import Query
from hybrid_ir.settings import BuildSettings, ChunkerSettings, Settings

CELL = Cell(method="m", model="default", dataset="d")
CHOICE = GoldQuestion(
    id="q", question="Which?", type="choice", options={"A": "x", "B": "y"}, answer="A", gold=("d1", "d2")
)
POLAR = GoldQuestion(id="p", question="Is it so?", type="yesno", options={"A": "yes", "B": "no"}, answer="B")


def call(reply, read=True):
    return ModelCall(
        prompt="final_options 1",
        prompt_hash="h",
        reply=reply,
        read=read,
        finish="stop",
        seconds=0.1,
        prompt_tokens=7,
        completion_tokens=3,
    )


def answer(question, choice, *documents):
    """One round for each document."""
    rounds = []
    for number, document in enumerate(documents, start=1):
        chunk = Chunk(
            id=f"{document}#0", document_id=document, position=0, title="", text="t", start=0, end=1, source="s"
        )
        found = Retrieval(
            query="w", evidence=(Evidence(chunk=chunk, score=1, paths={"dense": PathHit(rank=1, score=1)}),)
        )
        sub = SubAnswer(sub_question=SubQuestion(text=f"w{number}"), retrieval=found, statements=())
        rounds.append(Round(number=number, sub_answers=(sub,)))
    return Answer(
        question=question.asked(),
        build_id="b",
        reasoner="r",
        choice=choice,
        short="",
        statements=(),
        enough_evidence=False,
        citations=(),
        rounds=tuple(rounds),
        stopped="rounds",
        seconds=1.0,
    )


@pytest.mark.parametrize(
    ("question", "choice", "replies", "strict", "compatible"),
    [
        (CHOICE, "A", ['{"answer_choice": "A"}'], True, True),
        (CHOICE, None, ["I cannot say."], False, True),  # MIRAGE takes it for A
        (CHOICE, "A", ['{"answer": "x"} : B'], True, False),  # MIRAGE takes the letter after the colon
        (CHOICE, "A", [], True, True),
        (CHOICE, None, [], False, False),
        (POLAR, "B", ['{"answer": "no"}'], True, True),  # asked for in words: there is no letter to read
        (POLAR, None, ["?"], False, False),
    ],
)
def test_a_reply_is_read_both_ways(question, choice, replies, strict, compatible):
    row = row_of(CELL, question, answer(question, choice), [call(reply) for reply in replies])
    assert (row.strict, row.compatible) == (strict, compatible)
    assert row.prediction == (replies[-1] if replies else choice or "")


def test_gold_recall_grows_over_the_rounds_and_costs_are_counted():
    row = row_of(CELL, CHOICE, answer(CHOICE, None, "d9", "d2", "d1"), [call("a", read=False), call("b", read=False)])
    assert [round_.gold_recall for round_ in row.rounds] == [0.0, 0.5, 1.0]
    assert [round_.chunks for round_ in row.rounds] == [("d9#0",), ("d2#0",), ("d1#0",)]
    assert (row.calls, row.tokens, row.unread, row.ranked) == (2, 20, 2, ("d9", "d2", "d1"))
    assert table([row, error_row(CELL, CHOICE, BadInput("odd"), 1.0, 2)]).column("tries").to_pylist() == [1, 2]


def test_retrieval_alone_is_a_row_with_its_measures():
    found = [one.retrieval for round_ in answer(CHOICE, None, "d9", "d1").rounds for one in round_.sub_answers]
    row = row_retrieved(CELL, CHOICE, found, 0.25)
    assert row.ranked == ("d9", "d1")
    assert (row.measures["recall@5"], row.measures["hit@1"], row.measures["mrr"]) == (0.5, 0.0, 0.5)
    assert [(one.text, one.evidence) for one in row.rounds[0].asked] == [("w", ("d9#0",)), ("w", ("d1#0",))]
    assert (row.rounds[0].gold_recall, row.choice, row.seconds) == (0.5, None, 0.25)
    assert table([row]).column("recall@5").to_pylist() == [0.5]
    assert row_retrieved(CELL, POLAR, found, 0.1).measures == {}


MANIFEST = Manifest(
    build_id="0123456789ab",
    settings=BuildSettings(),
    fingerprints=Fingerprints(extractor={}, chunk_encoder={}, entity_encoder={}),
    segments=(),
    counts=Counts(**dict.fromkeys(Counts.model_fields, 0)),
)


class Recording:
    async def retrieve(self, query, k, paths=None, timeout_s=None):
        self.query = query
        return Retrieval(query=query.text, evidence=())


def test_options_stand_behind_the_question_itself_and_no_sub_question():
    inner = Recording()
    retriever = WithOptions(inner, Question(text="Which  drug?", options={"A": "aspirin", "B": "heparin"}))
    asyncio.run(retriever.retrieve(Query(text="which drug?"), 5))
    assert inner.query.text == "which drug? aspirin heparin"
    asyncio.run(retriever.retrieve(Query(text="What is aspirin?"), 5))
    assert inner.query.text == "What is aspirin?"


def test_an_index_is_asked_by_other_settings_of_the_same_build():
    held = Index(None, MANIFEST, Settings())
    held.__dict__.update(chunks="chunks", graph_path="of its own settings", reasoner="keeps what it has encoded")
    other = held.asked_by(Settings(loop={"rounds": 5}))
    assert (other.chunks, other.reasoner) == ("chunks", "keeps what it has encoded")
    assert "graph_path" not in other.__dict__
    by_a_model = {"kind": "llm", "llm": {"backend": "openai", "model": "m", "base_url": "http://127.0.0.1:1/v1"}}
    assert "reasoner" not in held.asked_by(Settings(reasoner=by_a_model)).__dict__
    with pytest.raises(Conflict, match="another index"):
        held.asked_by(Settings(build=BuildSettings(chunker=ChunkerSettings(max_chars=500))))


def test_the_command_says_what_is_missing(tmp_path):
    done = CliRunner().invoke(app, ["benchmark", "run", "--suite", "local", "--out", str(tmp_path)])
    assert isinstance(done.exception, BadInput)
    assert "--root (an index) or --url" in str(done.exception)
    assert CliRunner().invoke(app, ["benchmark", "report", str(tmp_path)]).exit_code != 0
