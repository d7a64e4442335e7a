"""What the service does for a request, whatever carries its parts: handles, or objects of this process."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Collection, Mapping, Sequence
from contextlib import aclosing
from typing import Any

from hybrid_ir.errors import BadInput, HybridIRError, Unavailable
from hybrid_ir.index.chunk_store import ChunkStore
from hybrid_ir.index.manifest import Manifest
from hybrid_ir.reasoning import loop
from hybrid_ir.reasoning.events import Event, Finished
from hybrid_ir.reasoning.question import check_question
from hybrid_ir.records import Answer, Chunk, PathName, Question, Retrieval
from hybrid_ir.retrieval.retriever import FusedRetriever
from hybrid_ir.roles import Query, Reasoner, Reranker, RetrievalPath
from hybrid_ir.settings import Settings
from serve.errors import TimedOut
from serve.metrics import Metrics
from serve.schemas import AnswerRequest, BuildInfo, Refused, RetrieveRequest
from serve.tracing import Tracing

READY_TIMEOUT_S = 5.0
OPEN_TIMEOUT_S = 1800.0
"""For a build's files to come from an object store and be opened."""
MAX_NAME_CHARS = 1000
"""The longest entity name in a request."""

QUESTIONS_AT_A_TIME = 4
"""Of one batch; others want answers too."""

Check = Callable[[], Awaitable[None]]
"""Returns when a part answers for this build; raises otherwise."""


class Service:
    """One build, its paths and its reasoner."""

    def __init__(
        self,
        manifest: Manifest,
        settings: Settings,
        chunks: ChunkStore,
        paths: Mapping[PathName, RetrievalPath],
        reasoner: Reasoner,
        checks: Mapping[str, Check],
        reranker: Reranker | None = None,
        metrics: Metrics | None = None,
        resting: Collection[str] = (),
        tracing: Tracing | None = None,
    ) -> None:
        """``checks``: by the name of the part; those of ``resting`` are not asked whether they are ready."""
        self._metrics, self._resting, self._tracing = metrics, resting, tracing
        self.manifest, self.settings = manifest, settings
        self._chunks, self._reasoner, self._checks = chunks, reasoner, checks
        top_n = settings.rerank.top_n if settings.rerank else 0
        self._retriever = FusedRetriever(paths, chunks, settings.fusion, reranker, top_n)

    def events(self, request: AnswerRequest) -> AsyncGenerator[Event, None]:
        """The loop's events; ends by the deadline with what it has.  A request that cannot be asked raises here."""
        question = Question(text=request.question, options=request.options)
        check_question(question, self.settings.serve.max_question_chars)
        paths = self._paths(request.paths)
        settings = self.settings.loop.changed(
            rounds=request.rounds,
            sub_questions=request.sub_questions,
            top_k=request.top_k,
            deadline_s=request.deadline_s,
        )
        # Where a replica may have to start first, a path has the whole of its round's time.
        share = 1 if self.settings.serve.scales_to_zero else 1 / (2 * settings.rounds)
        retriever = PatientRetriever(self._retriever, settings.deadline_s * share)
        return self._counted(
            loop.run(question, retriever, self._reasoner, settings, build_id=self.manifest.build_id, paths=paths)
        )

    async def _counted(self, events: AsyncGenerator[Event, None]) -> AsyncGenerator[Event, None]:
        watching = [whole.loop() for whole in (self._metrics, self._tracing) if whole]
        try:
            async with aclosing(events):
                async for event in events:
                    for one in watching:
                        one.see(event)
                    yield event
        finally:
            for one in watching:
                one.close()

    async def answer(self, request: AnswerRequest) -> Answer:
        """The last of :meth:`events`."""
        async with aclosing(self.events(request)) as events:
            async for event in events:
                if isinstance(event, Finished):
                    return event.answer
        raise AssertionError("the loop ended without an answer")

    async def answers(self, requests: Sequence[AnswerRequest]) -> list[Answer | HybridIRError]:
        """Several questions, a few at a time; one that fails costs itself alone."""
        turn = asyncio.Semaphore(QUESTIONS_AT_A_TIME)

        async def one(request: AnswerRequest) -> Answer | HybridIRError:
            async with turn:
                try:
                    return await self.answer(request)
                except HybridIRError as error:
                    return error

        return await asyncio.gather(*map(one, requests))

    async def retrieve(self, request: RetrieveRequest) -> Retrieval:
        limit = self.settings.serve.max_question_chars
        if not request.query.strip():
            raise BadInput("query is empty: write what to look for.")
        if len(request.query) > limit:
            raise BadInput(f"query is too long: {len(request.query)} characters, the limit is {limit}; shorten it.")
        for position, name in enumerate(request.entities):
            if not name.strip() or len(name) > MAX_NAME_CHARS:
                raise BadInput(f"entities.{position}: a name has 1 to {MAX_NAME_CHARS} characters.")
        chosen = request.filter.record() if request.filter else None
        query = Query(text=request.query, entities=tuple(request.entities), filter=chosen)
        retriever = PatientRetriever(self._retriever, self.settings.loop.deadline_s)
        found = await retriever.retrieve(query, request.k or self.settings.loop.top_k, self._paths(request.paths))
        if self._metrics:
            self._metrics.retrieval(found)
        if self._tracing:
            self._tracing.retrieval(found)
        return found

    async def chunk(self, chunk_id: str) -> Chunk:
        return await asyncio.to_thread(self._chunks.by_id, chunk_id)

    async def ready(self) -> None:
        """Raise :class:`Unavailable`, naming the parts that do not answer for this build.

        One that may rest without a replica is not asked: a probe every few seconds would never let it.
        """
        asked = {name: check for name, check in self._checks.items() if name not in self._resting}
        results = await asyncio.gather(*(self._failure(name, check) for name, check in asked.items()))
        failures = [failure for failure in results if failure]
        if failures:
            raise Unavailable(f"Not ready: {' '.join(failures)}")

    async def warm(self, replicas: int) -> None:
        """Return when the parts have this build open, on all their replicas: each is asked by several calls at once.

        A call waits while its replica opens the build, and a waiting replica is passed over for one that
        does not: so they reach all.  One that they miss opens it with its first request, which waits for that.
        """
        async with asyncio.timeout(OPEN_TIMEOUT_S):
            await asyncio.gather(*(check() for check in self._checks.values() for _ in range(2 * replicas)))

    def build(self, refused: Refused | None = None) -> BuildInfo:
        # Where a model is reached, and by which key and files, is not for every client's eyes.
        private: Any = {"reasoner": {"prompts": True, "llm": {"base_url", "api_key_env", "extra_body"}}}
        shown = {"linker", "graph_path", "sparse_path", "fusion", "rerank", "reasoner", "loop"}
        return BuildInfo(
            build_id=self.manifest.build_id,
            counts=self.manifest.counts,
            fingerprints=self.manifest.fingerprints,
            paths=list(self._retriever.paths),
            settings=self.settings.model_dump(mode="json", include=shown, exclude=private),
            refused=refused,
        )

    def _paths(self, named: Sequence[PathName] | None) -> list[PathName] | None:
        if named is None:
            return None
        unknown = [name[:50] for name in named if name not in self._retriever.paths]
        if unknown or not named:
            what = f"unknown path {', '.join(unknown)}" if unknown else "no path is named"
            raise BadInput(f"paths: {what}; this service has {' and '.join(self._retriever.paths)}.")
        return list(dict.fromkeys(named))

    @staticmethod
    async def _failure(name: str, check: Check) -> str:
        try:
            async with asyncio.timeout(READY_TIMEOUT_S):
                await check()
        except TimeoutError:
            return f"The {name} did not answer within {READY_TIMEOUT_S:g} s."
        except HybridIRError as error:
            return str(error)
        return ""


class PatientRetriever:
    """A retriever with a limit of its own beside the caller's.

    A path whose replicas are gone is waited for, as they may come back.  Without a limit below
    the round's, one such path would use up the whole question; with half a round's share, a
    path that is down in every round costs half of the deadline and the answer says ``degraded``.
    """

    def __init__(self, retriever: FusedRetriever, limit_s: float) -> None:
        self._retriever, self._limit_s = retriever, limit_s

    async def retrieve(
        self, query: Query, k: int, paths: Sequence[PathName] | None = None, timeout_s: float | None = None
    ) -> Retrieval:
        limit = self._limit_s if timeout_s is None else min(self._limit_s, timeout_s)
        try:
            return await self._retriever.retrieve(query, k, paths, limit)
        except TimeoutError as error:
            raise _timed_out(limit) from error
        except RuntimeError as error:
            if isinstance(error.__cause__, TimeoutError):
                raise _timed_out(limit) from error
            raise


def _timed_out(limit_s: float) -> TimedOut:
    return TimedOut(f"No retrieval path answered within {limit_s:.3g} s; try again, or give a longer deadline_s.")
