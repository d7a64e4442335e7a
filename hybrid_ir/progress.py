"""Progress that a person can read: a bar on a terminal, a line now and then in a job's log."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from threading import Event, Thread
from typing import TypeVar

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

T = TypeVar("T")

SECONDS_BETWEEN_LINES = 15.0
SECONDS_BETWEEN_BEATS = 2.0


@dataclass(frozen=True)
class Tally:
    """What one finished piece of work came to."""

    rows: int
    errors: int = 0
    fresh: bool = True
    """Done by this run; False: an earlier run had done it, and it says nothing about the speed."""


@dataclass
class Pace:
    """How far a stage is, and what can be said of the rest."""

    total: int
    unit: str = ""
    """What the rows are: documents, chunks."""
    done: int = 0
    rows: int = 0
    errors: int = 0
    _fresh: int = field(default=0, init=False)
    _fresh_rows: int = field(default=0, init=False)

    def add(self, tally: Tally) -> None:
        self.done, self.rows, self.errors = self.done + 1, self.rows + tally.rows, self.errors + tally.errors
        if tally.fresh:
            self._fresh, self._fresh_rows = self._fresh + 1, self._fresh_rows + tally.rows

    def left(self, spent: float) -> float | None:
        """Seconds, as fast as it went so far; None where nothing tells."""
        return spent / self._fresh * (self.total - self.done) if self._fresh else None

    def facts(self, spent: float) -> list[str]:
        """``340 documents/s``, ``2 errors``, ``about 4 min left``, as far as they are known."""
        found = []
        if self.unit and self._fresh_rows and spent > 0:
            rate = self._fresh_rows / spent
            found.append(f"{rate:,.{0 if rate >= 10 else 1}f} {self.unit}/s")
        if self.errors:
            found.append(f"{self.errors:,} error{'' if self.errors == 1 else 's'}")
        left = self.left(spent)
        if left is not None and self.done < self.total:
            found.append(f"about {duration(left)} left")
        return found


def duration(seconds: float) -> str:
    """``45 s``, ``12 min``, ``3 h 20 min``."""
    if seconds < 99.5:
        return f"{seconds:.0f} s"
    minutes = round(seconds / 60)
    return f"{minutes} min" if minutes < 100 else f"{minutes // 60} h {minutes % 60} min"


class Reporter:
    """Follows one stage after the other and keeps each stage's seconds."""

    def __init__(
        self, quiet: bool = False, console: Console | None = None, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self.seconds: dict[str, float] = {}
        self._quiet = quiet
        self._console = console or Console(file=sys.stderr)
        self._clock = clock

    def say(self, text: str) -> None:
        if not self._quiet:
            self._console.print(text, highlight=False, soft_wrap=True)

    def follow(
        self,
        stage: str,
        items: Iterable[T],
        total: int,
        detail: Callable[[], str] | None = None,
        unit: str = "",
        count: Callable[[T], Tally] | None = None,
    ) -> Iterator[T]:
        """Pass items on and show how many of ``total`` have come.

        ``count`` says what an item came to, in ``unit``; ``detail`` tells what happens in between.
        """
        start, pace = self._clock(), Pace(total, unit)

        def counted() -> Iterator[T]:
            for item in items:
                pace.add(count(item) if count else Tally(1))
                yield item

        if self._quiet:
            yield from items
        elif self._console.is_terminal:
            yield from self._bar(stage, counted(), pace, detail, start)
        else:
            yield from self._lines(stage, counted(), pace, detail, start)
        self.seconds[stage] = round(self._clock() - start, 3)

    def _bar(
        self, stage: str, items: Iterator[T], pace: Pace, detail: Callable[[], str] | None, start: float
    ) -> Iterator[T]:
        columns = (
            TextColumn("  {task.description:<20}"),
            BarColumn(bar_width=24),
            MofNCompleteColumn(),
            TextColumn("{task.fields[said]}"),
        )
        with Progress(*columns, console=self._console) as progress:
            task = progress.add_task(stage, total=pace.total, said="")

            def show(more: Callable[[], str] | None = None) -> None:
                spent = self._clock() - start
                said = [duration(spent), *pace.facts(spent), *([more()] if more else [])]
                progress.update(task, completed=pace.done, said=", ".join(said))

            with _beating(lambda: show(detail), SECONDS_BETWEEN_BEATS):
                for item in items:
                    show()
                    yield item
            show()

    def _lines(
        self, stage: str, items: Iterator[T], pace: Pace, detail: Callable[[], str] | None, start: float
    ) -> Iterator[T]:
        def beat() -> None:
            spent = self._clock() - start
            more = f" ({detail()})" if detail else ""
            facts = ", ".join([f"{pace.done}/{pace.total} after {duration(spent)}", *pace.facts(spent)])
            self.say(f"  {stage:<20} {facts}{more}")

        with _beating(beat, SECONDS_BETWEEN_LINES):
            yield from items
        spent = self._clock() - start
        rows = [f"{pace.rows:,} {pace.unit}"] if pace.unit else []
        self.say(
            f"  {stage:<20} " + ", ".join([f"{pace.done}/{pace.total} in {spent:.1f} s", *rows, *pace.facts(spent)])
        )


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
