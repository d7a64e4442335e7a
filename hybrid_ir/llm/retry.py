"""Try again what may go better the next time, each time later than before."""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Awaitable, Callable
from email.utils import parsedate_to_datetime
from typing import TypeVar

from hybrid_ir.errors import Unavailable

FIRST_WAIT_S = 0.5
LONGEST_WAIT_S = 30.0
LONGEST_RETRY_AFTER_S = 120.0
"""Who asks to be left alone for longer has, for a question that waits, no answer."""

T = TypeVar("T")


class Failure(Exception):
    """One try failed in a way in which the next need not; ``wait_s``: what the other side asked for."""

    def __init__(self, reason: str, wait_s: float | None = None) -> None:
        super().__init__(reason)
        self.reason, self.wait_s = reason, wait_s


async def retried(
    once: Callable[[], Awaitable[T]], retries: int, timeout_s: float, who: str, hint: str
) -> tuple[T, int]:
    """The result of the first try that succeeds, and how many it took.

    Only a :class:`Failure` and a try of more than ``timeout_s`` are tried again.  Raises Unavailable
    with the last reason; ``who`` begins its sentence, ``hint`` says what to do.
    """
    start = time.monotonic()
    number = 0
    while True:
        number += 1
        try:
            async with asyncio.timeout(timeout_s):
                return await once(), number
        except TimeoutError:
            failed = Failure(f"no answer within {timeout_s:g} s")
        except Failure as failure:
            failed = failure
        asked = failed.wait_s or 0.0
        if number > retries or asked > LONGEST_RETRY_AFTER_S:
            tries = "1 try" if number == 1 else f"{number} tries"
            raise Unavailable(
                f"{who} does not answer: {failed.reason} ({tries} in {time.monotonic() - start:.1f} s). {hint}"
            ) from failed
        await asyncio.sleep(max(asked, wait_s(number)))


def wait_s(number: int) -> float:
    """After the try of this number (1, 2, …): doubled each time, and jittered, or all clients would come at once."""
    return min(LONGEST_WAIT_S, FIRST_WAIT_S * 2.0 ** (number - 1)) * random.uniform(0.75, 1.25)  # noqa: S311


def retry_after_s(header: str | None) -> float | None:
    """Of an HTTP ``Retry-After``: seconds, or a date; None where it is neither."""
    if header is None:
        return None
    try:
        return max(0.0, float(header))
    except ValueError:
        pass
    try:
        return max(0.0, parsedate_to_datetime(header).timestamp() - time.time())
    except (ValueError, TypeError):
        return None
