"""OpenIE by a language model: the entities of a passage, then triples conditioned on them (Hybrid-IR, HippoRAG).

A reply that cannot be read costs its chunk another try, and after the last one an error record.
An endpoint that answers nobody, or a budget that is spent, ends the job; what came is kept.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Coroutine, Sequence
from functools import cached_property
from typing import Any, TypeVar

from hybrid_ir.errors import BadInput
from hybrid_ir.extraction import grounding, llm_reply, term_lists, vocabulary
from hybrid_ir.extraction.grounding import Passage
from hybrid_ir.extraction.llm_calls import Batch, Budget, Calls, Kept, Known, NothingKept
from hybrid_ir.extraction.llm_prompts import Prompts
from hybrid_ir.extraction.llm_reply import Found, Unreadable, read_both, read_entities, read_triples
from hybrid_ir.llm.records import Prompt
from hybrid_ir.llm.revision import sampling_fingerprint
from hybrid_ir.records import Chunk, Extraction
from hybrid_ir.roles import LLM
from hybrid_ir.settings import LLMExtractorSettings
from hybrid_ir.settings.llm import VLLMSettings

T = TypeVar("T")
KIND = "llm"


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
        run = Batch(self, self._llm, self._budget, kept, known)
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
                "build.extractor.llm: vLLM runs inside the indexing job (hybrid-ir index, on a cluster with ray[llm]); "
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
