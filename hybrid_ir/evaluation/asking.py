"""What asks one question: an open index with a cell's settings, or a running service."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import httpx

from hybrid_ir.errors import BadInput, HybridIRError, NotFound, Unavailable
from hybrid_ir.evaluation.grid import Cell, Planned
from hybrid_ir.evaluation.questions import GoldQuestion
from hybrid_ir.evaluation.rows import Row, row_of
from hybrid_ir.index.manifest import digest
from hybrid_ir.opened import Index
from hybrid_ir.reasoning import loop
from hybrid_ir.reasoning.events import EVENT, Called, Event, Finished
from hybrid_ir.reasoning.loop import folded
from hybrid_ir.records import Answer, ModelCall, PathName, Question, Retrieval
from hybrid_ir.retrieval.retriever import FusedRetriever
from hybrid_ir.roles import Query, Retriever
from hybrid_ir.settings import Settings

SERVICE_DEADLINE_S = 300.0
"""The longest that a service lets one request run."""


class WithOptions:
    """A retriever that puts the options' texts behind the question itself; sub-questions stay as they are."""

    def __init__(self, retriever: Retriever, question: Question) -> None:
        self._retriever, self._asked = retriever, folded(question.text)
        self._more = " ".join(question.options.values())

    async def retrieve(
        self, query: Query, k: int, paths: Sequence[PathName] | None = None, timeout_s: float | None = None
    ) -> Retrieval:
        if self._more and folded(query.text) == self._asked:
            query = query.model_copy(update={"text": f"{query.text} {self._more}"})
        return await self._retriever.retrieve(query, k, paths, timeout_s)


class Asker:
    """One open build, asked by the settings of any cell; what needs loading is loaded once."""

    def __init__(self, open_with: Callable[[Settings], Index], options_in_query: bool = False) -> None:
        """``open_with`` opens the build; it is called once."""
        self._open_with, self._options_in_query = open_with, options_in_query
        self._opened: dict[str, tuple[Index, FusedRetriever]] = {}

    async def ask(self, planned: Planned, question: GoldQuestion) -> Row:
        """Raises what the loop raises."""
        index, fused = self._with(planned.settings)
        asked = question.asked()
        retriever: Retriever = WithOptions(fused, asked) if self._options_in_query else fused
        calls: list[ModelCall] = []
        answer: Answer | None = None
        async for event in loop.run(asked, retriever, index.reasoner, planned.settings.loop, build_id=index.build_id):
            answer = _heard(event, calls) or answer
        assert answer is not None  # noqa: S101 -- the loop ends with Finished
        return row_of(planned.cell, question, answer, calls)

    def _with(self, settings: Settings) -> tuple[Index, FusedRetriever]:
        key = digest(settings.model_dump(mode="json", exclude={"loop", "job", "serve"}))
        if key not in self._opened:
            held = [index for index, _ in self._opened.values()]
            index = held[0].asked_by(settings) if held else self._open_with(settings)
            for other in held:
                index.share_parts(other)
            top_n = settings.rerank.top_n if settings.rerank else 0
            retriever = FusedRetriever(index.paths, index.chunks, settings.fusion, index.reranker, top_n)
            self._opened[key] = index, retriever
        return self._opened[key]


def ask_service(url: str, cell: Cell, question: GoldQuestion, deadline_s: float) -> Row:
    """The same of a running service; ``rounds`` and ``top_k`` as the cell has them, the rest as it was started.

    Raises Unavailable where it does not answer or is busy, the library's own errors for what it refuses.
    """
    key = os.environ.get("HYBRID_IR_KEY")
    headers = {"Authorization": f"Bearer {key}"} if key else {}
    body: dict[str, Any] = {"question": question.question, "options": question.options, "stream": True}
    body |= {"rounds": cell.rounds, "top_k": cell.top_k, "deadline_s": min(deadline_s, SERVICE_DEADLINE_S)}
    calls: list[ModelCall] = []
    answer: Answer | None = None
    sent = {name: value for name, value in body.items() if value is not None}
    try:
        with (
            httpx.Client(timeout=httpx.Timeout(SERVICE_DEADLINE_S + 30.0, connect=10.0)) as client,
            client.stream("POST", url.rstrip("/") + "/v1/answer", json=sent, headers=headers) as response,
        ):
            if response.is_error:
                response.read()
                raise _refused(url, response.status_code, response.text)
            for kind, data in _events(response.iter_lines()):
                if kind == "error":
                    said = json.loads(data)["error"]
                    raise _refused(url, 503 if said.get("type") == "unavailable" else 500, data)
                answer = _heard(EVENT.validate_json(data), calls) or answer
    except httpx.HTTPError as error:
        raise Unavailable(
            f"{url}: no service answers there ({error or type(error).__name__}). Start one: hybrid-ir serve --root ROOT"
        ) from error
    except ValueError as error:
        raise BadInput(f"{url}: what answers there is no service of this version ({str(error)[:200]}).") from error
    if answer is None:
        raise Unavailable(f"{url}: the answer broke off.")
    return row_of(cell, question, answer, calls)


def check_service(url: str) -> dict[str, Any]:
    """What a service says of its build.  Raises Unavailable where none answers."""
    key = os.environ.get("HYBRID_IR_KEY")
    headers = {"Authorization": f"Bearer {key}"} if key else {}
    try:
        response = httpx.get(url.rstrip("/") + "/v1/build", headers=headers, timeout=30.0)
    except (httpx.HTTPError, httpx.InvalidURL) as error:
        raise Unavailable(
            f"{url}: no service answers there ({error}). Start one: hybrid-ir serve --root ROOT"
        ) from error
    if response.is_error:
        raise _refused(url, response.status_code, response.text)
    try:
        found: dict[str, Any] = response.json()
    except ValueError as error:
        raise BadInput(f"{url}: what answers there is no service of Hybrid-IR.") from error
    return found


def _heard(event: Event, calls: list[ModelCall]) -> Answer | None:
    if isinstance(event, Called):
        calls.append(event.call)
    return event.answer if isinstance(event, Finished) else None


def _events(lines: Iterator[str]) -> Iterator[tuple[str, str]]:
    """(kind, data) of Server-Sent Events, each with one line of data."""
    kind = ""
    for line in lines:
        field, _, value = line.partition(": ")
        if field == "event":
            kind = value
        elif field == "data":
            yield kind, value


def _refused(url: str, status: int, body: str) -> HybridIRError:
    try:
        reason = json.loads(body)["error"]["message"]
    except (ValueError, KeyError, TypeError):
        reason = body[:200]
    kind = Unavailable if status in (429, 502, 503, 504) else NotFound if status == 404 else BadInput
    return kind(f"{url} answered {status}: {reason}")
