"""An end in good order: what is asked already is answered, what comes later is refused."""

from __future__ import annotations

import asyncio

LOOK_S = 0.05


class Drain:
    """The requests that a controller replica works on, all in one event loop."""

    def __init__(self) -> None:
        self.running = 0
        self.closed = False

    async def close(self) -> None:
        """Take no new request; return when those that run have their answers."""
        self.closed = True
        while self.running:
            await asyncio.sleep(LOOK_S)
