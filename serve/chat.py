"""OpenAI's chat completions over the loop, so that existing chat clients can ask.

The question is the last message of the user; what was said before it is not part of it.  The
answer's statements carry their numbers in brackets, the chunks stand under them, and each number
is an annotation too (``url_citation``), with the chunk's address in this service.
"""

from __future__ import annotations

import json
import time
import uuid
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing
from typing import Annotated, Any, Literal
from urllib.parse import quote

from pydantic import BaseModel, ConfigDict, Discriminator, Field, Tag
from starlette.responses import StreamingResponse

from hybrid_ir.errors import BadInput
from hybrid_ir.reasoning.events import Called, Event, Finished
from hybrid_ir.records import Answer
from serve.schemas import MAX_DEADLINE_S, AnswerRequest, Text
from serve.streaming import BEAT, HEADERS, failure, message, with_beats

MODEL = "hybrid-ir"
NOT_ENOUGH = "There is not enough evidence in this corpus to answer the question."
PIECE_CHARS = 200


class _Form(BaseModel):
    """Fields of OpenAI's form that mean nothing here (``temperature``, ``tools``) are let through and ignored."""

    model_config = ConfigDict(frozen=True, extra="ignore")


class TextPart(_Form):
    """A part of a message; images and sound are refused."""

    type: Literal["text"]
    text: Text


Content = Annotated[
    Annotated[Text | None, Tag("[text]")] | Annotated[list[TextPart], Tag("[parts]")],
    Discriminator(lambda given: "[parts]" if isinstance(given, list) else "[text]"),
]
"""A text or its parts: told apart by form, so that an error is of that form alone."""


class ChatMessage(_Form):
    """One turn."""

    role: Literal["system", "developer", "user", "assistant", "tool", "function"]
    content: Content = None

    def words(self) -> str:
        if isinstance(self.content, str):
            return self.content
        return "\n".join(part.text for part in self.content or ())


class StreamOptions(_Form):
    """As OpenAI has it."""

    include_usage: bool = False


class ChatRequest(_Form):
    """A chat, of which the last message of the user is answered."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [{"model": MODEL, "messages": [{"role": "user", "content": "What do bats carry?"}]}]
        }
    )

    model: Text = MODEL
    messages: Annotated[list[ChatMessage], Field(min_length=1, max_length=1000)]
    stream: bool = False
    stream_options: StreamOptions | None = None
    n: Annotated[int, Field(ge=1, le=1, description="One answer.")] = 1
    deadline_s: Annotated[float, Field(gt=0, le=MAX_DEADLINE_S, allow_inf_nan=False)] | None = None

    def question(self) -> AnswerRequest:
        if self.model != MODEL:
            raise BadInput(f"model: this service has {MODEL} alone, not {self.model[:50]}.")
        said = [message.words() for message in self.messages if message.role == "user"]
        if not said:
            raise BadInput("messages: none is the user's; the last one of the user is the question.")
        return AnswerRequest(question=said[-1], deadline_s=self.deadline_s)


def written(answer: Answer) -> tuple[str, list[dict[str, Any]]]:
    """The answer as one text, and its citations as annotations with their place in it."""
    number = {chunk.id: n for n, chunk in enumerate(answer.citations, start=1)}
    title = {chunk.id: chunk.title or chunk.id for chunk in answer.citations}
    text, annotations = "", []
    if not answer.enough_evidence:
        text = NOT_ENOUGH
    elif answer.short and not any(answer.short in statement.text for statement in answer.statements[:1]):
        text = answer.short
    if answer.statements and text:
        text += "\n\n"
    for position, statement in enumerate(answer.statements):
        text += (" " if position else "") + statement.text
        for chunk_id in statement.citations:
            start = len(text)
            text += f" [{number[chunk_id]}]"
            citation = {
                "start_index": start + 1,
                "end_index": len(text),
                "url": address(chunk_id),
                "title": title[chunk_id],
            }
            annotations.append({"type": "url_citation", "url_citation": citation})
    if number:
        text += "\n\n" + "\n".join(f"[{n}] {title[chunk_id]} ({chunk_id})" for chunk_id, n in number.items())
    return text, annotations


def address(chunk_id: str) -> str:
    return f"/v1/chunks/{quote(chunk_id)}"


async def completion(events: AsyncGenerator[Event, None]) -> dict[str, Any]:
    """The response as a whole; ``hybrid_ir`` holds what the form has no place for."""
    spent = Usage()
    async with aclosing(events):
        async for event in events:
            spent.add(event)
            if isinstance(event, Finished):
                text, annotations = written(event.answer)
                reply = {"role": "assistant", "content": text, "refusal": None, "annotations": annotations}
                choice = {"index": 0, "message": reply, "logprobs": None, "finish_reason": "stop"}
                head = _head("chat.completion")
                return {**head, "choices": [choice], "usage": spent.form(), "hybrid_ir": _own(event.answer)}
    raise AssertionError("the loop ended without an answer")


def completion_stream(events: AsyncGenerator[Event, None], include_usage: bool) -> StreamingResponse:
    """The same in pieces, when the answer is there; the last one carries the annotations."""
    head = _head("chat.completion.chunk")

    def piece(delta: dict[str, Any], finish: str | None = None, **more: Any) -> str:
        choice = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish}
        return message(json.dumps({**head, "choices": [choice], **more}))

    async def lines() -> AsyncIterator[str]:
        beating, spent = with_beats(events), Usage()
        try:
            yield piece({"role": "assistant", "content": ""})
            async for event in beating:
                if event is None:
                    yield BEAT
                    continue
                spent.add(event)
                if isinstance(event, Finished):
                    text, annotations = written(event.answer)
                    for start in range(0, len(text), PIECE_CHARS):
                        yield piece({"content": text[start : start + PIECE_CHARS]})
                    yield piece({"annotations": annotations}, "stop", hybrid_ir=_own(event.answer))
                    if include_usage:
                        yield message(json.dumps({**head, "choices": [], "usage": spent.form()}))
        except Exception as error:
            yield message(json.dumps(failure(error)))
        finally:
            await beating.aclose()
        yield message("[DONE]")

    return StreamingResponse(lines(), media_type="text/event-stream", headers=HEADERS)


class Usage:
    """Tokens of all calls of the loop; none where the reasoner is no language model."""

    def __init__(self) -> None:
        self._prompt = self._completion = 0

    def add(self, event: Event) -> None:
        if isinstance(event, Called):
            self._prompt += event.call.prompt_tokens
            self._completion += event.call.completion_tokens

    def form(self) -> dict[str, int]:
        total = self._prompt + self._completion
        return {"prompt_tokens": self._prompt, "completion_tokens": self._completion, "total_tokens": total}


def models() -> dict[str, Any]:
    """OpenAI's list of models: this one."""
    return {"object": "list", "data": [{"id": MODEL, "object": "model", "created": 0, "owned_by": MODEL}]}


def _head(kind: str) -> dict[str, Any]:
    return {"id": f"chatcmpl-{uuid.uuid4().hex}", "object": kind, "created": int(time.time()), "model": MODEL}


def _own(answer: Answer) -> dict[str, Any]:
    kept = {"build_id", "reasoner", "enough_evidence", "degraded", "stopped", "seconds", "citations"}
    return answer.model_dump(mode="json", include=kept)
