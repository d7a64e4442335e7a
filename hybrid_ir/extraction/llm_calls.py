"""The calls that a batch of chunks takes: several at a time, within a budget, tried again where a reply is no use."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Protocol

from hybrid_ir.errors import BadInput, Failed, HybridIRError, Unavailable
from hybrid_ir.extraction.llm_prompts import again
from hybrid_ir.extraction.llm_reply import Found, Unreadable
from hybrid_ir.llm.records import Message, Prompt, Reply
from hybrid_ir.records import Chunk, Extraction
from hybrid_ir.roles import LLM

if TYPE_CHECKING:
    from hybrid_ir.extraction.llm import LLMExtractor

Known = dict[tuple[Message, ...], str]
"""Replies by the messages they reply to."""
KEPT = "Every reply that came is kept: run the same command again, and only the rest is asked."

_PROBE = Prompt(messages=(Message(role="user", content="Reply with the word yes."),), max_tokens=8)
"""Tells an endpoint that answers nobody from a passage that it cannot answer."""


class Kept(Protocol):
    """Valid replies by prompt (see :class:`hybrid_ir.index.replies.Replies`)."""

    def get(self, prompts: Sequence[Prompt]) -> list[str | None]: ...

    def put(self, document_id: str, prompt: Prompt, text: str) -> None: ...


class Budget(Protocol):
    """How often the model may still be asked."""

    async def take(self) -> bool:
        """Leave for one more call."""
        ...


class Calls:
    """A budget of this process's own."""

    def __init__(self, most: int | None) -> None:
        self.made, self._most = 0, most

    async def take(self) -> bool:
        if self._most is not None and self.made >= self._most:
            return False
        self.made += 1
        return True


class NothingKept:
    """For callers without an index."""

    def get(self, prompts: Sequence[Prompt]) -> list[str | None]:
        return [None] * len(prompts)

    def put(self, document_id: str, prompt: Prompt, text: str) -> None:
        pass


class Batch:
    """One batch of chunks."""

    def __init__(self, extractor: LLMExtractor, llm: LLM, budget: Budget, kept: Kept, known: Known) -> None:
        self._extractor, self._llm, self._budget = extractor, llm, budget
        self._kept, self._known = kept, known
        self._halted: HybridIRError | None = None
        self._answered = False
        self._probing = asyncio.Lock()
        self.asked: set[str] = set()

    async def all(self, chunks: Sequence[Chunk]) -> list[Extraction | str]:
        results: list[Extraction | str] = [""] * len(chunks)
        waiting = iter(enumerate(chunks))
        workers = min(self._extractor.concurrency, len(chunks))
        await asyncio.gather(*(self._work(waiting, results) for _ in range(workers)))
        if self._halted is not None:
            raise self._halted
        return results

    async def _work(self, waiting: Iterator[tuple[int, Chunk]], results: list[Extraction | str]) -> None:
        """A chunk after the other: both calls of a chunk follow each other, while its prefix is still cached."""
        for row, chunk in waiting:
            try:
                results[row] = await self._one(chunk)
            except Unreadable as error:
                results[row] = str(error)
            except HybridIRError as error:
                self._halted = self._halted or error
            except Exception as error:  # of a reply or passage that nobody foresaw: it costs this chunk alone
                results[row] = f"The extraction failed on this chunk: {type(error).__name__}: {error}"
            if self._halted is not None:
                return

    async def _one(self, chunk: Chunk) -> Extraction:
        extractor, passage = self._extractor, self._extractor.passage(chunk)
        found = await self._read(chunk, extractor.prompts.ask(chunk), lambda text: extractor.read_first(passage, text))
        triples = found.triples
        if extractor.needs_second(found):
            prompt = extractor.prompts.ask_triples(chunk, found.entities)
            triples = (await self._read(chunk, prompt, lambda text: extractor.read_second(passage, text))).triples
        return passage.extraction(found.entities, triples)

    async def _read(self, chunk: Chunk, prompt: Prompt, read: Callable[[str], Found]) -> Found:
        """What a prompt's reply says: of the one that is kept, or of the first whole one that comes.

        Where all are cut, the one with most in it counts, and is not kept.
        """
        if (text := self._known.get(prompt.messages)) is not None:
            with suppress(Unreadable):  # an older reader could read it
                return read(text)
        self.asked.add(chunk.id)
        best: Found | None = None
        reason = ""
        for attempt in range(self._extractor.tries):
            asked = again(prompt, reason, attempt, self._extractor.seed) if attempt else prompt
            reply = await self._call(asked)
            try:
                found = read(reply.text)
            except Unreadable as error:
                reason = str(error)
                continue
            if found.whole:
                self._kept.put(chunk.document_id, prompt, reply.text)
                return found
            reason = "it is not whole."
            if best is None or len(found.entities) + len(found.triples) > len(best.entities) + len(best.triples):
                best = found
        if best is not None:
            return best
        tries = self._extractor.tries
        raise Unreadable(
            f"The language model's reply cannot be used ({tries} {'tries' if tries > 1 else 'try'}), the last because "
            f"{reason}"
        )

    async def _call(self, prompt: Prompt) -> Reply:
        """Raises Unreadable where this prompt is at fault, and the library's own error where the job must end."""
        try:
            return await self._complete(prompt)
        except Unavailable as error:
            await self._probe(error)
        except BadInput as error:
            if not self._answered:
                await self._probe(error)
            raise Unreadable(f"The language model refuses the passage: {error}") from error
        try:  # it does answer: after an outage, or others than this
            return await self._complete(prompt)
        except (Unavailable, BadInput) as error:
            raise Unreadable(f"The language model answers others and not this passage: {error}") from error

    async def _complete(self, prompt: Prompt) -> Reply:
        if self._halted is not None:
            raise self._halted
        if not await self._budget.take():
            raise Failed(f"The budget of calls to the language model (build.extractor.max_calls) is spent. {KEPT}")
        reply = await self._llm.complete(prompt)
        self._answered = True
        return reply

    async def _probe(self, error: HybridIRError) -> None:
        """Raise the error where the endpoint answers nothing else either."""
        async with self._probing:
            try:
                await self._complete(_PROBE)
            except (Unavailable, BadInput):
                self._halted = self._halted or type(error)(f"{error} {KEPT}")
                raise self._halted from error
