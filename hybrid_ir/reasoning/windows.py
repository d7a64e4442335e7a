"""A prompt that fits the model's window: what goes is whole passages and earlier answers, never half a sentence."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from hybrid_ir.errors import BadInput
from hybrid_ir.llm.records import Message
from hybrid_ir.llm.tokens import estimate
from hybrid_ir.records import Evidence, LoopState
from hybrid_ir.roles import LLM

REPLY_SHARE = 0.5
"""Of the window: the most that a reply may claim."""
SURE_SHARE = 0.5
"""A whole prompt that is estimated at no more of its room fits without being counted: that is a request of its own."""


@dataclass(frozen=True)
class Pair:
    """An earlier sub-question and what was found for it."""

    question: str
    statements: tuple[tuple[str, tuple[str, ...]], ...]
    """Text and chunk ids; empty: nothing was found."""
    shortened: bool = False
    """The statements were left out of this prompt."""


@dataclass(frozen=True)
class Fitted:
    """Messages that fit, and what had to go."""

    messages: tuple[Message, ...]
    max_tokens: int
    window: int
    evidence: tuple[Evidence, ...]
    cut_evidence: tuple[str, ...] = ()
    cut_history: int = 0
    counted: dict[str, int] = field(default_factory=dict)
    """Hash of the messages -> tokens, for every count."""


Render = Callable[[Sequence[Evidence], Sequence[Pair]], tuple[Message, ...]]


def pairs_of(state: LoopState) -> list[Pair]:
    """H_t, oldest first."""
    return [
        Pair(sub.sub_question.text, tuple((s.text, s.citations) for s in sub.statements))
        for round_ in state.rounds
        for sub in round_.sub_answers
    ]


async def fit(llm: LLM, render: Render, evidence: Sequence[Evidence], pairs: Sequence[Pair], max_tokens: int) -> Fitted:
    """The largest prompt that leaves ``max_tokens``, or half of the window, for the reply.

    ``evidence`` is best first.  First the lowest ranked evidence goes, down to one chunk; then the statements of the
    oldest pair, of the next, and so on; then whole pairs, oldest first; then the last chunk.  Found by bisection: a
    prompt that fits at once is counted once, one that is far from the limit never.  Raises BadInput where what is
    left, the question, does not fit.
    """
    window = await llm.window()
    max_tokens = max(1, min(max_tokens, int(window * REPLY_SHARE)))
    budget = window - max_tokens
    steps = _steps(len(evidence), len(pairs))
    counted: dict[str, int] = {}

    async def tokens(step: tuple[int, int, int]) -> tuple[int, tuple[Message, ...]]:
        messages = render(evidence[: step[0]], _kept(pairs, step))
        key = messages_hash(messages)
        if key not in counted:
            counted[key] = await llm.count(messages)
        return counted[key], messages

    whole = render(evidence, pairs)
    if estimate(whole) <= SURE_SHARE * budget:
        return Fitted(messages=whole, max_tokens=max_tokens, window=window, evidence=tuple(evidence))
    low, high = 0, len(steps) - 1
    size, messages = await tokens(steps[0])
    if size > budget:
        size, messages = await tokens(steps[high])
        if size > budget:
            raise BadInput(
                f"The question is too long for the language model: with its prompt it has {size} tokens, and {budget} "
                f"of the window of {window} are left beside the reply. Shorten it, or use a model with a larger window."
            )
        while high - low > 1:  # steps[low] is too long, steps[high] fits
            middle = (low + high) // 2
            size, found = await tokens(steps[middle])
            low, high, messages = (low, middle, found) if size <= budget else (middle, high, messages)
        low = high
    kept, shortened, _ = steps[low]
    return Fitted(
        messages=messages,
        max_tokens=max_tokens,
        window=window,
        evidence=tuple(evidence[:kept]),
        cut_evidence=tuple(item.chunk.id for item in evidence[kept:]),
        cut_history=shortened,
        counted=counted,
    )


def _steps(evidence: int, pairs: int) -> list[tuple[int, int, int]]:
    """(chunks kept, oldest pairs without statements, oldest pairs left out), from everything to nothing."""
    fewer = [(kept, 0, 0) for kept in range(evidence, 0, -1)] or [(0, 0, 0)]
    last = min(evidence, 1)
    shorter = [(last, count, 0) for count in range(1, pairs + 1)]
    gone = [(last, pairs, count) for count in range(1, pairs + 1)]
    return [*fewer, *shorter, *gone, *([(0, pairs, pairs)] if last else [])]


def _kept(pairs: Sequence[Pair], step: tuple[int, int, int]) -> list[Pair]:
    _, shortened, gone = step
    return [
        Pair(pair.question, (), shortened=True) if index < shortened and pair.statements else pair
        for index, pair in enumerate(pairs)
        if index >= gone
    ]


def messages_hash(messages: Sequence[Message]) -> str:
    """Of roles and contents."""
    told = json.dumps([[message.role, message.content] for message in messages], ensure_ascii=True)
    return hashlib.sha256(told.encode()).hexdigest()[:32]
