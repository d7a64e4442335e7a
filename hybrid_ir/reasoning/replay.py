"""Run the loop again from a trace, without a language model and without retrieval.

Replies come by the hash of the prompt, evidence by the hash of the query.  So a replay shows whether prompts,
parsing, citations and the loop still make the same answer of the same replies.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from hybrid_ir.errors import BadInput, Conflict, Unavailable
from hybrid_ir.llm.records import Message, Prompt, Reply, Usage
from hybrid_ir.reasoning.events import Called, Event, Failed, Finished, Retrieved
from hybrid_ir.reasoning.llm_reasoner import LLMReasoner, prompt_hash
from hybrid_ir.reasoning.loop import run
from hybrid_ir.reasoning.prompt_files import PromptFile
from hybrid_ir.reasoning.trace import Trace, text_hash, without_texts
from hybrid_ir.reasoning.windows import messages_hash
from hybrid_ir.records import Answer, Chunk, Evidence, ModelCall, Question, Retrieval
from hybrid_ir.roles import Query, Reasoner

CUT_OFF_S = 2.0
"""The deadline of a replay whose question was cut off by its own: calls that did not end then hang now."""
_PASSING = frozenset({"seconds", "support", "rerank"})
"""Fields that a replay does not make: times, and what an encoder adds."""


@dataclass(frozen=True)
class Replayed:
    """What a replay came to."""

    answer: Answer
    differences: tuple[str, ...]
    """The fields of the answer that are not as they were."""
    unknown: int
    """Prompts and queries that the trace does not know: something changed before them."""
    cut_off: bool = False
    """The traced question ended at its deadline; what a replay computes itself may end elsewhere."""

    @property
    def same(self) -> bool:
        return not self.differences


async def replay(
    trace: Trace,
    *,
    prompts: Mapping[str, PromptFile] | None = None,
    reasoner: Reasoner | None = None,
    chunk: Callable[[str], Chunk] | None = None,
    question: Question | None = None,
    on_event: Callable[[Event], None] | None = None,
) -> Replayed:
    """``prompts``: for a trace of a language model.  ``reasoner``: for one of the extractive reasoner.

    ``chunk`` and ``question``: for a trace without texts.  Raises BadInput where one of them is missing or the trace
    has no answer, Conflict where question, chunks or prompts are not those of the trace.
    """
    head, finished = trace.head, trace.finished
    if finished is None:
        raise BadInput("The trace ends before the answer: there is nothing to compare with.")
    asked = _question(trace, question)
    cut_off = finished.answer.stopped == "deadline"
    model = RecordedLLM(trace, hang=cut_off)
    if head.llm is not None:
        held = prompts or {}
        changed = [name for name, was in head.llm.prompts.items() if name not in held or held[name].hash != was]
        if changed:
            raise Conflict(
                f"The prompt {changed[0]} is not the one that the trace was made with: its replies answer another one."
            )
        reasoner = LLMReasoner(model, held, head.llm.entities, head.llm.max_tokens)
    elif reasoner is None:
        raise BadInput("The trace is of the extractive reasoner: give the index that it was made with (--root).")
    retriever = RecordedRetriever(trace, chunk, hang=cut_off)
    loop = head.loop.model_copy(update={"deadline_s": CUT_OFF_S}) if cut_off else head.loop
    answer: Answer | None = None
    async for event in run(asked, retriever, reasoner, loop, build_id=head.build_id):
        if on_event is not None:
            on_event(event)
        if isinstance(event, Finished):
            answer = event.answer
    if answer is None:
        raise AssertionError("run() ended without Finished")
    now, then = (
        _lasting(made.model_dump(mode="json")) for made in (without_texts(answer), without_texts(finished.answer))
    )
    differences = tuple(name for name in then if now.get(name) != then[name])
    return Replayed(answer, differences, model.unknown + retriever.unknown, cut_off)


class RecordedLLM:
    """See :class:`hybrid_ir.roles.LLM`: says again what it said."""

    def __init__(self, trace: Trace, hang: bool = False) -> None:
        """``hang``: a call that the trace does not know never ends; else it is an Unavailable."""
        self._name, self._hang = trace.head.reasoner, hang
        self._calls: dict[str, ModelCall] = {}
        self._counts: dict[str, int] = {}
        self._window = 0
        self.unknown = 0
        for event in trace.events:
            if isinstance(event, Called):
                self._calls.setdefault(event.call.prompt_hash, event.call)
                self._counts |= event.call.counted
                self._window = event.call.window

    @property
    def name(self) -> str:
        return self._name

    async def complete(self, prompt: Prompt) -> Reply:
        call = self._calls.get(prompt_hash(prompt))
        if call is None:
            return await self._missing()
        return Reply(
            text=call.reply,
            finish=call.finish,
            usage=Usage(prompt=call.prompt_tokens, completion=call.completion_tokens),
            seconds=call.seconds,
            tries=call.tries,
        )

    async def stream(self, prompt: Prompt) -> AsyncGenerator[str | Reply, None]:
        reply = await self.complete(prompt)
        yield reply.text
        yield reply

    async def count(self, messages: Sequence[Message]) -> int:
        """0 for a prompt that was never counted: it is not in the trace, as its call will say."""
        return self._counts.get(messages_hash(messages), 0)

    async def window(self) -> int:
        return self._window or 1_000_000

    async def close(self) -> None:
        pass

    async def _missing(self) -> Reply:
        if self._hang:
            await asyncio.Event().wait()
        self.unknown += 1
        raise Unavailable("The trace has no reply to this prompt.")


class RecordedRetriever:
    """See :class:`hybrid_ir.roles.Retriever`: brings again what it brought."""

    def __init__(self, trace: Trace, chunk: Callable[[str], Chunk] | None, hang: bool = False) -> None:
        """``chunk`` gives the texts that the trace does not hold, all of them here and now."""
        self._chunk, self._hang = chunk, hang
        retrievals = [event.retrieval for event in trace.events if isinstance(event, Retrieved)]
        if not trace.head.texts:
            retrievals = [self._with_texts(found) for found in retrievals]
        self._found = {text_hash(found.query): found for found in retrievals}
        self._failed = any(isinstance(event, Failed) and event.stage == "retrieve" for event in trace.events)
        self.unknown = 0

    async def retrieve(
        self, query: Query, k: int, paths: Sequence[str] | None = None, timeout_s: float | None = None
    ) -> Retrieval:
        found = self._found.get(text_hash(query.text))
        if found is None:
            if self._hang:
                await asyncio.Event().wait()
            if not self._failed:
                self.unknown += 1
            raise Unavailable("The trace has no evidence for this query.")
        return found.model_copy(update={"query": query.text})

    def _with_texts(self, found: Retrieval) -> Retrieval:
        evidence = [item.model_copy(update={"chunk": self._whole(item)}) for item in found.evidence]
        return found.model_copy(update={"evidence": tuple(evidence)})

    def _whole(self, item: Evidence) -> Chunk:
        if self._chunk is None:
            raise BadInput("The trace holds no texts: give the index that has its chunks (--root).")
        chunk = self._chunk(item.chunk.id)
        if text_hash(chunk.text) != item.chunk.text or text_hash(chunk.title) != item.chunk.title:
            raise Conflict(f"The chunk {chunk.id} of this index is not the one of the trace: its text has changed.")
        return chunk


def _question(trace: Trace, given: Question | None) -> Question:
    if trace.head.texts and given is None:
        return trace.head.question
    if given is None:
        raise BadInput("The trace holds no texts: give the question, and its options, as they were asked.")
    if without_texts(given) != without_texts(trace.head.question):
        raise Conflict("The question, or an option, is not the one that the trace was made with.")
    return given


def _lasting(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _lasting(item) for name, item in value.items() if name not in _PASSING}
    return [_lasting(item) for item in value] if isinstance(value, list) else value
