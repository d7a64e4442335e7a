"""One round of the loop: its sub-questions, retrieved and answered at the same time."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Sequence
from typing import Literal

from hybrid_ir.reasoning.citations import checked
from hybrid_ir.reasoning.events import Called, Event, Failed, Retrieved, SubAnswered
from hybrid_ir.records import LoopState, PathName, Retrieval, Round, SubAnswer, SubQuestion
from hybrid_ir.roles import Query, Reasoner, Retriever

RETRIEVER_SHARE = 0.9
"""The retriever gets this much of a round's time, so that it can report a slow path before it is cut off itself."""


class RoundOfWork:
    """The sub-questions of one round, each a task; their events meet in one queue.

    Tasks are held by hand and not by a ``TaskGroup``: an asynchronous generator must not be
    suspended inside one.
    """

    def __init__(
        self,
        state: LoopState,
        number: int,
        sub_questions: Sequence[SubQuestion],
        retriever: Retriever,
        reasoner: Reasoner,
        top_k: int,
        paths: Sequence[PathName] | None,
    ) -> None:
        self.dropped = 0
        self.unread = 0
        self.cut_off = False
        self._state = state
        self._number = number
        self._sub_questions = sub_questions
        self._retriever = retriever
        self._reasoner = reasoner
        self._top_k = top_k
        self._paths = paths
        self._retrievals: dict[int, Retrieval] = {}
        self._answers: dict[int, SubAnswer] = {}
        self._errors: dict[int, Exception] = {}
        self._late: set[int] = set()
        self._tasks: list[asyncio.Task[None]] = []

    async def events(self, start: float, cutoff: float, clock: Callable[[], float]) -> AsyncGenerator[Event, None]:
        """Run all; ends when all are done or at the cutoff.  Raises if every sub-question failed."""
        queue: asyncio.Queue[Event] = asyncio.Queue()

        def emit(event: Event) -> None:
            queue.put_nowait(event)

        self._tasks = [
            asyncio.create_task(self._one(index, sub_question, emit, start, cutoff, clock))
            for index, sub_question in enumerate(self._sub_questions)
        ]
        pending: set[asyncio.Task[None]] = set(self._tasks)
        while pending:
            getter = asyncio.ensure_future(queue.get())
            try:
                await asyncio.wait(
                    {getter, *pending}, timeout=max(cutoff - clock(), 0.0), return_when=asyncio.FIRST_COMPLETED
                )
                if getter.done():
                    yield getter.result()
            finally:
                getter.cancel()
            pending = {task for task in pending if not task.done()}
            if pending and clock() >= cutoff:
                self.cut_off = True
                await self.cancel()
                break
        while not queue.empty():
            yield queue.get_nowait()
        for task in self._tasks:
            if task.done() and not task.cancelled():
                task.result()  # a bug in the loop itself must not pass for a failed sub-question
        if len(self._errors) == len(self._sub_questions):
            if len(self._late) < len(self._errors):
                raise next(error for index, error in self._errors.items() if index not in self._late)
            self.cut_off = True  # the retriever was given a time and kept to it

    async def _one(
        self,
        index: int,
        sub_question: SubQuestion,
        emit: Callable[[Event], None],
        start: float,
        cutoff: float,
        clock: Callable[[], float],
    ) -> None:
        stage: Literal["retrieve", "answer"] = "retrieve"
        timeout_s = max(RETRIEVER_SHARE * (cutoff - clock()), 0.0)
        time_is_up = clock() + timeout_s
        try:
            retrieval = await self._retriever.retrieve(
                Query(text=sub_question.text, entities=sub_question.entities),
                self._top_k,
                paths=self._paths,
                timeout_s=timeout_s,
            )
            self._retrievals[index] = retrieval
            emit(Retrieved(seconds=clock() - start, round=self._number, index=index, retrieval=retrieval))
            stage = "answer"
            found = await self._reasoner.answer(self._state, sub_question, retrieval)
        except Exception as error:
            self._errors[index] = error
            if isinstance(error, TimeoutError) or clock() >= time_is_up:
                self._late.add(index)
            reason = f"{type(error).__name__}: {error}"
            emit(Failed(seconds=clock() - start, round=self._number, index=index, stage=stage, reason=reason))
            return
        for call in found.calls:
            emit(Called(seconds=clock() - start, round=self._number, index=index, call=call))
            self.unread += not call.read
        statements, dropped = checked(found.statements, {item.chunk.id for item in retrieval.evidence})
        self.dropped += dropped
        sub_answer = SubAnswer(sub_question=sub_question, retrieval=retrieval, statements=statements)
        self._answers[index] = sub_answer
        emit(SubAnswered(seconds=clock() - start, round=self._number, index=index, sub_answer=sub_answer))

    def result(self, missing: str) -> Round:
        """What the round brought; evidence counts even where its sub-answer did not come."""
        sub_answers = []
        for index, sub_question in enumerate(self._sub_questions):
            if index in self._answers:
                sub_answers.append(self._answers[index])
            elif index in self._retrievals:
                sub_answers.append(
                    SubAnswer(sub_question=sub_question, retrieval=self._retrievals[index], statements=())
                )
            elif index in self._errors:
                failed = tuple(self._paths) if self._paths else ("retrieval",)
                nothing = Retrieval(query=sub_question.text, evidence=(), degraded=failed)
                sub_answers.append(SubAnswer(sub_question=sub_question, retrieval=nothing, statements=()))
        return Round(number=self._number, missing=missing, sub_answers=tuple(sub_answers))

    async def cancel(self) -> None:
        """Cancel what runs and wait until it has ended."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
