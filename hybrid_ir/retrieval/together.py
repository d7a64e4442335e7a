"""Queries that come at the same time share one call of the models."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Sequence
from typing import Generic, TypeVar, cast
from weakref import WeakKeyDictionary

Asked = TypeVar("Asked")
Found = TypeVar("Found")

AT_ONCE = max((os.cpu_count() or 1) // 2, 1)
"""Calls of one path at the same time, each on a thread; the sub-questions of a round are one."""


class Together(Generic[Asked, Found]):
    """Gathers what is asked in one turn of the event loop, or while all its threads are busy, into one call."""

    def __init__(self, call: Callable[[Sequence[Asked]], list[Found]], most: int = 16) -> None:
        """``call`` gives one result for each of up to ``most`` asked; it runs on a thread, several at a time."""
        self._call, self._most = call, most
        self._queues: WeakKeyDictionary[asyncio.AbstractEventLoop, _Queue[Asked, Found]] = WeakKeyDictionary()

    async def ask(self, asked: Asked) -> Found:
        """Raises what ``call`` raises for this one: a fault of one is not the fault of those it was asked with."""
        loop = asyncio.get_running_loop()
        queue = self._queues.setdefault(loop, _Queue())
        future: asyncio.Future[Found] = loop.create_future()
        queue.waiting.append((asked, future))
        if len(queue.serving) < AT_ONCE:
            queue.serving.add(loop.create_task(self._serve(queue)))
        return await future

    async def _serve(self, queue: _Queue[Asked, Found]) -> None:
        try:
            await asyncio.sleep(0)  # what was started with the first one is waiting by now
            while queue.waiting:
                await self._next(queue)
        finally:
            # In the same step in which nothing was waiting: who asks after it must find that nobody serves.
            queue.serving.discard(cast("asyncio.Task[None]", asyncio.current_task()))

    async def _next(self, queue: _Queue[Asked, Found]) -> None:
        some = [(asked, future) for asked, future in queue.waiting[: self._most] if not future.done()]
        del queue.waiting[: self._most]
        results = await asyncio.to_thread(self._results, [asked for asked, _ in some])
        for (_, future), result in zip(some, results, strict=True):
            if future.done():
                continue  # who asked has left
            if isinstance(result, Exception):
                future.set_exception(result)
            else:
                future.set_result(result)

    def _results(self, asked: Sequence[Asked]) -> list[Found | Exception]:
        if not asked:
            return []
        try:
            return [*self._call(asked)]
        except Exception as error:
            if len(asked) == 1:
                return [error]
        return [result for one in asked for result in self._results([one])]


class _Queue(Generic[Asked, Found]):
    """Of one event loop."""

    def __init__(self) -> None:
        self.waiting: list[tuple[Asked, asyncio.Future[Found]]] = []
        self.serving: set[asyncio.Task[None]] = set()
