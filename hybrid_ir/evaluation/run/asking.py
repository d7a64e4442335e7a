"""What asks one question: an open index with a cell's settings, or a running service."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any

from hybrid_ir import client
from hybrid_ir.errors import BadInput, Unavailable
from hybrid_ir.evaluation.run.grid import GOLD_STEPS, Cell, Grid, Planned
from hybrid_ir.evaluation.run.rows import Row, row_of, row_retrieved
from hybrid_ir.evaluation.sets.questions import GoldQuestion
from hybrid_ir.index.manifest import digest
from hybrid_ir.opened import Index
from hybrid_ir.reasoning import loop
from hybrid_ir.reasoning.events import EVENT, Called, Event, Finished
from hybrid_ir.reasoning.loop import folded
from hybrid_ir.records import Answer, ModelCall, PathName, Question, Retrieval
from hybrid_ir.retrieval.retriever import FusedRetriever
from hybrid_ir.roles import Query, Retriever
from hybrid_ir.settings import Settings

DEPTH = 50
"""Chunks of a retrieval that is measured alone: so many that 20 documents are found where each has several chunks."""
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

    def __init__(self, open_with: Callable[[Settings], Index], grid: Grid) -> None:
        """``open_with`` opens the build; it is called once."""
        self._open_with, self._grid = open_with, grid
        self._opened: dict[str, tuple[Index, FusedRetriever]] = {}

    async def ask(self, planned: Planned, question: GoldQuestion) -> Row:
        """Raises what the loop raises."""
        index, fused = self._with(planned.settings)
        asked = question.asked()
        retriever: Retriever = WithOptions(fused, asked) if self._grid.options_in_query else fused
        if not self._grid.answers and (planned.cell.method == GOLD_STEPS or planned.settings.loop.flow == "single"):
            return await _retrieved(planned.cell, question, retriever)
        calls: list[ModelCall] = []
        answer: Answer | None = None
        async for event in loop.run(asked, retriever, index.reasoner, planned.settings.loop, build_id=index.build_id):
            answer = _heard(event, calls) or answer
        assert answer is not None  # noqa: S101 -- the loop ends with Finished
        row = row_of(planned.cell, question, answer, calls)
        return row if self._grid.answers else row.model_copy(update={"judged": False})

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


async def _retrieved(cell: Cell, question: GoldQuestion, retriever: Retriever) -> Row:
    start = time.monotonic()
    texts = question.steps if cell.method == GOLD_STEPS else (question.question,)
    found = [await retriever.retrieve(Query(text=text), DEPTH) for text in texts]
    return row_retrieved(cell, question, found, time.monotonic() - start)


def ask_service(url: str, cell: Cell, question: GoldQuestion, deadline_s: float) -> Row:
    """The same of a running service; ``rounds`` and ``top_k`` as the cell has them, the rest as it was started.

    Raises Unavailable where it does not answer or is busy, the library's own errors for what it refuses.
    """
    body: dict[str, Any] = {"question": question.question, "options": question.options, "stream": True}
    body |= {"rounds": cell.rounds, "top_k": cell.top_k, "deadline_s": min(deadline_s, SERVICE_DEADLINE_S)}
    sent = {name: value for name, value in body.items() if value is not None}
    calls: list[ModelCall] = []
    answer: Answer | None = None
    for _, data in client.events(url, "/v1/answer", sent, SERVICE_DEADLINE_S + 30.0):
        try:
            answer = _heard(EVENT.validate_json(data), calls) or answer
        except ValueError as error:
            raise BadInput(f"{url}: what answers there is no service of this version ({str(error)[:200]}).") from error
    if answer is None:
        raise Unavailable(f"{url}: the answer broke off.")
    return row_of(cell, question, answer, calls)


def check_service(url: str) -> dict[str, Any]:
    """What a service says of its build.  Raises Unavailable where none answers."""
    found: dict[str, Any] = client.get(url, "/v1/build")
    return found


def _heard(event: Event, calls: list[ModelCall]) -> Answer | None:
    if isinstance(event, Called):
        calls.append(event.call)
    return event.answer if isinstance(event, Finished) else None
