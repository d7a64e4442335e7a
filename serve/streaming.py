"""Server-Sent Events: what happens while a question is answered, as it happens."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import AsyncGenerator, AsyncIterator
from typing import TypeVar

from starlette.responses import StreamingResponse

from hybrid_ir.errors import HybridIRError
from hybrid_ir.reasoning.events import Event
from serve import errors

BEAT_S = 15.0
"""A comment is sent when nothing happens for so long: proxies cut connections that are silent for a minute."""
BEAT = ": alive\n\n"
HEADERS = {"Cache-Control": "no-cache", "X-Accel-Buffering": "no"}

T = TypeVar("T")
log = logging.getLogger(__name__)


async def started(items: AsyncGenerator[T, None]) -> AsyncGenerator[T, None]:
    """The same items, the first of them fetched: what fails before it still has a status of its own."""
    try:
        first = await anext(items)
    except BaseException:
        await items.aclose()
        raise

    async def all_of_them() -> AsyncGenerator[T, None]:
        try:
            yield first
            async for item in items:
                yield item
        finally:
            await items.aclose()

    return all_of_them()


async def with_beats(items: AsyncGenerator[T, None], beat_s: float = BEAT_S) -> AsyncGenerator[T | None, None]:
    """The items, and None whenever nothing came for ``beat_s`` seconds; closing it cancels what runs."""
    coming: asyncio.Task[T] | None = None
    try:
        while True:
            coming = coming or asyncio.ensure_future(anext(items))
            done, _ = await asyncio.wait((coming,), timeout=beat_s)
            if not done:
                yield None
                continue
            task, coming = coming, None
            try:
                item = task.result()
            except StopAsyncIteration:
                return
            yield item
    finally:
        if coming is not None:
            coming.cancel()
            await asyncio.wait((coming,))
        await items.aclose()


def event_stream(events: AsyncGenerator[Event, None]) -> StreamingResponse:
    """Each event of the loop as ``event: <its kind>`` and its JSON; the last is ``finished``, or ``error``."""

    async def lines() -> AsyncIterator[str]:
        beating = with_beats(events)
        try:
            async for event in beating:
                yield BEAT if event is None else message(event.model_dump_json(), event.kind)
        except Exception as error:
            yield message(json.dumps(failure(error)), "error")
        finally:
            await beating.aclose()

    return StreamingResponse(lines(), media_type="text/event-stream", headers=HEADERS)


def message(data: str, kind: str | None = None) -> str:
    """One event; JSON holds no line break outside its escapes."""
    return (f"event: {kind}\n" if kind else "") + f"data: {data}\n\n"


def failure(error: Exception) -> dict[str, dict[str, str]]:
    """The body that the error would have had, were the status not sent."""
    if isinstance(error, HybridIRError):
        return errors.body(error.http_status, str(error))
    log.error("A stream broke off", exc_info=error)
    return errors.body(500, "The service failed on this request; its log says why.")
