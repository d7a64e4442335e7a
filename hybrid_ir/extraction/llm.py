"""OpenIE by a language model: the entities of a passage, then triples conditioned on them (Hybrid-IR, HippoRAG).

A reply that cannot be read costs its chunk another try, and after the last one an error record.
An endpoint that answers nobody, or a budget that is spent, ends the job; what came is kept.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Coroutine, Iterator, Sequence
from contextlib import suppress
from functools import cached_property
from typing import Any, Protocol, TypeVar

from hybrid_ir.errors import BadInput, Failed, HybridIRError, Unavailable
from hybrid_ir.extraction import grounding, llm_reply, term_lists, vocabulary
from hybrid_ir.extraction.grounding import Passage
from hybrid_ir.extraction.llm_prompts import Prompts, again
from hybrid_ir.extraction.llm_reply import Found, Unreadable, read_both, read_entities, read_triples
from hybrid_ir.llm.records import Message, Prompt, Reply
from hybrid_ir.llm.revision import sampling_fingerprint
from hybrid_ir.records import Chunk, Extraction
from hybrid_ir.roles import LLM
from hybrid_ir.settings import LLMExtractorSettings
from hybrid_ir.settings.llm import VLLMSettings

T = TypeVar("T")
Known = dict[tuple[Message, ...], str]
"""Replies by the messages they reply to."""
KIND = "llm"
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


class LLMExtractor:
    """See :class:`hybrid_ir.roles.Extractor`.  Nothing is opened or asked before the first extraction."""

    def __init__(self, settings: LLMExtractorSettings, llm: LLM | None = None, budget: Budget | None = None) -> None:
        """``llm``: in the place of the settings' own; ``budget``: a job's, over all its workers."""
        self._settings = settings
        self._given = llm
        self._budget = budget or Calls(settings.max_calls)
        self._loop: asyncio.AbstractEventLoop | None = None

    @cached_property
    def fingerprint(self) -> dict[str, str]:
        readers = f"{llm_reply.READER_VERSION} {grounding.VERSION}"
        names = term_lists.versions(self._settings.rules.vocabularies)
        return (
            {"kind": KIND, "calls": self._settings.calls, "reader": readers}
            | self.reply_fingerprint
            | {
                **self.prompts.fingerprint,
                **names,
            }
        )

    @cached_property
    def reply_fingerprint(self) -> dict[str, str]:
        """What a reply depends on beside the prompt."""
        return sampling_fingerprint(self._settings.llm)

    @cached_property
    def prompts(self) -> Prompts:
        return Prompts(self._settings.calls, self._settings.prompts)

    def extract(self, chunks: Sequence[Chunk]) -> list[Extraction | str]:
        return self.extract_kept(chunks, NothingKept())[0]

    def extract_kept(self, chunks: Sequence[Chunk], kept: Kept) -> tuple[list[Extraction | str], int]:
        """As ``extract``, asking only for replies that are not kept; and how many chunks were asked about.

        Raises Unavailable when the model answers nobody, BadInput when it refuses everybody, and Failed
        when the budget is spent; all valid replies were put into ``kept`` before.
        """
        known = self.recall(chunks, kept)
        run = _Run(self, self._llm, self._budget, kept, known)
        found = self._wait(run.all(chunks))
        return found, len(run.asked)

    def mentions(self, texts: Sequence[str]) -> list[tuple[str, ...]]:
        """By the rules.

        A question must not wait for, or fail with, the endpoint that the index was made by; a reasoner that
        is a language model names the entities of its sub-questions itself.
        """
        found: list[tuple[str, ...]] = self._rules.mentions(texts)
        return found

    def passage(self, chunk: Chunk) -> Passage:
        return Passage(chunk, self._vocabulary)

    @property
    def tries(self) -> int:
        """Of one prompt."""
        return self._settings.retries + 1

    @property
    def seed(self) -> int | None:
        return self._settings.llm.seed

    @property
    def concurrency(self) -> int:
        return self._settings.llm.concurrency

    def read_first(self, passage: Passage, text: str) -> Found:
        """A reply to the first prompt.  Raises Unreadable."""
        return passage.grounded(read_entities(text) if self.prompts.first == "entities" else read_both(text))

    def read_second(self, passage: Passage, text: str) -> Found:
        """A reply to the second prompt.  Raises Unreadable."""
        return passage.grounded(read_triples(text))

    def needs_second(self, found: Found) -> bool:
        """Whether triples are still to be asked for: between no entities there are none."""
        return self.prompts.first == "entities" and bool(found.entities)

    def recall(self, chunks: Sequence[Chunk], kept: Kept) -> Known:
        """Replies that are kept, to both prompts of each chunk."""
        firsts = [self.prompts.ask(chunk) for chunk in chunks]
        replies = kept.get(firsts)
        seconds = []
        for chunk, text in zip(chunks, replies, strict=True):
            if text is not None and (second := self.second_prompt(chunk, text)) is not None:
                seconds.append(second)
        asked = zip([*firsts, *seconds], [*replies, *kept.get(seconds)], strict=True)
        return {prompt.messages: text for prompt, text in asked if text is not None}

    def second_prompt(self, chunk: Chunk, first_reply: str) -> Prompt | None:
        """What is asked after a reply to the first prompt; None where nothing is, or the reply is of no use."""
        try:
            found = self.read_first(self.passage(chunk), first_reply)
        except Unreadable:
            return None
        return self.prompts.ask_triples(chunk, found.entities) if self.needs_second(found) else None

    @cached_property
    def _llm(self) -> LLM:
        if self._given is not None:
            return self._given
        if isinstance(self._settings.llm, VLLMSettings):
            raise BadInput(
                "extractor.llm: vLLM runs inside the indexing job (hybrid-ir index, on a cluster with ray[llm]); "
                "elsewhere name an endpoint: llm: {backend: openai, base_url: …}."
            )
        from hybrid_ir.llm.load import load

        return load(self._settings.llm)

    @cached_property
    def _vocabulary(self) -> vocabulary.Vocabulary:
        return vocabulary.load(self._settings.rules.vocabularies)

    @cached_property
    def _rules(self) -> Any:
        from hybrid_ir.extraction.rules import RuleExtractor

        return RuleExtractor(self._settings.rules)

    def _wait(self, work: Coroutine[Any, Any, T]) -> T:
        """Run in a loop of this object's own, which keeps its connections; the caller may have a loop too."""
        if self._loop is None:
            self._loop = asyncio.new_event_loop()
            threading.Thread(target=self._loop.run_forever, daemon=True).start()
        future = asyncio.run_coroutine_threadsafe(work, self._loop)
        try:
            return future.result()
        except BaseException:
            future.cancel()
            raise


class _Run:
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
            raise Failed(f"The budget of calls to the language model (extractor.max_calls) is spent. {KEPT}")
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
