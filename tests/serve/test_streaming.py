"""Answers event by event, several at once, and in the form that chat clients speak."""

from __future__ import annotations

import asyncio
import json
from contextlib import aclosing

import httpx
import pytest
from small_service import Quoting, SharedWords, chunks, small_manifest, small_store

from hybrid_ir.errors import Damaged
from hybrid_ir.index.chunk_store import ChunkStore
from hybrid_ir.reasoning.events import EVENT
from hybrid_ir.records import Answer
from hybrid_ir.settings import Settings
from serve import streaming
from serve.api import create_app
from serve.service import QUESTIONS_AT_A_TIME, Service
from serve.switch import Served

QUESTION = "Which drug inhibits CYP2C9."


@pytest.fixture
def graph():
    return SharedWords(chunks())


@pytest.fixture
def reasoner():
    return Quoting()


@pytest.fixture
def service(tmp_path, graph, reasoner):
    manifest = small_manifest()
    return Service(manifest, Settings(), ChunkStore(small_store(tmp_path), manifest), {"graph": graph}, reasoner, {})


@pytest.fixture
def post(service):
    def post(path, **body):
        async def send():
            transport = httpx.ASGITransport(create_app(Served(service)))
            async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1") as client:
                return await client.post(path, json=body)

        return asyncio.run(send())

    return post


def events(response):
    """(kind, data) of each event."""
    found = []
    for block in response.text.split("\n\n"):
        fields = dict(line.split(": ", 1) for line in block.splitlines() if not line.startswith(":"))
        if fields:
            found.append((fields.get("event"), fields["data"]))
    return found


def plain(answer: Answer) -> Answer:
    return answer.model_copy(update={"seconds": 0.0, "rounds": ()})


def test_a_stream_holds_the_events_and_ends_with_the_answer(post):
    response = post("/v1/answer", question=QUESTION, stream=True)
    assert response.headers["content-type"].startswith("text/event-stream")
    found = [EVENT.validate_json(data) for _, data in events(response)]
    assert [kind for kind, _ in events(response)] == [event.kind for event in found]
    assert found[0].kind == "round_started"
    assert [event.kind for event in found].count("finished") == 1
    whole = Answer.model_validate(post("/v1/answer", question=QUESTION).json())
    assert plain(found[-1].answer) == plain(whole)
    assert [chunk.id for chunk in found[-1].answer.citations] == ["anticoagulants/warfarin#0"]


@pytest.mark.parametrize("path", ["/v1/answer", "/v1/chat/completions"])
def test_what_cannot_be_asked_has_its_status_also_as_a_stream(post, reasoner, path):
    body = {"messages": [{"role": "user", "content": " "}]} if "chat" in path else {"question": " "}
    response = post(path, **body, stream=True)
    assert (response.status_code, response.json()["error"]["type"]) == (400, "invalid_request")

    async def decompose(state, limit):
        raise Damaged("reasoner.npy: truncated.")

    reasoner.decompose = decompose
    body = {"messages": [{"role": "user", "content": "x"}]} if "chat" in path else {"question": "x"}
    assert post(path, **body, stream=True).status_code == Damaged.http_status


@pytest.mark.parametrize("path", ["/v1/answer", "/v1/chat/completions"])
@pytest.mark.parametrize(("error", "said"), [(Damaged("x.npy: gone."), "x.npy"), (ValueError("inner"), "its log")])
def test_a_stream_that_breaks_says_so_at_its_end(post, reasoner, path, error, said):
    async def conclude(state):
        raise error

    reasoner.conclude = conclude
    body = {"messages": [{"role": "user", "content": QUESTION}]} if "chat" in path else {"question": QUESTION}
    response = post(path, **body, stream=True)
    assert response.status_code == 200
    found = [data for _, data in events(response) if data != "[DONE]"]
    message = json.loads(found[-1])["error"]["message"]
    assert said in message
    assert "inner" not in message


def test_silence_is_filled_and_a_client_that_leaves_ends_the_work(service, graph, monkeypatch):
    monkeypatch.setattr(streaming, "BEAT_S", 0.02)
    graph.delay_s = 30.0

    async def leave():
        from serve.schemas import AnswerRequest

        items = streaming.with_beats(service.events(AnswerRequest(question=QUESTION)), 0.02)
        seen = []
        async with aclosing(items):
            async for item in items:
                seen.append(item)
                if seen.count(None) == 3:
                    break
        await asyncio.sleep(0)
        return seen

    assert asyncio.run(leave())[0].kind == "round_started"
    assert graph.cancelled


def test_a_batch_has_an_entry_a_question_and_a_bad_one_costs_itself(post, graph):
    asked = [{"question": QUESTION}, {"question": " "}, {"question": QUESTION, "paths": ["x"]}, {"question": "bats"}]
    answers = post("/v1/answers", questions=asked).json()["answers"]
    assert len(answers) == 4
    assert plain(Answer.model_validate(answers[0])).citations[0].id == "anticoagulants/warfarin#0"
    assert "empty" in answers[1]["error"]["message"]
    assert "unknown path" in answers[2]["error"]["message"]
    assert answers[3]["question"]["text"] == "bats"
    for questions in ([], [{"question": "x"}] * 33):
        assert post("/v1/answers", questions=questions).status_code == 400


def test_a_batch_runs_a_few_at_a_time(post, reasoner):
    running = most = 0
    conclude = reasoner.conclude

    async def slow(state):
        nonlocal running, most
        running, most = running + 1, max(most, running + 1)
        await asyncio.sleep(0.01)
        running -= 1
        return await conclude(state)

    reasoner.conclude = slow
    post("/v1/answers", questions=[{"question": f"{QUESTION} {n}"} for n in range(12)])
    assert 1 < most <= QUESTIONS_AT_A_TIME


def chat(*said, **more):
    return {"model": "hybrid-ir", "messages": [{"role": role, "content": text} for role, text in said], **more}


def test_a_chat_client_gets_the_answer_with_its_citations(post):
    said = post("/v1/chat/completions", **chat(("system", "Be brief."), ("user", QUESTION), temperature=1)).json()
    message = said["choices"][0]["message"]
    assert said["object"] == "chat.completion"
    assert said["usage"]["total_tokens"] == 0
    assert "Fluconazole inhibits CYP2C9. [1]" in message["content"]
    assert "[1] anticoagulants/warfarin (anticoagulants/warfarin#0)" in message["content"]
    for annotation in message["annotations"]:
        place = annotation["url_citation"]
        assert message["content"][place["start_index"] : place["end_index"]] == "[1]"
        assert place["url"] == "/v1/chunks/anticoagulants/warfarin%230"
    assert said["hybrid_ir"]["citations"][0]["id"] == "anticoagulants/warfarin#0"


def test_a_streamed_chat_is_the_same_chat(post):
    whole = post("/v1/chat/completions", **chat(("user", QUESTION))).json()["choices"][0]["message"]
    body = chat(("user", QUESTION), stream=True, stream_options={"include_usage": True})
    found = [data for _, data in events(post("/v1/chat/completions", **body))]
    assert found[-1] == "[DONE]"
    pieces = [json.loads(data) for data in found[:-1]]
    assert {piece["object"] for piece in pieces} == {"chat.completion.chunk"}
    assert len({piece["id"] for piece in pieces}) == 1
    deltas = [piece["choices"][0]["delta"] for piece in pieces if piece["choices"]]
    assert "".join(delta.get("content", "") for delta in deltas) == whole["content"]
    assert deltas[-1]["annotations"] == whole["annotations"]
    assert [p["choices"][0]["finish_reason"] for p in pieces if p["choices"]][-1] == "stop"
    assert pieces[-1]["usage"]["total_tokens"] == 0


def test_the_last_word_of_the_user_is_the_question(post):
    body = chat(("user", "bats"), ("assistant", "Yes."), ("user", QUESTION))
    assert "Fluconazole" in post("/v1/chat/completions", **body).json()["choices"][0]["message"]["content"]
    parts = {"messages": [{"role": "user", "content": [{"type": "text", "text": QUESTION}]}]}
    assert "Fluconazole" in post("/v1/chat/completions", **parts).json()["choices"][0]["message"]["content"]


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"messages": []},
        {"messages": [{"role": "system", "content": "x"}]},
        {"messages": [{"role": "user", "content": None}]},
        {"messages": [{"role": "nobody", "content": "x"}]},
        {"messages": [{"role": "user", "content": [{"type": "image_url", "image_url": {"url": "x"}}]}]},
        {"messages": [{"role": "user", "content": "x"}], "n": 2},
        {"messages": [{"role": "user", "content": "x"}], "model": "gpt"},
        {"messages": "x"},
    ],
)
def test_a_chat_that_cannot_be_answered_is_refused(post, body):
    response = post("/v1/chat/completions", **body)
    assert response.status_code == 400, response.text
    assert response.json()["error"]["message"].endswith(".")


def test_what_is_wrong_with_a_part_is_said_of_that_part(post):
    parts = [{"type": "text", "text": "x"}, {"type": "image_url", "image_url": {"url": "x"}}]
    said = post("/v1/chat/completions", messages=[{"role": "user", "content": parts}]).json()["error"]["message"]
    assert said.startswith("The field messages.0.content.1.type: input should be 'text'.")
    assert "[" not in said
    for odd in (1, {"text": "x"}):
        said = post("/v1/chat/completions", messages=[{"role": "user", "content": odd}]).json()["error"]["message"]
        assert said == "The field messages.0.content: input should be a valid string."
