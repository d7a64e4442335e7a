"""The HTTP interface in one process: every endpoint, and every way to use it wrongly."""

from __future__ import annotations

import asyncio
import json
from urllib.parse import quote

import httpx
import pytest
from small_service import TEXTS, Quoting, SharedWords, chunks, small_manifest, small_store

from hybrid_ir.errors import Conflict, Damaged
from hybrid_ir.index.chunk_store import ChunkStore
from hybrid_ir.records import Answer, Retrieval
from hybrid_ir.settings import ServeSettings, Settings
from serve.api import create_app
from serve.drain import Drain
from serve.errors import TYPES, Overloaded
from serve.service import Service
from serve.switch import Served


@pytest.fixture
def graph():
    return SharedWords(chunks())


@pytest.fixture
def dense():
    return SharedWords(chunks())


@pytest.fixture
def checks():
    """Part of the service -> what asks whether it is ready; a test may change it."""

    async def ready() -> None:
        return

    return {"graph scorer": ready, "dense scorer": ready}


@pytest.fixture
def service(tmp_path, graph, dense, checks):
    store, manifest = small_store(tmp_path), small_manifest()
    settings = Settings(serve=ServeSettings(max_question_chars=20_000))
    return Service(manifest, settings, ChunkStore(store, manifest), {"graph": graph, "dense": dense}, Quoting(), checks)


def request(service, method: str, path: str, **body) -> httpx.Response:
    async def send() -> httpx.Response:
        transport = httpx.ASGITransport(create_app(Served(service)), raise_app_exceptions=False)
        async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1") as client:
            return await client.request(method, path, **body)

    return asyncio.run(send())


def error(response: httpx.Response, status: int) -> str:
    assert response.status_code == status, response.text
    assert set(response.json()) == {"error"}
    found = response.json()["error"]
    assert found["type"] == TYPES.get(status, "invalid_request")
    assert found["request_id"] == response.headers["x-request-id"] != ""
    sentence = str(found["message"])
    assert sentence.endswith((".", "?")), sentence
    return sentence


def test_an_answer_is_the_answer_record(service):
    response = request(service, "POST", "/v1/answer", json={"question": "Which drug inhibits CYP2C9."})
    assert response.status_code == 200
    answer = Answer.model_validate(response.json())
    assert answer.build_id == service.manifest.build_id
    assert answer.reasoner == "quoting"
    assert [c.id for c in answer.citations] == ["anticoagulants/warfarin#0"]
    assert answer.rounds[0].sub_answers[0].retrieval.evidence[0].paths.keys() == {"graph", "dense"}


def test_a_request_chooses_its_paths_and_limits(service):
    body = {"question": "bats carry", "paths": ["dense", "dense"], "rounds": 1, "top_k": 1, "sub_questions": 1}
    answer = Answer.model_validate(request(service, "POST", "/v1/answer", json=body).json())
    (evidence,) = answer.rounds[0].sub_answers[0].retrieval.evidence
    assert evidence.paths.keys() == {"dense"}


def test_retrieve_returns_at_most_k(service):
    body = {"query": "CYP2C9. warfarin bats", "k": 1, "entities": ["warfarin"]}
    found = Retrieval.model_validate(request(service, "POST", "/v1/retrieve", json=body).json())
    assert [e.chunk.id for e in found.evidence] == ["anticoagulants/warfarin#0"]


@pytest.mark.parametrize("chunk_id", TEXTS)
@pytest.mark.parametrize("safe", ["", "/"])
def test_a_chunk_by_its_id(service, chunk_id, safe):
    response = request(service, "GET", f"/v1/chunks/{quote(chunk_id, safe=safe)}")
    assert response.json()["id"] == chunk_id
    assert response.json()["text"] == TEXTS[chunk_id]


@pytest.mark.parametrize("chunk_id", ["nothing#0", "µg#1", "µg", "", "%00", "%ff%23"])
def test_an_unknown_chunk_is_named(service, chunk_id):
    error(request(service, "GET", f"/v1/chunks/{quote(chunk_id, safe='%')}"), 404)


def test_build_says_what_is_served(service):
    found = request(service, "GET", "/v1/build").json()
    assert found["build_id"] == service.manifest.build_id
    assert found["paths"] == ["graph", "dense"]
    assert found["counts"]["chunks"] == 3
    assert found["settings"]["loop"]["rounds"] == service.settings.loop.rounds


def test_build_does_not_say_where_the_model_is(service):
    llm = {"backend": "openai", "base_url": "http://inner:9/v1", "model": "m", "api_key_env": "INNER_KEY"}
    reasoner = {"kind": "llm", "llm": {**llm, "extra_body": {"user": "inner"}}, "prompts": {"gaps": "/inner/gaps.md"}}
    service.settings = Settings.model_validate({"reasoner": reasoner})
    found = request(service, "GET", "/v1/build").json()
    assert found["settings"]["reasoner"]["llm"]["model"] == "m"
    assert "inner" not in json.dumps(found).lower()


def test_alive_and_ready(service, checks):
    assert request(service, "GET", "/healthz").json()["status"] == "ok"
    assert request(service, "GET", "/readyz").json() == {"status": "ready", "build_id": service.manifest.build_id}

    async def another_build() -> None:
        raise Conflict("The dense scorer serves build b.")

    checks["dense scorer"] = another_build
    response = request(service, "GET", "/readyz")
    assert error(response, 503) == "Not ready: The dense scorer serves build b."
    assert response.headers["retry-after"].isdigit()
    assert request(service, "GET", "/healthz").status_code == 200


def test_a_part_that_hangs_is_not_ready(service, checks, monkeypatch):
    monkeypatch.setattr("serve.service.READY_TIMEOUT_S", 0.05)

    async def hangs() -> None:
        await asyncio.sleep(60)

    checks["graph scorer"] = hangs
    assert "graph scorer did not answer" in error(request(service, "GET", "/readyz"), 503)


BAD = {
    "no question": ({}, "question is missing"),
    "wrong type": ({"question": 1}, "question"),
    "empty": ({"question": " \n "}, "empty"),
    "unknown field": ({"question": "x", "top_K": 3}, "top_K"),
    "rounds 0": ({"question": "x", "rounds": 0}, "rounds"),
    "rounds 11": ({"question": "x", "rounds": 11}, "rounds"),
    "rounds 1.5": ({"question": "x", "rounds": 1.5}, "rounds"),
    "top_k 101": ({"question": "x", "top_k": 101}, "top_k"),
    "sub_questions 0": ({"question": "x", "sub_questions": 0}, "sub_questions"),
    "no time": ({"question": "x", "deadline_s": 0}, "deadline_s"),
    "too much time": ({"question": "x", "deadline_s": 1e9}, "deadline_s"),
    "option letter": ({"question": "x", "options": {"AB": "x", "C": "y"}}, "'AB'"),
    "one option": ({"question": "x", "options": {"A": "x"}}, "single option"),
    "option text": ({"question": "x", "options": {"A": 1, "B": "y"}}, "options.A"),
    "unknown path": ({"question": "x", "paths": ["sparse"]}, "unknown path sparse"),
    "no path": ({"question": "x", "paths": []}, "no path"),
    "half a surrogate pair": ({"question": "x\ud800"}, "question"),
    "a field whose name is no text": ({"question": "x", "\ud800": 1}, "JSON object"),
    "too long": ({"question": "x" * 100_000}, "100000 characters, the limit is 20000"),
}


@pytest.mark.parametrize(("body", "named"), BAD.values(), ids=BAD)
def test_a_bad_question_gets_a_sentence_that_names_the_field(service, body, named):
    sent = json.dumps(body).encode()
    response = request(service, "POST", "/v1/answer", content=sent, headers={"content-type": "application/json"})
    assert named in error(response, 400)


@pytest.mark.parametrize(
    ("body", "named"),
    [
        ({"query": ""}, "query is empty"),
        ({"query": "x" * 20_001}, "20001 characters"),
        ({"query": "x", "k": 0}, "k"),
        ({"query": "x", "k": 101}, "k"),
        ({"query": "x", "paths": ["x" * 1000]}, "unknown path"),
        ({"query": "x", "entities": [" "]}, "entities.0"),
        ({"query": "x", "entities": ["x"] * 51}, "entities"),
        ({"query": "x", "entities": "warfarin"}, "entities"),
        (
            {"query": "x", "filter": {"year_from": 2020, "year_to": 1990}},
            "filter: year_from 2020 is after year_to 1990",
        ),
        ({"question": "x"}, "query is missing"),
    ],
)
def test_a_bad_query_gets_a_sentence_that_names_the_field(service, body, named):
    sentence = error(request(service, "POST", "/v1/retrieve", json=body), 400)
    assert named in sentence
    assert len(sentence) < 300


@pytest.mark.parametrize(
    "content", [b"", b"{", b"[]", b"null", b'"x"', b"\xff\xfe", b"NaN", b"[" * 5000, b'{"question": NaN}']
)
@pytest.mark.parametrize("content_type", ["application/json", "text/plain", ""])
def test_a_body_that_is_no_json_object(service, content, content_type):
    headers = {"content-type": content_type}
    error(request(service, "POST", "/v1/answer", content=content, headers=headers), 400)


def test_a_large_body_is_refused_declared_or_not(service):
    data = b'{"question": "' + b"x" * 1_000_000 + b'"}'

    async def pieces():
        for start in range(0, len(data), 65_536):
            yield data[start : start + 65_536]

    for content in (data, pieces()):
        response = request(service, "POST", "/v1/answer", content=content, headers={"content-type": "application/json"})
        assert "305536 bytes" in error(response, 413)


def test_the_longest_question_fits_however_it_is_spelled(service):
    """Each character as two escapes of six bytes."""
    data = json.dumps({"question": "\U0001f987" * 20_000}).encode()
    response = request(service, "POST", "/v1/answer", content=data, headers={"content-type": "application/json"})
    assert response.status_code == 200


def test_unknown_places_and_methods(service):
    assert "/nowhere" in error(request(service, "GET", "/nowhere"), 404)
    assert "GET" in error(request(service, "GET", "/v1/answer"), 405)


def test_one_path_down_is_degraded_and_both_are_an_error(service, graph, dense):
    graph.error = Damaged("graph.npy: truncated.")
    answer = Answer.model_validate(request(service, "POST", "/v1/answer", json={"question": "bats carry"}).json())
    assert answer.degraded == ("graph",)
    assert answer.statements
    dense.error = Overloaded("The dense scorer has more requests than it can queue.")
    response = request(service, "POST", "/v1/answer", json={"question": "bats carry"})
    error(response, 503)
    assert response.headers["retry-after"].isdigit()


def test_an_unexpected_error_shows_nothing_of_the_inside(service, graph, dense):
    graph.error = dense.error = ZeroDivisionError("secret")
    assert "secret" not in error(request(service, "POST", "/v1/retrieve", json={"query": "bats"}), 500)


def test_a_slow_path_is_left_behind(service, graph):
    graph.delay_s = 60
    body = {"question": "bats carry", "deadline_s": 2, "rounds": 1}
    response = request(service, "POST", "/v1/answer", json=body)
    answer = Answer.model_validate(response.json())
    assert answer.degraded == ("graph",)
    assert answer.statements
    assert answer.seconds < 1.9
    assert graph.cancelled


def test_no_path_in_time(service, graph, dense):
    graph.delay_s = dense.delay_s = 60
    answer = request(service, "POST", "/v1/answer", json={"question": "bats carry", "deadline_s": 0.3}).json()
    assert answer["stopped"] == "deadline"
    assert not answer["enough_evidence"]
    fast = service.settings.model_copy(update={"loop": service.settings.loop.changed(deadline_s=0.1)})
    service.settings = fast
    assert "deadline" in error(request(service, "POST", "/v1/retrieve", json={"query": "bats"}), 504)


def test_who_leaves_cancels_the_work(service, graph, dense):
    graph.delay_s = dense.delay_s = 60

    async def leave() -> None:
        app = create_app(Served(service))
        transport = httpx.ASGITransport(app)
        async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1") as client:
            work = asyncio.create_task(client.post("/v1/answer", json={"question": "bats carry"}))
            await asyncio.sleep(0.2)
            work.cancel()
            with pytest.raises(asyncio.CancelledError):
                await work

    asyncio.run(leave())
    assert graph.cancelled
    assert dense.cancelled


def test_a_stop_waits_for_what_was_asked_and_refuses_what_comes(service, graph):
    graph.delay_s = 0.5

    async def stop() -> tuple[httpx.Response, list[httpx.Response], bool]:
        drain = Drain()
        transport = httpx.ASGITransport(create_app(Served(service), drain=drain))
        async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1") as client:
            asked = asyncio.create_task(client.post("/v1/answer", json={"question": "bats carry", "rounds": 1}))
            while not drain.running:
                await asyncio.sleep(0.01)
            closing = asyncio.create_task(drain.close())
            await asyncio.sleep(0)
            late = [await client.post("/v1/retrieve", json={"query": "bats"}), await client.get("/readyz")]
            waited = not closing.done()
            late.append(await client.get("/healthz"))
            answered = await asked
            await asyncio.wait_for(closing, 10)
            return answered, late, waited

    answered, (refused, ready, alive), waited = asyncio.run(stop())
    assert waited
    assert Answer.model_validate(answered.json()).degraded == ()
    assert (refused.status_code, ready.status_code, alive.status_code) == (503, 503, 200)
    assert "stopping" in refused.json()["error"]["message"]
    assert refused.headers["retry-after"].isdigit()


def test_the_description_says_what_it_is_not(service):
    schema = request(service, "GET", "/openapi.json").json()
    assert "no medical device" in schema["info"]["description"]
    assert schema["components"]["schemas"]["AnswerRequest"]["examples"]
    assert "422" not in json.dumps(schema["paths"])
    assert request(service, "GET", "/docs").status_code == 200
