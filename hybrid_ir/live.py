"""What the loop does, as lines on a terminal while it does it."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from textwrap import shorten

from rich.console import Console

from hybrid_ir.reasoning.events import (
    Called,
    Concluding,
    Event,
    Failed,
    Finished,
    Retrieved,
    RoundFinished,
    RoundStarted,
    SubAnswered,
    Wrote,
)

WIDTH = 100


def follow(console: Console | None = None) -> Callable[[Event], None] | None:
    """Prints each event to the standard error; None where that is no terminal."""
    shown = console or Console(file=sys.stderr)
    if not shown.is_terminal:
        return None

    def show(event: Event) -> None:
        if isinstance(event, Wrote):
            text = "".join(c if c.isprintable() or c == "\n" else " " for c in event.text)
            shown.print(text, end="", markup=False, highlight=False, soft_wrap=True, style="dim")
        for line in lines(event):
            shown.print(line, markup=False, highlight=False, soft_wrap=True, style="dim")

    return show


def lines(event: Event) -> Iterator[str]:
    """An event in a line or a few; none for what another one says better."""
    at = f"{event.seconds:6.1f} s  "
    match event:
        case RoundStarted():
            missing = f", missing: {event.missing}" if event.missing else ""
            yield at + _plain(f"round {event.number}{missing}")
            for number, asked in enumerate(event.sub_questions, start=1):
                yield " " * len(at) + _plain(f"{number}. {asked.text}")
        case Retrieved():
            titles = dict.fromkeys(item.chunk.title or item.chunk.id for item in event.retrieval.evidence)
            degraded = f" (without {', '.join(event.retrieval.degraded)})" if event.retrieval.degraded else ""
            found = ", ".join(titles) or "nothing"
            yield at + _plain(f"{event.round}.{event.index + 1} found{degraded}: {found}")
        case SubAnswered():
            said = " ".join(statement.text for statement in event.sub_answer.statements)
            yield at + _plain(f"{event.round}.{event.index + 1} {said or 'not enough evidence'}")
        case Failed():
            yield at + _plain(f"{event.round}.{event.index + 1} could not {event.stage}: {event.reason}")
        case Called():
            call = event.call
            if not call.read:
                yield at + _plain(f"the model's reply to {call.prompt} could not be read")
            if call.cut_evidence or call.cut_history:
                left_out = f"{len(call.cut_evidence)} passages and {call.cut_history} earlier answers"
                yield at + _plain(f"{call.prompt}: {left_out} left out, the window is full")
        case Concluding():
            yield at + f"concluding ({event.stopped})"
        case RoundFinished() | Wrote() | Finished():
            pass


def _plain(text: str) -> str:
    """One line without control characters: they would drive the terminal."""
    return shorten("".join(c if c.isprintable() else " " for c in text), WIDTH, placeholder=" …")
