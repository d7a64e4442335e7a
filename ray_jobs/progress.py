"""Progress that a person can read: bars on a terminal, a line now and then in a job's log."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterable, Iterator
from typing import TypeVar

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

T = TypeVar("T")

SECONDS_BETWEEN_LINES = 10.0


class Reporter:
    """Follows one stage after the other and keeps each stage's seconds."""

    def __init__(self, quiet: bool = False) -> None:
        self.seconds: dict[str, float] = {}
        self._quiet = quiet
        self._console = Console(file=sys.stderr)

    def say(self, text: str) -> None:
        if not self._quiet:
            self._console.print(text, highlight=False, soft_wrap=True)

    def follow(self, stage: str, items: Iterable[T], total: int) -> Iterator[T]:
        """Pass items on and show how many of ``total`` have come."""
        start = time.monotonic()
        if not self._quiet and self._console.is_terminal:
            columns = (
                TextColumn("  {task.description:<22}"),
                BarColumn(),
                MofNCompleteColumn(),
                TimeElapsedColumn(),
                TimeRemainingColumn(),
            )
            with Progress(*columns, console=self._console) as progress:
                yield from progress.track(items, total=total, description=stage)
        else:
            yield from self._lines(stage, items, total, start)
        self.seconds[stage] = round(time.monotonic() - start, 3)

    def _lines(self, stage: str, items: Iterable[T], total: int, start: float) -> Iterator[T]:
        said, done = start, 0
        for item in items:
            yield item
            done += 1
            now = time.monotonic()
            if now - said >= SECONDS_BETWEEN_LINES and done < total:
                left = (now - start) / done * (total - done)
                self.say(f"  {stage:<22} {done}/{total}, about {left:.0f} s left")
                said = now
        self.say(f"  {stage:<22} {done}/{total} in {time.monotonic() - start:.1f} s")
