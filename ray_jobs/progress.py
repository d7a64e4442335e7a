"""Progress that a person can read: a bar on a terminal, a line now and then in a job's log."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from threading import Event, Thread
from typing import TypeVar

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

T = TypeVar("T")

SECONDS_BETWEEN_LINES = 15.0
SECONDS_BETWEEN_BEATS = 2.0


class Reporter:
    """Follows one stage after the other and keeps each stage's seconds."""

    def __init__(self, quiet: bool = False) -> None:
        self.seconds: dict[str, float] = {}
        self._quiet = quiet
        self._console = Console(file=sys.stderr)

    def say(self, text: str) -> None:
        if not self._quiet:
            self._console.print(text, highlight=False, soft_wrap=True)

    def follow(
        self, stage: str, items: Iterable[T], total: int, detail: Callable[[], str] | None = None
    ) -> Iterator[T]:
        """Pass items on and show how many of ``total`` have come; ``detail`` tells what happens in between."""
        start = time.monotonic()
        if self._quiet:
            yield from items
        elif self._console.is_terminal:
            yield from self._bar(stage, items, total, detail)
        else:
            yield from self._lines(stage, items, total, detail, start)
        self.seconds[stage] = round(time.monotonic() - start, 3)

    def _bar(self, stage: str, items: Iterable[T], total: int, detail: Callable[[], str] | None) -> Iterator[T]:
        columns = (
            TextColumn("  {task.description:<20}"),
            BarColumn(bar_width=24),
            MofNCompleteColumn(),
            TimeElapsedColumn(),
            TimeRemainingColumn(),
            TextColumn("{task.fields[detail]}"),
        )
        with Progress(*columns, console=self._console) as progress:
            task = progress.add_task(stage, total=total, detail="")

            def beat() -> None:
                if detail:
                    progress.update(task, detail=detail())

            with _beating(beat, SECONDS_BETWEEN_BEATS):
                for item in items:
                    yield item
                    progress.advance(task)
            progress.update(task, detail="")

    def _lines(
        self, stage: str, items: Iterable[T], total: int, detail: Callable[[], str] | None, start: float
    ) -> Iterator[T]:
        done = 0

        def beat() -> None:
            spent = time.monotonic() - start
            left = f", about {spent / done * (total - done):.0f} s left" if done else ""
            more = f" ({detail()})" if detail else ""
            self.say(f"  {stage:<20} {done}/{total} after {spent:.0f} s{left}{more}")

        with _beating(beat, SECONDS_BETWEEN_LINES):
            for item in items:
                yield item
                done += 1
        self.say(f"  {stage:<20} {done}/{total} in {time.monotonic() - start:.1f} s")


@contextmanager
def _beating(beat: Callable[[], None], seconds: float) -> Iterator[None]:
    """Call ``beat`` every so many seconds while the block runs."""
    over = Event()

    def run() -> None:
        while not over.wait(seconds):
            beat()

    thread = Thread(target=run, daemon=True)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()
