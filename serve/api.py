"""The HTTP interface over a :class:`serve.switch.Served`; needs no Ray."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from fastapi import FastAPI
from starlette.types import ASGIApp, Message, Receive, Scope, Send

import hybrid_ir
from hybrid_ir.errors import HybridIRError
from hybrid_ir.records import Answer, Chunk, Retrieval
from serve import chat, errors
from serve.chat import ChatRequest
from serve.drain import Drain
from serve.gateway import Gateway, Keys
from serve.metrics import Metrics
from serve.schemas import (
    AnswersBody,
    AnswersRequest,
    BuildInfo,
    ErrorBody,
    RetrieveRequest,
    Status,
    StreamableAnswerRequest,
)
from serve.streaming import event_stream, started
from serve.switch import Follower, Served
from serve.tracing import Tracing

DESCRIPTION = """Medical question answering over a knowledge graph and dense vectors, iterated.

**A research tool.** It is no medical device, and it gives no advice to patients. Every statement of an
answer cites the chunks it was taken from: read them.
"""

_ERRORS: dict[int | str, dict[str, Any]] = {
    "4XX": {"model": ErrorBody, "description": "Something in the request cannot be used; `error` says what."},
    503: {"model": ErrorBody, "description": "A part does not answer; see the header Retry-After."},
}


def create_app(
    served: Served,
    follower: Follower | None = None,
    metrics: Metrics | None = None,
    says_id: bool = True,
    tracing: Tracing | None = None,
    drain: Drain | None = None,
) -> FastAPI:
    """Routes only; what they do is the service's, which a request asks for once.

    ``says_id`` and ``drain``: see the gateway.
    """

    @asynccontextmanager
    async def life(app: FastAPI) -> AsyncIterator[None]:
        following = asyncio.create_task(follower.run()) if follower else None
        yield
        if following:
            following.cancel()

    app = FastAPI(title="Hybrid-IR", version="1", summary=hybrid_ir.__doc__, description=DESCRIPTION, lifespan=life)
    errors.install(app)
    # A character takes at most 12 bytes in JSON (two \\uXXXX escapes).
    app.add_middleware(BodyLimit, limit=12 * served.now.settings.serve.max_question_chars + 65_536)
    wanted = served.now.settings.serve
    held = Keys(wanted.keys) if wanted.keys else None
    app.add_middleware(  # the last that is added is the first that is asked
        Gateway,
        build_id=lambda: served.now.manifest.build_id,
        held=held,
        trusted_network=wanted.trusted_network,
        metrics=metrics,
        says_id=says_id,
        tracing=tracing,
        drain=drain,
    )

    @app.post("/v1/answer", response_model=Answer, responses=_ERRORS, tags=["questions"])
    async def answer(request: StreamableAnswerRequest) -> Any:
        """Answer a question, or say that the evidence is not enough."""
        if request.stream:
            return event_stream(await started(served.now.events(request)))
        return await served.now.answer(request)

    @app.post("/v1/answers", responses=_ERRORS, tags=["questions"])
    async def answers(request: AnswersRequest) -> AnswersBody:
        """Answer several questions; one that cannot be answered has an error in its place."""
        found = await served.now.answers(request.questions)
        return AnswersBody(
            answers=[
                ErrorBody.model_validate(errors.body(one.http_status, str(one)))
                if isinstance(one, HybridIRError)
                else one
                for one in found
            ]
        )

    @app.post("/v1/chat/completions", response_model=dict[str, Any], responses=_ERRORS, tags=["questions"])
    async def chat_completions(request: ChatRequest) -> Any:
        """OpenAI's form of a question, for chat clients; citations stand in the text and as annotations."""
        events = await started(served.now.events(request.question()))
        if request.stream:
            usage = request.stream_options is not None and request.stream_options.include_usage
            return chat.completion_stream(events, usage)
        return await chat.completion(events)

    @app.get("/v1/models", tags=["questions"])
    async def models() -> dict[str, Any]:
        """The one model that chat clients can choose."""
        return chat.models()

    @app.post("/v1/retrieve", responses=_ERRORS, tags=["questions"])
    async def retrieve(request: RetrieveRequest) -> Retrieval:
        """The best chunks for one query, with the path and rank that brought each."""
        return await served.now.retrieve(request)

    @app.get("/v1/build", tags=["index"])
    async def build() -> BuildInfo:
        """Which build is served, and what it holds."""
        return served.now.build(served.refused)

    @app.get("/v1/chunks/{chunk_id:path}", responses=_ERRORS, tags=["index"])
    async def chunk(chunk_id: str) -> Chunk:
        """One chunk by its id, percent-encoded: `#` is `%23`."""
        return await served.now.chunk(chunk_id)

    @app.get("/healthz", tags=["health"])
    async def healthz() -> Status:
        """The process is alive."""
        return Status(status="ok", build_id=served.now.manifest.build_id)

    @app.get("/readyz", responses=_ERRORS, tags=["health"])
    async def readyz() -> Status:
        """All scorers and the reasoner answer for this build."""
        service = served.now
        await service.ready()
        return Status(status="ready", build_id=service.manifest.build_id)

    return app


class BodyLimit:
    """Refuses a body of more than ``limit`` bytes; holds what is shorter, which is not much."""

    def __init__(self, app: ASGIApp, limit: int) -> None:
        self._app, self._limit = app, limit

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        declared = dict(scope["headers"]).get(b"content-length", b"")
        body, more = b"", True
        while more:
            if len(body) > self._limit or (declared.isdigit() and int(declared) > self._limit):
                sentence = f"The request is larger than {self._limit} bytes; send less text."
                await errors.response(413, sentence)(scope, receive, send)
                return
            message = await receive()
            if message["type"] != "http.request":
                return  # the client has left
            body += message.get("body", b"")
            more = message.get("more_body", False)
        given = False

        async def replayed() -> Message:
            nonlocal given
            if given:
                return await receive()
            given = True
            return {"type": "http.request", "body": body, "more_body": False}

        await self._app(scope, replayed, send)
