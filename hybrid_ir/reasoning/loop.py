"""Algorithm 1: decompose, retrieve, answer, repeat on what is missing, conclude.

The critical path is (decompose + retrieve + answer) x rounds + conclude; the sub-questions of
one round run at the same time.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import aclosing
from typing import Literal

from hybrid_ir.reasoning.citations import checked, cited_chunks
from hybrid_ir.reasoning.events import Called, Concluding, Event, Finished, RoundFinished, RoundStarted, Wrote
from hybrid_ir.reasoning.flows import basis_of, reasoner_of, rounds_of
from hybrid_ir.reasoning.round import RoundOfWork
from hybrid_ir.records import (
    Answer,
    Conclusion,
    Decomposition,
    LoopState,
    PathName,
    Question,
    SubQuestion,
)
from hybrid_ir.roles import Reasoner, Retriever, StreamingReasoner
from hybrid_ir.settings import LoopSettings

RESERVE_SHARE = 0.2
"""The part of the deadline kept for the conclusion: it is one of the 3 T + 1 calls, and the longest."""
MAX_RESERVE_S = 15.0
"""However long the deadline, a conclusion that takes longer than this is not going to come."""

Stopped = Literal["rounds", "nothing missing", "deadline", "unreadable"]


def folded(text: str) -> str:
    """As ``LoopState.asked`` compares sub-questions."""
    return " ".join(text.casefold().split())


async def answer(
    question: Question,
    retriever: Retriever,
    reasoner: Reasoner,
    settings: LoopSettings,
    *,
    build_id: str,
    paths: Sequence[PathName] | None = None,
    clock: Callable[[], float] = time.monotonic,
) -> Answer:
    """The answer alone; see ``run``."""
    events = run(question, retriever, reasoner, settings, build_id=build_id, paths=paths, clock=clock)
    async with aclosing(events):
        async for event in events:
            if isinstance(event, Finished):
                return event.answer
    raise AssertionError("run() ended without Finished")


async def run(
    question: Question,
    retriever: Retriever,
    reasoner: Reasoner,
    settings: LoopSettings,
    *,
    build_id: str,
    paths: Sequence[PathName] | None = None,
    clock: Callable[[], float] = time.monotonic,
) -> AsyncGenerator[Event, None]:
    """Answer one question; the last event is ``Finished``.

    A sub-question asked before is not asked again.  Round 1 without sub-questions asks the
    question itself: nothing is answered from memory.  A later round without new ones stops
    the loop when ``stop_early``; otherwise the question itself is asked, if it was not yet,
    and then the loop stops as well, since repeating a query brings the same evidence.

    Where the model's replies of a later round cannot be read, the loop stops as ``unreadable`` and
    concludes from what it has; ``unread_replies`` counts all such replies.

    ``deadline_s`` holds for the whole question.  When only the reserve for the conclusion is
    left, running calls are cancelled, evidence that has arrived is kept, and the answer says
    ``stopped="deadline"``.  A conclusion that misses the deadline leaves the sub-answers'
    statements as the answer's, with ``enough_evidence`` false.

    ``settings.flow`` may change all this: see ``flows``.  An answer from memory is marked as such.

    Raises what the retriever or the reasoner raised when every sub-question of a round failed,
    and what ``decompose`` and ``conclude`` raise.  Closing the iterator, or cancelling the task
    that reads it, cancels all that runs.
    """
    start = clock()
    deadline = start + settings.deadline_s
    cutoff = deadline - min(RESERVE_SHARE * settings.deadline_s, MAX_RESERVE_S)
    reasoner, rounds = reasoner_of(settings, reasoner), rounds_of(settings)
    state = LoopState(question=question, basis=basis_of(settings))
    stopped: Stopped = "rounds"
    dropped = unread = 0

    for number in range(1, rounds + 1):
        try:
            async with asyncio.timeout(cutoff - clock()) as limit:
                wanted = await reasoner.decompose(state, settings.sub_questions)
        except TimeoutError:
            if not limit.expired():
                raise  # the reasoner's own: its backend does not answer
            stopped = "deadline"
            break
        for call in wanted.calls:
            yield Called(seconds=clock() - start, round=number, call=call)
            unread += not call.read
        sub_questions = _fresh(wanted, state, settings)
        if not sub_questions:
            stopped = "unreadable" if wanted.unreadable else "nothing missing"
            break
        yield RoundStarted(
            seconds=clock() - start, number=number, missing=wanted.missing, sub_questions=tuple(sub_questions)
        )

        work = RoundOfWork(state, number, sub_questions, retriever, reasoner, settings.top_k, paths)
        try:
            async with aclosing(work.events(start, cutoff, clock)) as events:
                async for event in events:
                    yield event
        finally:
            await work.cancel()
        dropped += work.dropped
        unread += work.unread
        done = work.result(wanted.missing)
        if done.sub_answers:
            state = state.model_copy(update={"rounds": (*state.rounds, done)})
            yield RoundFinished(seconds=clock() - start, round=done)
        if work.cut_off or (number < rounds and clock() >= cutoff):
            stopped = "deadline"
            break

    yield Concluding(seconds=clock() - start, stopped=stopped)
    conclusion: Conclusion | None = None
    async with aclosing(_concluding(reasoner, state)) as pieces:
        while conclusion is None:
            try:
                async with asyncio.timeout(deadline - clock()) as limit:
                    piece = await anext(pieces)
            except TimeoutError:
                if not limit.expired():
                    raise
                stopped = "deadline"
                found = tuple(s for round_ in state.rounds for sub in round_.sub_answers for s in sub.statements)
                conclusion = Conclusion(short="", statements=found, enough_evidence=False)
            else:
                if isinstance(piece, Conclusion):
                    conclusion = piece
                else:
                    yield Wrote(seconds=clock() - start, text=piece)
    for call in conclusion.calls:
        yield Called(seconds=clock() - start, round=len(state.rounds), call=call)
        unread += not call.read
    seconds = clock() - start
    final = _answer(state, conclusion, build_id, reasoner.name, stopped, dropped, seconds)
    yield Finished(seconds=seconds, answer=final.model_copy(update={"unread_replies": unread}))


async def _concluding(reasoner: Reasoner, state: LoopState) -> AsyncGenerator[str | Conclusion, None]:
    """Pieces where the reasoner has them, and the conclusion."""
    if isinstance(reasoner, StreamingReasoner):
        async with aclosing(reasoner.concluding(state)) as pieces:
            async for piece in pieces:
                yield piece
    else:
        yield await reasoner.conclude(state)


def _fresh(wanted: Decomposition, state: LoopState, settings: LoopSettings) -> list[SubQuestion]:
    """The sub-questions not asked before, at most as many as the settings allow."""
    asked = set(state.asked())
    fresh: list[SubQuestion] = []
    for sub_question in wanted.sub_questions:
        key = folded(sub_question.text)
        if key and key not in asked and len(fresh) < settings.sub_questions:
            asked.add(key)
            fresh.append(sub_question)
    if not fresh and (not state.rounds or not settings.stop_early) and folded(state.question.text) not in asked:
        fresh.append(SubQuestion(text=state.question.text, reason="the question itself"))
    return fresh


def _answer(
    state: LoopState,
    conclusion: Conclusion,
    build_id: str,
    reasoner: str,
    stopped: Stopped,
    dropped: int,
    seconds: float,
) -> Answer:
    """Check the conclusion against the evidence and the options."""
    evidence = state.evidence()
    statements, dropped_now = checked(conclusion.statements, evidence)
    options = state.question.options
    choice = conclusion.choice if conclusion.choice in options else None
    enough = conclusion.enough_evidence and bool(statements)
    from_memory = state.basis in ("memory", "memory_steps")
    # A choice stands even without support, marked as such; an open answer does not, but where memory is the method.
    short = conclusion.short if enough or choice is not None or from_memory else ""
    degraded = {
        path for round_ in state.rounds for sub_answer in round_.sub_answers for path in sub_answer.retrieval.degraded
    }
    return Answer(
        question=state.question,
        build_id=build_id,
        reasoner=reasoner,
        choice=choice,
        short=short,
        statements=statements,
        enough_evidence=enough,
        citations=cited_chunks(statements, evidence),
        dropped_citations=dropped + dropped_now,
        from_memory=from_memory,
        rounds=state.rounds,
        degraded=tuple(sorted(degraded)),
        stopped=stopped,
        seconds=seconds,
    )
