"""The answer as it is written: its pieces are events, and a stream that breaks costs no answer."""

from __future__ import annotations

import asyncio
import json

import pytest
from fake_llm import Fault, ScriptedLLM
from hypothesis import given
from hypothesis import strategies as st
from small_world import NOTES, QUESTION, Notes, rules, task

from hybrid_ir.errors import Unavailable
from hybrid_ir.llm.records import Prompt
from hybrid_ir.reasoning.events import EVENT, Event, Finished, Wrote
from hybrid_ir.reasoning.llm_reasoner import LLMReasoner
from hybrid_ir.reasoning.loop import run
from hybrid_ir.reasoning.partial import PartialText
from hybrid_ir.roles import StreamingReasoner
from hybrid_ir.settings import LoopSettings


def events_of(llm: ScriptedLLM, **settings: object) -> list[Event]:
    async def collect() -> list[Event]:
        loop = run(QUESTION, Notes(), LLMReasoner(llm), LoopSettings.model_validate(settings), build_id="b1")
        return [event async for event in loop]

    return asyncio.run(collect())


def test_the_answer_comes_in_pieces_before_it_is_whole() -> None:
    assert isinstance(LLMReasoner(ScriptedLLM("")), StreamingReasoner)
    events = events_of(ScriptedLLM(rules), rounds=1)
    pieces = [event for event in events if isinstance(event, Wrote)]
    assert len(pieces) > 5
    assert "".join(piece.text for piece in pieces) == f"{NOTES['n1#0']}\nbats\n"
    kinds = [event.kind for event in events]
    assert kinds.index("concluding") < kinds.index("wrote") < kinds.index("finished")
    assert EVENT.validate_json(pieces[0].model_dump_json()) == pieces[0]


def test_only_the_final_call_is_streamed() -> None:
    llm = ScriptedLLM(rules)
    events_of(llm, rounds=1)
    assert [(task(call.prompt), call.streamed) for call in llm.log if call.streamed] == [("final_open", True)]


@pytest.mark.parametrize("again", [True, False])
def test_a_stream_that_breaks_is_asked_for_whole(again: bool) -> None:
    said = [Fault("cut", text='{"statements": [{"text": "Half of a sentence", "citations": ["E1"]}]}')]

    def script(prompt: Prompt):
        if task(prompt) != "final_open" or not said:
            return rules(prompt)
        return said.pop() if again else said[0]

    llm = ScriptedLLM(script)
    if not again:
        with pytest.raises(Unavailable):
            events_of(llm, rounds=1)
        return
    last = events_of(llm, rounds=1)[-1]
    assert isinstance(last, Finished)
    assert (last.answer.short, last.answer.enough_evidence) == ("bats", True)
    assert llm.log.outcomes()[-2:] == ["failed", "answered"]


def test_a_stream_that_is_left_ends() -> None:
    def script(prompt: Prompt) -> str:
        if task(prompt) != "final_open":
            return rules(prompt)
        return json.dumps({"statements": [{"text": "word " * 2000, "citations": ["E1"]}], "short": "bats"})

    llm = ScriptedLLM(script, seconds=0.1)

    async def leave() -> None:
        events = run(QUESTION, Notes(), LLMReasoner(llm), LoopSettings(rounds=1), build_id="b1")
        async for event in events:
            if isinstance(event, Wrote):
                break
        await events.aclose()
        assert llm.log.running() == 0

    asyncio.run(leave())
    assert llm.log[-1].cancelled
    assert llm.log[-1].written < 500


def test_a_hanging_stream_meets_the_deadline() -> None:
    def script(prompt: Prompt):
        return Fault("hang") if task(prompt) == "final_open" else rules(prompt)

    llm = ScriptedLLM(script)
    last = events_of(llm, rounds=1, deadline_s=0.4)[-1]
    assert isinstance(last, Finished)
    assert (last.answer.stopped, last.answer.short) == ("deadline", "")
    assert llm.log[-1].cancelled


@given(st.lists(st.text(max_size=20), max_size=4), st.text(max_size=10), st.integers(1, 9), st.booleans())
def test_pieces_of_any_size_make_the_texts(texts: list[str], short: str, size: int, ascii_: bool) -> None:
    said = {"statements": [{"text": t, "citations": ["E1"]} for t in texts], "enough_evidence": True, "short": short}
    reply = json.dumps(said, ensure_ascii=ascii_)
    partial = PartialText()
    pieces = [partial.feed(reply[at : at + size]) for at in range(0, len(reply), size)]
    assert "".join(pieces) == "".join(f"{text}\n" for text in [*texts, short])


@pytest.mark.parametrize("reply", ["", "plain words", "{" * 5000, '"text"' * 1000, '"text": "' + "\\" * 3001])
def test_other_replies_give_nothing_and_no_error(reply: str) -> None:
    partial = PartialText()
    given_ = "".join(partial.feed(piece) for piece in reply)
    assert given_.strip("\\") == ""
