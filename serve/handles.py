"""The library's online roles, played by deployments: each method is one call through a handle."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from typing import Any, cast

from ray.exceptions import RayActorError, TaskCancelledError, WorkerCrashedError
from ray.serve.exceptions import BackPressureError, DeploymentUnavailableError, ReplicaUnavailableError
from ray.serve.handle import DeploymentHandle

from hybrid_ir.errors import HybridIRError, Unavailable
from hybrid_ir.records import Chunk, Conclusion, Decomposition, Findings, LoopState, Retrieval, SubQuestion
from hybrid_ir.roles import PathRanking, Query
from serve.errors import Overloaded, original

_GONE = (RayActorError, WorkerCrashedError, DeploymentUnavailableError, ReplicaUnavailableError)


async def call(handle: DeploymentHandle[Any], method: str, *arguments: Any, who: str) -> Any:
    """One call; a caller that leaves, or whose time is over, cancels it on the replica too.

    Calls only read, so one whose replica died is made once more, on another replica.  Time is
    the caller's to limit: the question's deadline cancels from above.
    """
    gone: BaseException | None = None
    for _ in range(2):
        response = getattr(handle, method).remote(*arguments)
        try:
            return await response
        except (asyncio.CancelledError, TaskCancelledError) as error:
            response.cancel()
            if _cancelled():
                raise asyncio.CancelledError from None
            gone = error  # Serve says so too when the replica, not the caller, gave up
        except BackPressureError as error:
            raise Overloaded(f"The {who} has more requests than it can queue; try again in a moment.") from error
        except _GONE as error:
            gone = error
        except Exception as error:
            inner = original(error)
            if isinstance(inner, HybridIRError):
                raise inner from None
            raise
    raise Unavailable(f"The {who} does not answer; its replica died or was stopped.") from gone


async def call_stream(
    handle: DeploymentHandle[Any], method: str, *arguments: Any, who: str
) -> AsyncGenerator[Any, None]:
    """As :func:`call`, item by item, once; closing it cancels the call on the replica."""
    response = getattr(handle.options(stream=True), method).remote(*arguments)
    ended = False
    try:
        async for item in response:
            yield item
        ended = True
    except BackPressureError as error:
        raise Overloaded(f"The {who} has more requests than it can queue; try again in a moment.") from error
    except _GONE as error:
        raise Unavailable(f"The {who} broke off; its replica died or was stopped.") from error
    except (asyncio.CancelledError, TaskCancelledError):
        if _cancelled():
            raise asyncio.CancelledError from None
        raise Unavailable(f"The {who} gave up half-way.") from None
    except Exception as error:
        inner = original(error)
        if isinstance(inner, HybridIRError):
            raise inner from None
        raise
    finally:
        if not ended:
            response.cancel()


def _cancelled() -> bool:
    """Whether the running task itself has been cancelled."""
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0


class HandlePath:
    """See :class:`hybrid_ir.roles.RetrievalPath`; pinned to one build."""

    def __init__(self, handle: DeploymentHandle[Any], build_id: str, who: str) -> None:
        self._handle, self._build_id, self._who = handle, build_id, who

    async def rank(self, query: Query, k: int) -> PathRanking:
        return cast(PathRanking, await call(self._handle, "rank", self._build_id, query, k, who=self._who))

    async def ready(self) -> None:
        await call(self._handle, "ready", self._build_id, who=self._who)


class HandleReranker:
    """See :class:`hybrid_ir.roles.Reranker`; pinned to one build."""

    def __init__(self, handle: DeploymentHandle[Any], build_id: str) -> None:
        self._handle, self._build_id = handle, build_id

    async def rerank(self, query: str, chunks: Sequence[Chunk]) -> tuple[float, ...]:
        found = await call(self._handle, "rerank", self._build_id, query, list(chunks), who="reranker")
        return cast(tuple[float, ...], found)

    async def ready(self) -> None:
        await call(self._handle, "ready", self._build_id, who="reranker")


class HandleReasoner:
    """See :class:`hybrid_ir.roles.Reasoner`; pinned to one build."""

    def __init__(self, handle: DeploymentHandle[Any], build_id: str) -> None:
        self._handle, self._build_id = handle, build_id
        self._name = "unknown"

    @property
    def name(self) -> str:
        """``unknown`` until the reasoner has answered a first call: it says its name itself."""
        return self._name

    async def decompose(self, state: LoopState, limit: int) -> Decomposition:
        return cast(Decomposition, await self._ask("decompose", state, limit))

    async def answer(self, state: LoopState, sub_question: SubQuestion, retrieval: Retrieval) -> Findings:
        return cast(Findings, await self._ask("answer", state, sub_question, retrieval))

    async def conclude(self, state: LoopState) -> Conclusion:
        return cast(Conclusion, await self._ask("conclude", state))

    async def concluding(self, state: LoopState) -> AsyncGenerator[str | Conclusion, None]:
        """As :class:`hybrid_ir.roles.StreamingReasoner`.  A stream that breaks is concluded anew, whole."""
        if self._name == "unknown":
            await self.ready()
        if self._name != "extractive":  # it writes nothing piece by piece
            try:
                stream = call_stream(self._handle, "concluding", self._build_id, state, who="reasoner")
                async with aclosing(stream) as pieces:
                    async for piece in pieces:
                        yield piece
                return
            except Unavailable:
                pass
        yield await self.conclude(state)

    async def ready(self) -> None:
        self._name = await call(self._handle, "ready", self._build_id, who="reasoner")

    async def _ask(self, method: str, *arguments: Any) -> Any:
        if self._name == "unknown":
            await self.ready()
        return await call(self._handle, method, self._build_id, *arguments, who="reasoner")
