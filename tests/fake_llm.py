"""A fake language model, for tests and benchmarks alone: it understands nothing and says what a script says.

It is a :class:`hybrid_ir.roles.LLM` in this process; ``fake_server`` speaks HTTP with the same script and log.

    llm = ScriptedLLM(["first reply", Fault("status", status=429), "third reply"], seconds=0.5)
    llm = ScriptedLLM(lambda prompt: '{"answer": "A"}' if prompt.json_schema else "no schema")
"""

from __future__ import annotations

import asyncio
import sys
import time
from collections.abc import AsyncGenerator, Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from hybrid_ir.errors import BadInput, Unavailable
from hybrid_ir.llm.records import Message, Prompt, Reply, Usage

NAME = "fake"
KEPT_OPEN_S = 3600.0


@dataclass
class Fault(Exception):
    """What a script may say in the place of a reply.

    ``status``: an HTTP error, with ``retry_after`` in the header of that name.  ``hang``: nothing, until the
    client leaves.  ``cut``: half of ``text``, then the connection breaks.  ``garbage``: a body that is no JSON.
    In process the first and the last are an Unavailable (a BadInput where the status is 400), ``cut`` breaks
    with an Unavailable.
    """

    kind: Literal["status", "hang", "cut", "garbage"]
    status: int = 500
    retry_after: str | None = None
    text: str = "the half of a reply that nobody will ever read to its end"
    message: str = "the script says so"


Said = str | Exception
Script = str | Sequence[Said] | Callable[[Prompt], Said]
"""One reply for every call, a list in order (an empty one left is an error), or a rule."""


@dataclass
class Call:
    """One call as the fake saw it; times are of ``time.perf_counter``."""

    prompt: Prompt
    start: float
    streamed: bool = False
    end: float | None = None
    outcome: Literal["running", "answered", "failed", "cancelled"] = "running"
    """``cancelled``: the caller's task was cancelled, or the client closed its connection."""
    written: int = 0
    """Pieces of a stream that were sent."""
    headers: dict[str, str] = field(default_factory=dict)
    body: dict[str, Any] = field(default_factory=dict)

    @property
    def cancelled(self) -> bool:
        return self.outcome == "cancelled"

    def over(self, outcome: Literal["answered", "failed", "cancelled"]) -> None:
        self.end, self.outcome = time.perf_counter(), outcome


class Log(list[Call]):
    """Every call in the order of arrival."""

    def at_once(self) -> int:
        """The most calls that ran at one time."""
        edges = [(call.start, 1) for call in self] + [(call.end, -1) for call in self if call.end is not None]
        most = now = 0
        for _, step in sorted(edges):
            now += step
            most = max(most, now)
        return most

    def outcomes(self) -> list[str]:
        return [call.outcome for call in self]

    def running(self) -> int:
        return sum(call.outcome == "running" for call in self)


def count_words(messages: Sequence[Message]) -> int:
    """The fake's tokens: words, and four for the template of each message."""
    return sum(len(message.content.split()) + 4 for message in messages)


class Actor:
    """The script and its log."""

    def __init__(self, script: Script, seconds: float, window: int) -> None:
        self.script, self.seconds, self.window_tokens = script, seconds, window
        self.log = Log()

    def say(self, prompt: Prompt) -> Said:
        """What the script says now; an exception where it is one."""
        if isinstance(self.script, str):
            return self.script
        if callable(self.script):
            try:
                return self.script(prompt)
            except Exception as error:
                return error
        position = len(self.log) - 1
        if position >= len(self.script):
            return Fault("status", status=400, message=f"the script has {len(self.script)} replies, no more")
        return self.script[position]

    def reply(self, text: str, prompt: Prompt) -> tuple[str, Literal["stop", "length"], Usage]:
        """The text within the prompt's limits, as a real backend would cut it."""
        for mark in prompt.stop:
            text = text.partition(mark)[0]
        words = pieces(text)
        limit = min(prompt.max_tokens or self.window_tokens, self.window_tokens - count_words(prompt.messages))
        cut = len(words) > limit
        usage = Usage(prompt=count_words(prompt.messages), completion=min(len(words), limit))
        return "".join(words[:limit]), "length" if cut else "stop", usage

    def refusal(self, prompt: Prompt) -> str | None:
        asked = count_words(prompt.messages)
        if asked < self.window_tokens:
            return None
        return f"This model's maximum context length is {self.window_tokens} tokens, the messages have {asked}."


def pieces(text: str) -> list[str]:
    """The text in words, white space kept: a stream's pieces."""
    words = text.split(" ")
    return [word + " " for word in words[:-1]] + words[-1:] if text else []


class ScriptedLLM(Actor):
    """See :class:`hybrid_ir.roles.LLM`; every call takes ``seconds``, whatever it asks.

    A stream's first piece comes after half of the time.  ``log`` holds every call, ended or not.
    """

    def __init__(self, script: Script, seconds: float = 0.0, window: int = 8192, name: str = NAME) -> None:
        super().__init__(script, seconds, window)
        self._name = name
        self.closed = False

    @property
    def name(self) -> str:
        return self._name

    async def complete(self, prompt: Prompt) -> Reply:
        call = self._begin(prompt, streamed=False)
        try:
            said = self.say(prompt)
            await asyncio.sleep(KEPT_OPEN_S if isinstance(said, Fault) and said.kind == "hang" else self.seconds)
            text = self._text(said)
            if isinstance(said, Fault):
                raise Unavailable("The fake's reply was cut.")
            call.over("answered")
            return self._made(text, call)
        finally:
            self._ended(call)

    async def stream(self, prompt: Prompt) -> AsyncGenerator[str | Reply, None]:
        call = self._begin(prompt, streamed=True)
        try:
            said = self.say(prompt)
            await asyncio.sleep(KEPT_OPEN_S if isinstance(said, Fault) and said.kind == "hang" else self.seconds / 2)
            reply = self._made(self._text(said), call)
            words = pieces(reply.text)
            if isinstance(said, Fault):
                words = words[: len(words) // 2]
            for word in words:
                await asyncio.sleep(self.seconds / 2 / len(words))
                call.written += 1
                yield word
            if isinstance(said, Fault):
                raise Unavailable("The fake's stream broke half-way.")
            call.over("answered")
            yield self._made(reply.text, call)
        finally:
            self._ended(call)

    async def count(self, messages: Sequence[Message]) -> int:
        return count_words(messages)

    async def window(self) -> int:
        return self.window_tokens

    async def close(self) -> None:
        self.closed = True

    def _begin(self, prompt: Prompt, streamed: bool) -> Call:
        call = Call(prompt, time.perf_counter(), streamed)
        self.log.append(call)
        if refusal := self.refusal(prompt):
            call.over("failed")
            raise BadInput(refusal)
        return call

    @staticmethod
    def _text(said: Said) -> str:
        if isinstance(said, str):
            return said
        if not isinstance(said, Fault):
            raise said
        if said.kind == "cut":
            return said.text
        if said.kind == "status" and 400 <= said.status < 500 and said.status not in (408, 409, 429):
            raise BadInput(f"The fake refuses this call: {said.message}.")
        raise Unavailable(f"The fake does not answer: {said.kind}, {said.message}.")

    def _made(self, text: str, call: Call) -> Reply:
        text, finish, usage = self.reply(text, call.prompt)
        return Reply(text=text, finish=finish, usage=usage, seconds=time.perf_counter() - call.start)

    @staticmethod
    def _ended(call: Call) -> None:
        """Of a call that did not end by itself: cancelled, its stream closed, or failed."""
        if call.outcome == "running":
            left = isinstance(sys.exception(), asyncio.CancelledError | GeneratorExit)
            call.over("cancelled" if left else "failed")
