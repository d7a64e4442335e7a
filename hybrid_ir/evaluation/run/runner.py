"""Asks what is still open of a run, so many questions at a time, and writes each row down as it comes."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass

from hybrid_ir.errors import Failed, HybridIRError, Unavailable
from hybrid_ir.evaluation.intervals import wilson
from hybrid_ir.evaluation.run.grid import Planned
from hybrid_ir.evaluation.run.journal import Journal
from hybrid_ir.evaluation.run.rows import Row, error_row
from hybrid_ir.evaluation.run.run import Run
from hybrid_ir.evaluation.sets.questions import GoldQuestion
from hybrid_ir.progress import Reporter, Tally

Ask = Callable[[Planned, GoldQuestion], Row]

TRIES = 4
"""Of a question whose language model or service does not answer: its own client has tried several times before."""
FIRST_WAIT_S = 1.0
"""Before the second try; each later one waits twice as long."""
IN_A_ROW = 20
"""So many questions one after the other that found nobody: then the run stops, for all others would too."""
AGAIN = "Run the same command again to go on: finished questions are not asked again."


@dataclass(frozen=True)
class Budget:
    """What a run may cost; None: no cap.  What already runs is finished, so it may be passed by that."""

    calls: int | None = None
    tokens: int | None = None
    """Both of the whole run, all its sessions together."""
    seconds: float | None = None
    """Of this session."""

    def spent(self, calls: int, tokens: int, seconds: float) -> str:
        """A sentence where a cap is reached; else empty."""
        for used, cap, name, option in (
            (calls, self.calls, "calls", "--max-calls"),
            (tokens, self.tokens, "tokens", "--max-tokens"),
            (seconds, self.seconds, "seconds", "--max-seconds"),
        ):
            if cap is not None and used >= cap:
                return f"The budget of {cap:,.0f} {name} is spent ({used:,.0f}): raise {option}. {AGAIN}"
        return ""


def go(
    run: Run,
    journal: Journal,
    ask: Ask,
    concurrency: int,
    reporter: Reporter,
    budget: Budget | None = None,
    *,
    strict: bool = False,
    retry_errors: bool = False,
) -> str:
    """Ask all that has no row yet.  Gives the sentence of what stopped it early; empty: all is asked.

    Raises with ``strict`` what a question raised.
    """
    done = {key for key, row in journal.rows.items() if not (retry_errors and row.error)}
    open_ = [(one, question) for one, question in run.todo() if (one.cell.key, question.id) not in done]
    state = _State(journal, budget or Budget())
    if len(open_) < run.total():
        reporter.say(f"  {run.total() - len(open_):,} of {run.total():,} questions were asked before.")
    rows = _asked(iter(open_), ask, concurrency, state, strict)
    for _ in reporter.follow("ask", rows, len(open_), state.detail, "questions", lambda row: Tally(1, bool(row.error))):
        pass
    return state.stopped


class _State:
    """What has come so far."""

    def __init__(self, journal: Journal, budget: Budget) -> None:
        self.journal, self.budget, self.start, self.stopped = journal, budget, time.monotonic(), ""
        self._calls = sum(row.calls for row in journal.rows.values())
        self._tokens = sum(row.tokens for row in journal.rows.values())
        self._right = self._asked = self._in_a_row = 0
        self._check()

    def add(self, rows: Sequence[Row]) -> None:
        self.journal.add(*rows)
        for row in rows:
            self._count(row)
        self._check()

    def _count(self, row: Row) -> None:
        self._calls, self._tokens = self._calls + row.calls, self._tokens + row.tokens
        self._right, self._asked = self._right + row.strict, self._asked + row.judged
        self._in_a_row = self._in_a_row + 1 if row.kind == Unavailable.__name__ else 0
        if self._in_a_row >= IN_A_ROW:
            self.stopped = (
                f"{IN_A_ROW} questions in a row got no answer: {row.error} With --retry-errors they are asked again."
            )

    def _check(self) -> None:
        spent = self.budget.spent(self._calls, self._tokens, time.monotonic() - self.start)
        self.stopped = self.stopped or spent

    def detail(self) -> str:
        """The running accuracy over all cells, and its interval."""
        if not self._asked:
            return "none with a known answer yet"
        share = wilson(self._right, self._asked)
        more = f", {self._calls:,} calls, {self._tokens:,} tokens" if self._calls else ""
        return f"right {share.mean:.3f} [{share.low:.3f}, {share.high:.3f}]{more}"


def _asked(
    open_: Iterator[tuple[Planned, GoldQuestion]], ask: Ask, concurrency: int, state: _State, strict: bool
) -> Iterator[Row]:
    """The rows as they come, each written down before it is given on."""
    running: set[Future[Row]] = set()
    executor = ThreadPoolExecutor(concurrency, thread_name_prefix="ask")
    # As many again stand in line, so that none of those who ask waits for a disk.
    most = 2 * concurrency
    try:
        while True:
            while len(running) < most and not state.stopped and (item := next(open_, None)) is not None:
                running.add(executor.submit(_one, ask, *item, strict))
            if state.stopped:
                running = {future for future in running if not future.cancel()}
            if not running:
                return
            finished, running = wait(running, return_when=FIRST_COMPLETED)
            failures = [error for future in finished if (error := future.exception()) is not None]
            rows = [future.result() for future in finished if future.exception() is None]
            state.add(rows)
            yield from rows
            if failures:
                raise failures[0]
    finally:
        executor.shutdown(wait=False, cancel_futures=True)


def _one(ask: Ask, planned: Planned, question: GoldQuestion, strict: bool) -> Row:
    """A row, whatever happens; but Failed, which is of the run and not of the question, and with ``strict``, raises."""
    start, pause = time.monotonic(), FIRST_WAIT_S
    for number in range(1, TRIES + 1):
        try:
            row = ask(planned, question)
        except Failed:
            raise
        except Exception as error:
            if isinstance(error, Unavailable) and number < TRIES:
                time.sleep(pause * random.uniform(0.5, 1.5))  # noqa: S311 -- so that not all come back at once
                pause *= 2
                continue
            if strict and isinstance(error, HybridIRError):
                raise type(error)(f"{planned.cell.key}, question {question.id}: {error}") from error
            return error_row(planned.cell, question, error, time.monotonic() - start, number)
        return row.model_copy(update={"tries": number}) if number > 1 else row
    raise AssertionError("a try either returns or raises")
