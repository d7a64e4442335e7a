"""The spans of requests, as an exporter gets them."""

from __future__ import annotations

import asyncio
import json

import httpx
import pytest
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import StatusCode
from small_service import Quoting, SharedWords, chunks, small_manifest, small_store

from hybrid_ir.errors import BadInput, Unavailable
from hybrid_ir.index.chunk_store import ChunkStore
from hybrid_ir.reasoning.events import Called
from hybrid_ir.records import ModelCall
from hybrid_ir.settings import Settings
from serve.api import create_app
from serve.service import Service
from serve.switch import Served
from serve.tracing import Tracing, exporter_of

QUESTION = "Which drug inhibits CYP2C9."
TRACE_ID, PARENT = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"


@pytest.fixture
def spans(tmp_path):
    exporter = InMemorySpanExporter()
    tracing, manifest = Tracing(exporter), small_manifest()
    dense = SharedWords(chunks())
    dense.error = Unavailable("The dense scorer is gone.")
    paths = {"graph": SharedWords(chunks()), "dense": dense}
    store = ChunkStore(small_store(tmp_path), manifest)
    app = create_app(
        Served(Service(manifest, Settings(), store, paths, Quoting(), {}, tracing=tracing)), tracing=tracing
    )

    def spans(path: str, body: dict):
        async def send() -> httpx.Response:
            async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://127.0.0.1") as client:
                return await client.post(path, json=body, headers={"traceparent": f"00-{TRACE_ID}-{PARENT}-01"})

        exporter.clear()
        response = asyncio.run(send())
        tracing.flush()
        return response, exporter.get_finished_spans()

    return spans


def test_a_question_is_a_request_with_its_rounds_and_paths(spans):
    response, found = spans("/v1/answer", {"question": QUESTION})
    assert response.status_code == 200
    assert {f"{span.context.trace_id:032x}" for span in found} == {TRACE_ID}
    by_id = {span.context.span_id: span for span in found}
    parents = {span.name: by_id[span.parent.span_id].name if span.parent.span_id in by_id else None for span in found}
    assert parents == {
        "request": None,
        "decompose": "request",
        "round": "request",
        "conclude": "request",
        "path graph": "round",
        "path dense": "round",
    }
    (request,) = (span for span in found if span.name == "request")
    assert f"{request.parent.span_id:016x}" == PARENT
    assert request.attributes["http.route"] == "/v1/answer"
    assert request.attributes["http.response.status_code"] == 200
    assert request.attributes["hybrid_ir.request_id"] == response.headers["x-request-id"]
    assert all(span.start_time <= span.end_time <= request.end_time + 5_000_000 for span in found)
    failed = {span.name for span in found if span.status.status_code == StatusCode.ERROR}
    assert failed == {"path dense"}


def test_no_span_holds_a_text_of_the_request(spans):
    for path, field in (("/v1/answer", "question"), ("/v1/retrieve", "query"), ("/v1/retrieve", "unknown")):
        _, found = spans(path, {field: QUESTION})
        assert found
        assert "CYP2C9" not in "".join(span.to_json() for span in found)
    assert [span.name for span in found] == ["request"]
    assert found[0].attributes["http.response.status_code"] == 400


def test_a_call_of_a_language_model_has_its_tokens():
    exporter = InMemorySpanExporter()
    tracing = Tracing(exporter)
    call = ModelCall(
        prompt="decompose 1", prompt_hash="x", reply="secret", read=True, finish="stop", prompt_tokens=7, seconds=0.25
    )
    tracing.loop().see(Called(seconds=1.0, round=1, call=call))
    tracing.flush()
    (span,) = exporter.get_finished_spans()
    assert (span.name, span.attributes["prompt_tokens"], span.end_time - span.start_time) == (
        "language model",
        7,
        250_000_000,
    )
    assert "secret" not in json.dumps(span.to_json())


def test_no_traces_unless_asked_for_and_a_missing_exporter_is_said():
    assert exporter_of(Settings().serve.traces) is None
    assert exporter_of("console") is not None
    with pytest.raises(BadInput, match="pip install opentelemetry-exporter-otlp"):
        exporter_of("otlp")
