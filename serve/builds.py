"""What one replica has open of the builds it is asked for: the one it started with, and those that came after."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Generic, TypeVar

from hybrid_ir.opened import Index, open_index
from hybrid_ir.settings import Settings

T = TypeVar("T")


class Builds(Generic[T]):
    """A part of each build, opened once, when it is first asked for.

    Every call names its build, so no answer can mix two, whatever a replica has open.  A build
    that was not asked for during ``linger_s``, the time of the longest request, is let go when
    another is opened or asked for.  What two builds share (models with the same fingerprint) is
    loaded once.
    """

    def __init__(
        self,
        root: str,
        settings: Settings,
        build_id: str,
        make: Callable[[Index], T],
        linger_s: float,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Opens the first build at once; ``make`` opens and warms the part.  Raises what opening raises."""
        self._root, self._settings, self._make = root, settings, make
        self._linger_s, self._clock = linger_s, clock
        self._coming: dict[str, asyncio.Task[T]] = {}
        with ThreadPoolExecutor(1) as thread:  # Serve's event loop may run on this one, and a part may need its own
            index, part = thread.submit(self._made, build_id, None).result()
        self._open: dict[str, tuple[Index, T]] = {build_id: (index, part)}
        self._asked: dict[str, float] = {build_id: clock()}

    async def get(self, build_id: str) -> T:
        """The build's part.  Callers that come while it is opened wait for the same opening."""
        self._asked[build_id] = self._clock()
        self._let_go(build_id)
        if build_id in self._open:
            return self._open[build_id][1]
        if build_id not in self._coming:
            self._coming[build_id] = asyncio.create_task(self._load(build_id))
        # One caller that leaves does not end the opening for the others.
        return await asyncio.shield(self._coming[build_id])

    @property
    def held(self) -> tuple[str, ...]:
        return tuple(self._open)

    async def _load(self, build_id: str) -> T:
        try:
            _, (older, _) = next(reversed(self._open.items()))
            index, part = await asyncio.to_thread(self._made, build_id, older)
            self._open[build_id] = (index, part)
            self._asked[build_id] = self._clock()
            return part
        finally:
            del self._coming[build_id]

    def _made(self, build_id: str, older: Index | None) -> tuple[Index, T]:
        index = open_index(self._root, self._settings, build_id)
        if older is not None:
            index.share_models(older)
        return index, self._make(index)

    def _let_go(self, wanted: str) -> None:
        end = self._clock() - self._linger_s
        for build_id in [held for held in self._open if held != wanted and self._asked[held] < end]:
            if len(self._open) > 1:
                del self._open[build_id], self._asked[build_id]
