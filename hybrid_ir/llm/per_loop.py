"""Things that belong to one event loop: connections and semaphores cannot be used in another."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Generic, TypeVar

T = TypeVar("T")


class PerLoop(Generic[T]):
    """One for each running loop, made when it is first asked for; those of loops that ended are let go."""

    def __init__(self, make: Callable[[], T]) -> None:
        self._make = make
        self._held: dict[asyncio.AbstractEventLoop, T] = {}

    def get(self) -> T:
        loop = asyncio.get_running_loop()
        if loop not in self._held:
            # No weak keys: a connection refers to its loop, and would keep it.
            self._held = {other: held for other, held in self._held.items() if not other.is_closed()}
            self._held[loop] = self._make()
        return self._held[loop]

    def pop(self) -> T | None:
        return self._held.pop(asyncio.get_running_loop(), None)
