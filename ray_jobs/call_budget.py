"""The calls to a language model that a whole job makes, counted in one place: for its cap and its progress."""

from __future__ import annotations

from typing import Any

import ray


@ray.remote(num_cpus=0)
class _Counter:
    def __init__(self, most: int | None) -> None:
        self._most, self._made = most, 0

    def take(self, wanted: int) -> int:
        granted = wanted if self._most is None else max(0, min(wanted, self._most - self._made))
        self._made += granted
        return granted

    def made(self) -> int:
        return self._made


class CallBudget:
    """See :class:`hybrid_ir.extraction.llm_calls.Budget`; travels to every worker and means the same counter there."""

    def __init__(self, most: int | None) -> None:
        self._counter: Any = _Counter.remote(most)  # type: ignore[attr-defined]

    async def take(self) -> bool:
        return bool(await self._counter.take.remote(1))

    def take_many(self, wanted: int) -> int:
        """Leave for up to so many calls."""
        return int(ray.get(self._counter.take.remote(wanted)))

    def made(self) -> int:
        return int(ray.get(self._counter.made.remote()))
