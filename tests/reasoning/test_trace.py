"""Traces, and replaying them."""

from __future__ import annotations

import asyncio
import io
import json
from pathlib import Path

import pytest
from fake_llm import Fault, ScriptedLLM
from rich.console import Console
from small_world import DRUGS, NOTES, QUESTION, Notes, block, evidence, rules, task

from hybrid_ir import live
from hybrid_ir.errors import BadInput, Conflict, Unavailable
from hybrid_ir.llm.records import Prompt
from hybrid_ir.reasoning import replay as replaying
from hybrid_ir.reasoning.events import Called, Event, Finished, Wrote
from hybrid_ir.reasoning.llm_reasoner import LLMReasoner
from hybrid_ir.reasoning.loop import run
from hybrid_ir.reasoning.prompt_files import load_prompts, parse_prompt
from hybrid_ir.reasoning.replay import Replayed, replay
from hybrid_ir.reasoning.trace import head_of, read_trace, text_hash, without_texts, written
from hybrid_ir.records import Chunk, Question
from hybrid_ir.settings import LoopSettings


def traced(
    path: Path,
    llm: ScriptedLLM,
    question: Question = QUESTION,
    entities: str = "with_sub_questions",
    **settings: object,
) -> list[Event]:
    loop = LoopSettings.model_validate(settings)
    reasoner = LLMReasoner(llm, entities=entities, max_tokens=200)  # type: ignore[arg-type]
    seen: list[Event] = []

    async def collect() -> None:
        with written(head_of(question, "b1", reasoner.name, loop, reasoner.setup), path) as writer:
            async for event in run(question, Notes(), reasoner, loop, build_id="b1"):
                seen.append(event)
                writer.add(event)

    asyncio.run(collect())
    return seen


def again(path: Path, **given: object) -> Replayed:
    return asyncio.run(replay(read_trace(path), prompts=load_prompts(), **given))  # type: ignore[arg-type]


def chunk(chunk_id: str) -> Chunk:
    return evidence(chunk_id).chunk


@pytest.mark.parametrize("question", [QUESTION, DRUGS])
@pytest.mark.parametrize("entities", ["with_sub_questions", "separate"])
def test_a_trace_with_texts_is_replayed_alone(tmp_path: Path, question: Question, entities: str) -> None:
    path = tmp_path / "t.jsonl"
    seen = traced(path, ScriptedLLM(rules), question, entities, trace_texts=True)
    read = read_trace(path)
    assert list(read.events) == [event for event in seen if not isinstance(event, Wrote)]
    done = again(path)
    assert (done.same, done.differences, done.unknown) == (True, (), 0)
    assert isinstance(seen[-1], Finished)
    assert (done.answer.short, done.answer.statements) == (seen[-1].answer.short, seen[-1].answer.statements)


def test_a_trace_without_texts_holds_none(tmp_path: Path) -> None:
    path = tmp_path / "t.jsonl"
    seen = traced(path, ScriptedLLM(rules), DRUGS)
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    for line in lines:
        if line["kind"] == "called":  # a reply is kept: nothing could be replayed without it
            assert line["call"].pop("reply")
    told = json.dumps(lines)
    texts = [*NOTES.values(), DRUGS.text, *DRUGS.options.values(), "What causes Marburg virus disease", "notes.txt"]
    assert not [text for text in texts if text in told]
    assert all(chunk_id in told for chunk_id in ("n1#0", "n3#0"))
    assert text_hash(NOTES["n3#0"]) in told
    assert len([line for line in lines if line["kind"] == "called"]) == len([e for e in seen if isinstance(e, Called)])
    for event in seen:
        assert without_texts(without_texts(event)) == without_texts(event)


def test_a_trace_without_texts_is_replayed_with_question_and_chunks(tmp_path: Path) -> None:
    path = tmp_path / "t.jsonl"
    traced(path, ScriptedLLM(rules), DRUGS)
    assert again(path, chunk=chunk, question=DRUGS).same
    with pytest.raises(BadInput, match="give the question"):
        again(path, chunk=chunk)
    with pytest.raises(BadInput, match="--root"):
        again(path, question=DRUGS)
    with pytest.raises(Conflict, match="The question, or an option, is not"):
        again(path, chunk=chunk, question=DRUGS.model_copy(update={"text": "What treats gout now?"}))
    changed = evidence("n3#0", text="Gout is treated with colchicine.").chunk
    with pytest.raises(Conflict, match="The chunk n3#0 of this index is not the one of the trace"):
        again(path, chunk=lambda name: changed if name == "n3#0" else chunk(name), question=DRUGS)


def test_a_replay_calls_no_model_and_retrieves_nothing(tmp_path: Path) -> None:
    path = tmp_path / "t.jsonl"
    llm = ScriptedLLM(rules)
    traced(path, llm, trace_texts=True)
    calls = len(llm.log)
    again(path)
    assert len(llm.log) == calls


def test_what_was_cut_to_fit_the_window_is_cut_again(tmp_path: Path) -> None:
    path = tmp_path / "t.jsonl"
    seen = traced(path, ScriptedLLM(rules, window=510), trace_texts=True, top_k=4)
    assert any(isinstance(event, Called) and event.call.cut_evidence for event in seen)
    done = again(path)
    assert (done.same, done.unknown) == (True, 0)


def test_an_answer_that_differs_is_said(tmp_path: Path) -> None:
    path = tmp_path / "t.jsonl"
    traced(path, ScriptedLLM(rules), trace_texts=True)
    path.write_text(path.read_text().replace('\\"short\\": \\"bats\\"', '\\"short\\": \\"rats\\"'))
    done = again(path)
    assert (done.same, done.differences, done.answer.short) == (False, ("short",), "rats")


def test_a_changed_prompt_is_named(tmp_path: Path) -> None:
    path = tmp_path / "t.jsonl"
    traced(path, ScriptedLLM(rules), trace_texts=True)
    other = parse_prompt("gaps", "# system\nx\n# user\n{{fence}} {{question}} {{history}} {{limit}}", "x.md")
    with pytest.raises(Conflict, match="The prompt gaps is not the one"):
        asyncio.run(replay(read_trace(path), prompts=load_prompts() | {"gaps": other}))


def test_replies_of_another_question_are_not_taken(tmp_path: Path) -> None:
    path = tmp_path / "t.jsonl"
    traced(path, ScriptedLLM(rules), trace_texts=True)
    lines = path.read_text().splitlines()
    head = json.loads(lines[0])
    head["question"]["text"] = "What else?"
    path.write_text("\n".join([json.dumps(head), *lines[1:]]))
    with pytest.raises(Unavailable, match="no reply to this prompt"):
        again(path)


@pytest.mark.parametrize("stage", ["decompose", "sub_answer", "gaps", "final_open"])
def test_a_question_cut_off_by_its_deadline_is_cut_off_again(
    tmp_path: Path, stage: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(replaying, "CUT_OFF_S", 0.6)
    path = tmp_path / "t.jsonl"

    def script(prompt: Prompt):
        return Fault("hang") if task(prompt) == stage else rules(prompt)

    seen = traced(path, ScriptedLLM(script), trace_texts=True, deadline_s=0.4)
    assert isinstance(seen[-1], Finished)
    assert seen[-1].answer.stopped == "deadline"
    assert again(path).same
    assert again(path).cut_off


def test_a_failed_sub_question_fails_again(tmp_path: Path) -> None:
    path = tmp_path / "t.jsonl"

    def script(prompt: Prompt):
        gone = task(prompt) == "sub_answer" and "gout" in block(prompt, "sub-question")
        return Fault("status", status=503) if gone else rules(prompt)

    traced(path, ScriptedLLM(script), trace_texts=True, rounds=1)
    done = again(path)
    assert done.same
    assert [bool(sub.statements) for sub in done.answer.rounds[0].sub_answers] == [True, False]


def test_unreadable_replies_are_unreadable_again(tmp_path: Path) -> None:
    path = tmp_path / "t.jsonl"
    traced(path, ScriptedLLM("no"), trace_texts=True)
    done = again(path)
    assert (done.same, done.answer.unread_replies) == (True, 8)


def test_a_question_that_died_leaves_what_it_had(tmp_path: Path) -> None:
    path = tmp_path / "t.jsonl"

    def script(prompt: Prompt):
        return Fault("cut") if task(prompt) == "final_open" else rules(prompt)

    with pytest.raises(Unavailable):
        traced(path, ScriptedLLM(script), rounds=1)
    read = read_trace(path)
    assert read.events[-1].kind == "concluding"
    with pytest.raises(BadInput, match="ends before the answer"):
        again(path)


def test_a_question_with_odd_separators_is_replayed(tmp_path: Path) -> None:
    asked = QUESTION.model_copy(update={"text": QUESTION.text + " \u2028\x85\x0b\x1c?"})
    traced(tmp_path / "t", ScriptedLLM(rules), asked, trace_texts=True)
    assert again(tmp_path / "t").same


def test_files_that_are_no_trace(tmp_path: Path) -> None:
    path = tmp_path / "t.jsonl"
    with pytest.raises(BadInput, match="cannot be read as a trace"):
        read_trace(path)
    for text, part in (
        ("", "is empty"),
        ("{}", "line 1 is no line of a trace"),
        ("not json\n", r"trace \(Invalid JSON"),
    ):
        path.write_text(text)
        with pytest.raises(BadInput, match=part):
            read_trace(path)
    traced(path, ScriptedLLM(rules), rounds=1)
    path.write_text(path.read_text()[:-40])
    with pytest.raises(BadInput, match=r"line \d+ is no line of a trace"):
        read_trace(path)
    with pytest.raises(BadInput, match="the trace cannot be written"):
        traced(tmp_path / "none" / "t.jsonl", ScriptedLLM(rules))


def test_the_live_view_is_for_terminals_and_drives_none(tmp_path: Path) -> None:
    assert live.follow(Console(file=io.StringIO())) is None
    shown = Console(file=io.StringIO(), force_terminal=True, width=120, color_system=None)
    follow = live.follow(shown)
    assert follow is not None
    question = QUESTION.model_copy(update={"text": "Which \x1b[2J[red]animal[/red] carries Marburg virus?"})
    said = []

    def script(prompt: Prompt):
        if task(prompt) == "decompose":
            return json.dumps({"sub_questions": [{"question": "What \x1b[31m[bold]carries[/bold] Marburg virus"}]})
        if task(prompt) == "gaps" and not said:
            said.append(prompt)
            return "no"
        return rules(prompt)

    for event in traced(tmp_path / "t.jsonl", ScriptedLLM(script), question):
        follow(event)
    text = shown.file.getvalue()  # type: ignore[attr-defined]
    assert "\x1b[31m" not in text
    assert "round 1\n" in text
    assert "1. What [31m[bold]carries[/bold] Marburg virus" in text
    assert "1.1 found: n1#0, n2#0" in text
    assert "reply to gaps 1 could not be read" in text
    assert "concluding (nothing missing)" in text
