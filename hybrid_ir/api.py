"""Questions to one index from Python: the same paths, fusion and loop as the service, without Ray."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Coroutine, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import cached_property
from pathlib import Path
from typing import Any, TypeVar

from hybrid_ir.opened import Index
from hybrid_ir.reasoning import loop
from hybrid_ir.reasoning.events import Event, Finished
from hybrid_ir.reasoning.llm_reasoner import LLMReasoner
from hybrid_ir.reasoning.prompt_files import load_prompts
from hybrid_ir.reasoning.question import check_question
from hybrid_ir.reasoning.replay import Replayed, replay
from hybrid_ir.reasoning.trace import head_of, read_trace, written
from hybrid_ir.records import Answer, Chunk, Filter, PathName, Question, Retrieval
from hybrid_ir.retrieval import explanation
from hybrid_ir.retrieval.comparison import Comparison, compare
from hybrid_ir.retrieval.explanation import Explanation
from hybrid_ir.retrieval.filtered import FilteredRetriever
from hybrid_ir.retrieval.retriever import FusedRetriever
from hybrid_ir.roles import Query

T = TypeVar("T")


class HybridIR:
    """An open index; made by :func:`hybrid_ir.open`."""

    def __init__(self, index: Index) -> None:
        self.index = index

    @cached_property
    def retriever(self) -> FusedRetriever:
        index, rerank = self.index, self.index.settings.rerank
        top_n = rerank.top_n if rerank else 0
        return FusedRetriever(index.paths, index.chunks, index.settings.fusion, index.reranker, top_n)

    def retrieve(
        self,
        query: str,
        k: int = 10,
        paths: Sequence[PathName] | None = None,
        entities: Sequence[str] = (),
        filter: Filter | None = None,
    ) -> Retrieval:
        """The k best chunks for one query.  ``entities`` saves looking for them in the text.

        ``filter``: which chunks may come, by source, year or document.
        """
        return _run(self.retriever.retrieve(Query(text=query, entities=tuple(entities), filter=filter), k, paths))

    def compare(
        self,
        query: str,
        k: int = 10,
        paths: Sequence[PathName] | None = None,
        entities: Sequence[str] = (),
        explain: str | None = None,
        filter: Filter | None = None,
    ) -> tuple[Comparison, Explanation | None]:
        """The paths side by side, those not fused included; ``explain``: a chunk id, to say what brought that chunk."""
        asked = Query(text=query, entities=tuple(entities), filter=filter)

        async def run() -> tuple[Comparison, Explanation | None]:
            found, ranked = await compare(self.retriever, self.index.chunks, asked, k, paths)
            if explain is None:
                return found, None
            return found, await asyncio.to_thread(explanation.explain, self.index, asked, explain, found, ranked)

        return _run(run())

    def ask(
        self,
        question: str,
        options: Mapping[str, str] | None = None,
        *,
        rounds: int | None = None,
        sub_questions: int | None = None,
        top_k: int | None = None,
        deadline_s: float | None = None,
        paths: Sequence[PathName] | None = None,
        filter: Filter | None = None,
        on_event: Callable[[Event], None] | None = None,
        trace: str | Path | None = None,
    ) -> Answer:
        """Answer a question; ``options`` maps letters to texts.  Settings given here hold for this call alone.

        ``filter``: which chunks may be evidence.  ``on_event`` is called with each event of the loop as it happens.
        ``trace``: a file that the events are written to; with texts where the setting ``loop.trace_texts`` says so.
        """
        asked = Question(text=question, options=dict(options or {}))
        check_question(asked, self.index.settings.serve.max_question_chars)
        changes = {"rounds": rounds, "sub_questions": sub_questions, "top_k": top_k, "deadline_s": deadline_s}
        settings = self.index.settings.loop.changed(**changes)
        retriever = FilteredRetriever(self.retriever, filter) if filter else self.retriever
        reasoner, build_id = self.index.reasoner, self.index.build_id
        events = loop.run(asked, retriever, reasoner, settings, build_id=build_id, paths=paths)
        if trace is None:
            return _run(_last(events, on_event))
        setup = reasoner.setup if isinstance(reasoner, LLMReasoner) else None
        named = None if paths is None else tuple(paths)
        head = head_of(asked, build_id, reasoner.name, settings, setup, named, filter)
        with written(head, trace) as writer:

            def both(event: Event) -> None:
                writer.add(event)
                if on_event is not None:
                    on_event(event)

            return _run(_last(events, both))

    def replay(
        self, trace: str | Path, question: str | None = None, options: Mapping[str, str] | None = None
    ) -> Replayed:
        """Run a trace again on this index's chunks; see :func:`hybrid_ir.reasoning.replay.replay`."""
        settings = self.index.settings.reasoner
        prompts = load_prompts(settings.prompts if settings.kind == "llm" else None)
        asked = None if question is None else Question(text=question, options=dict(options or {}))
        read = read_trace(trace)
        reasoner = self.index.reasoner if read.head.llm is None else None
        return _run(replay(read, prompts=prompts, reasoner=reasoner, chunk=self.index.chunks.by_id, question=asked))

    def chunk(self, chunk_id: str) -> Chunk:
        """One chunk by its id."""
        return self.index.chunks.by_id(chunk_id)


async def _last(events: AsyncGenerator[Event, None], on_event: Callable[[Event], None] | None) -> Answer:
    async for event in events:
        if on_event is not None:
            on_event(event)
        if isinstance(event, Finished):
            return event.answer
    raise AssertionError("the loop ended without an answer")


def _run(work: Coroutine[Any, Any, T]) -> T:
    """Run to the end on a thread of its own: a notebook already has a running event loop on this one.

    Ctrl-C reaches this thread alone, so it is passed on: the work is cancelled, and its calls of a model with it.
    """
    loop = asyncio.new_event_loop()
    task: asyncio.Task[T] | None = None

    async def run() -> T:
        nonlocal task
        task = asyncio.current_task()
        return await work

    def cancel() -> None:
        if task is not None:
            task.cancel()

    def to_the_end() -> T:
        with asyncio.Runner(loop_factory=lambda: loop) as runner:
            return runner.run(run())

    with ThreadPoolExecutor(1) as executor:
        future = executor.submit(to_the_end)
        try:
            return future.result()
        except KeyboardInterrupt:
            with suppress(RuntimeError):  # it has ended meanwhile
                loop.call_soon_threadsafe(cancel)
            raise
