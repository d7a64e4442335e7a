"""A path that keeps failing is left out for a while: a question need not pay for it in every round."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Mapping, Sequence

from hybrid_ir.errors import BadInput, Conflict, NotFound, Unavailable
from hybrid_ir.records import PathName
from hybrid_ir.roles import PathRanking, Query, RetrievalPath
from serve.errors import Overloaded

FAILURES = 3
"""In a row."""
OPEN_S = 10.0
SLOW_S = 2.0
"""A call that is given up after so long counts as failed: the caller's patience ended, not its interest."""


class Circuit:
    """See :class:`hybrid_ir.roles.RetrievalPath`.

    After ``FAILURES`` failures in a row calls fail at once for ``OPEN_S`` seconds; then one is let
    through, and closes the circuit if it succeeds.  A path is left out only while another serves:
    where all fail, as on a machine that is busy, to be asked late is better than not to be asked.
    """

    def __init__(self, path: RetrievalPath, who: str, clock: Callable[[], float] = time.monotonic) -> None:
        self._path, self._who, self._clock = path, who, clock
        self._failures, self._closed_again, self._trying = 0, 0.0, False
        self._others: Sequence[Circuit] = ()

    @property
    def failing(self) -> bool:
        return self._failures >= FAILURES

    @property
    def open(self) -> bool:
        return self.failing and any(not other.failing for other in self._others)

    async def rank(self, query: Query, k: int) -> PathRanking:
        if self.open:
            left = self._closed_again - self._clock()
            if left > 0 or self._trying:
                again = f"it is tried again in {left:.0f} s" if left > 0 else "it is being tried again"
                raise Unavailable(f"The {self._who} failed {self._failures} times in a row and is left out; {again}.")
            self._trying = True
        start = self._clock()
        try:
            ranking = await self._path.rank(query, k)
        except (BadInput, NotFound, Conflict, Overloaded):
            raise  # the request's fault, or a queue that says so at once
        except asyncio.CancelledError:
            if self._clock() - start >= SLOW_S:
                self._failed()
            raise
        except Exception:
            self._failed()
            raise
        finally:
            self._trying = False
        self._failures = 0
        return ranking

    def beside(self, others: Sequence[Circuit]) -> None:
        """The circuits of the other paths."""
        self._others = others

    def _failed(self) -> None:
        self._failures += 1
        self._closed_again = self._clock() + OPEN_S


def circuits(paths: Mapping[PathName, RetrievalPath]) -> dict[PathName, Circuit]:
    """One around each path, each knowing of the others."""
    made = {name: Circuit(path, f"{name} scorer") for name, path in paths.items()}
    for name, circuit in made.items():
        circuit.beside([other for other_name, other in made.items() if other_name != name])
    return made
