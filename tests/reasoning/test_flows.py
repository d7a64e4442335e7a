"""Flows: what a method asks, what its conclusion sees, what it refuses."""

from __future__ import annotations

import asyncio
import json

import pytest
from fake_llm import ScriptedLLM
from small_world import DRUGS, POLAR, QUESTION, Notes, asked, block, rules, task
from test_extractive import WordEncoder, WordExtractor

from hybrid_ir.errors import BadInput
from hybrid_ir.llm.records import Prompt
from hybrid_ir.reasoning.extractive import ExtractiveReasoner
from hybrid_ir.reasoning.llm_reasoner import LLMReasoner
from hybrid_ir.reasoning.loop import answer
from hybrid_ir.records import Answer, LoopState, Question
from hybrid_ir.roles import Reasoner
from hybrid_ir.settings import LoopSettings


def ask(reasoner: Reasoner, question: Question, notes: Notes, **settings: object) -> Answer:
    chosen = LoopSettings.model_validate({"deadline_s": 600, **settings})
    return asyncio.run(answer(question, notes, reasoner, chosen, build_id="b1"))


def test_single_asks_the_question_itself_and_the_model_once() -> None:
    llm, notes = ScriptedLLM(rules), Notes()
    found = ask(LLMReasoner(llm), QUESTION, notes, flow="single", rounds=3, top_k=2)
    assert [query.text for query in notes.queries] == [QUESTION.text]
    assert [task(call.prompt) for call in llm.log] == ["final_open"]
    assert (found.short, found.enough_evidence, found.from_memory, len(found.rounds)) == ("bats", True, False, 1)
    assert len(found.rounds[0].sub_answers[0].retrieval.evidence) == 2


def test_single_with_the_extractive_reasoner() -> None:
    notes = Notes()
    found = ask(ExtractiveReasoner(WordEncoder(), WordExtractor()), DRUGS, notes, flow="single")
    assert ([query.text for query in notes.queries], found.choice) == ([DRUGS.text], "B")


def test_imedrag_runs_all_rounds_and_concludes_from_pairs_alone() -> None:
    said = iter(range(100))

    def script(prompt: Prompt) -> str:
        kind = task(prompt)
        if kind in ("decompose", "gaps"):
            told = None if kind == "decompose" else "more"
            return asked(*(f"What about virus number {next(said)}" for _ in range(3)), missing=told)
        return rules(prompt) if kind == "sub_answer" else json.dumps({"short": "bats", "statements": []})

    llm, notes = ScriptedLLM(script), Notes()
    found = ask(LLMReasoner(llm), QUESTION, notes, flow="imedrag", rounds=4, sub_questions=3, stop_early=False, top_k=1)
    assert (len(found.rounds), len(notes.queries)) == (4, 12)
    final = llm.log[-1].prompt
    assert task(final) == "final_open"
    assert "passage E1" not in final.messages[1].content
    assert "virus number 11" in block(final, "found so far")
    assert (found.short, found.enough_evidence) == ("bats", True)
    assert {chunk.id for chunk in found.citations} == {s.citations[0] for s in found.statements}


@pytest.mark.parametrize(
    ("question", "reply", "choice", "short", "fields"),
    [
        (DRUGS, {"answer_choice": "B"}, "B", "allopurinol", {"answer_choice"}),
        (POLAR, {"answer": "yes"}, None, "yes", {"answer"}),
        (QUESTION, {"short": "bats"}, None, "bats", {"short"}),
    ],
)
@pytest.mark.parametrize("flow", ["zero_shot", "chain_of_thought"])
def test_memory_is_asked_once_and_marked(flow: str, question: Question, reply, choice, short, fields) -> None:
    steps = {"steps": "First, then."} if flow == "chain_of_thought" else {}
    llm, notes = ScriptedLLM(json.dumps({**steps, **reply})), Notes()
    found = ask(LLMReasoner(llm), question, notes, flow=flow)
    assert (found.choice, found.short, found.from_memory, found.enough_evidence) == (choice, short, True, False)
    assert (found.rounds, found.statements, notes.queries, len(llm.log)) == ((), (), [], 1)
    schema = llm.log[0].prompt.json_schema
    assert schema is not None
    assert list(schema["properties"]) == [*steps, *fields]  # what is thought first stands first
    assert f'"{next(iter(fields))}"' in llm.log[0].prompt.messages[0].content


def test_memory_that_cannot_be_read_is_no_answer() -> None:
    found = ask(LLMReasoner(ScriptedLLM("I would rather not.")), DRUGS, Notes(), flow="zero_shot")
    assert (found.choice, found.short, found.unread_replies, found.from_memory) == (None, "", 2, True)


@pytest.mark.parametrize("flow", ["imedrag", "zero_shot", "chain_of_thought"])
def test_the_extractive_reasoner_is_refused_before_anything_is_retrieved(flow: str) -> None:
    notes, reasoner = Notes(), ExtractiveReasoner(WordEncoder(), WordExtractor())
    with pytest.raises(BadInput, match=rf"loop\.flow is {flow}, which needs a language model"):
        ask(reasoner, QUESTION, notes, flow=flow)
    assert notes.queries == []
    with pytest.raises(BadInput, match="language model"):
        asyncio.run(reasoner.conclude(LoopState(question=QUESTION, basis="pairs")))


def test_evidence_is_what_other_flows_rest_on() -> None:
    """Without evidence nothing is answered from memory, whatever the model would say."""
    nothing = Question(text="Zzz?")
    for flow in ("hybrid", "single"):
        found = ask(LLMReasoner(ScriptedLLM(rules)), nothing, Notes(), flow=flow, rounds=1, sub_questions=1)
        assert found.from_memory is False
    assert (found.short, found.enough_evidence) == ("", False)
