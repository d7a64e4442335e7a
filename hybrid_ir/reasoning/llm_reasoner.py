"""A language model as the reasoner of Algorithm 1: it plans, answers from evidence, and concludes.

It is asked by the prompts of ``prompt_files``, in JSON by a schema; a reply that cannot be read is asked for once
more.  Where there is no evidence it is not asked at all: nothing is answered from its memory.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import aclosing
from typing import Any, Literal, TypeVar

from hybrid_ir.errors import Unavailable
from hybrid_ir.llm.records import Message, Prompt, Reply
from hybrid_ir.reasoning import replies
from hybrid_ir.reasoning.citations import by_id, with_support
from hybrid_ir.reasoning.filled import filled, labels_of, told_question
from hybrid_ir.reasoning.partial import PartialText
from hybrid_ir.reasoning.prompt_files import PromptFile, load_prompts
from hybrid_ir.reasoning.replies import Said
from hybrid_ir.reasoning.sentences import gathered
from hybrid_ir.reasoning.trace import LLMSetup
from hybrid_ir.reasoning.verdicts import wanted_of
from hybrid_ir.reasoning.windows import Pair, fit, pairs_of
from hybrid_ir.records import (
    Conclusion,
    Decomposition,
    Evidence,
    Findings,
    LoopState,
    ModelCall,
    Question,
    Retrieval,
    SubQuestion,
)
from hybrid_ir.roles import LLM, Encoder

AGAIN = "Your last reply could not be read. Reply with the JSON object alone, as short as it can be."
RETRY_SEED = 1
"""Of the second try: at temperature 0 the first one's seed might give the same reply."""
SUB_STATEMENTS, FINAL_STATEMENTS = 3, 5

T = TypeVar("T")


def prompt_hash(prompt: Prompt) -> str:
    """Of all that a reply depends on, for traces and replays."""
    told = json.dumps(prompt.model_dump(mode="json"), sort_keys=True, ensure_ascii=True)
    return hashlib.sha256(told.encode()).hexdigest()[:32]


class LLMReasoner:
    """See :class:`hybrid_ir.roles.Reasoner`.

    ``entities``: emitted with the sub-questions, or by a call for each, as the paper has it.  ``max_tokens``: of one
    reply.  ``encoder``: checks how far the final statements are supported; without one they are not checked.
    """

    def __init__(
        self,
        llm: LLM,
        prompts: Mapping[str, PromptFile] | None = None,
        entities: Literal["with_sub_questions", "separate"] = "with_sub_questions",
        max_tokens: int = 1024,
        encoder: Encoder | None = None,
    ) -> None:
        self._llm = llm
        self._prompts = dict(prompts) if prompts is not None else load_prompts()
        self._separate = entities == "separate"
        self._max_tokens = max_tokens
        self._encoder = encoder

    @property
    def name(self) -> str:
        return self._llm.name

    @property
    def setup(self) -> LLMSetup:
        """For a trace: what the prompts depend on besides the state."""
        return LLMSetup(
            prompts={name: file.hash for name, file in self._prompts.items()},
            entities="separate" if self._separate else "with_sub_questions",
            max_tokens=self._max_tokens,
        )

    async def decompose(self, state: LoopState, limit: int) -> Decomposition:
        """Round 1 asks for what decides the question, a later round for what is missing."""
        later = bool(state.rounds)
        schema = replies.sub_questions_schema(limit, later, entities=not self._separate)
        wanted, calls = await self._ask(
            "gaps" if later else "decompose",
            {"question": told_question(state.question), "limit": str(limit)},
            lambda _: schema,
            lambda reply: replies.read_sub_questions(reply, limit),
            pairs=pairs_of(state),
        )
        if wanted is None:
            return Decomposition(sub_questions=(), calls=tuple(calls), unreadable=True)
        sub_questions: Sequence[SubQuestion] = wanted.sub_questions
        if self._separate and sub_questions:
            found = await asyncio.gather(*(self._entities(item) for item in sub_questions))
            sub_questions = [item for item, _ in found]
            calls += [call for _, made in found for call in made]
        return Decomposition(sub_questions=tuple(sub_questions), missing=wanted.missing, calls=tuple(calls))

    async def answer(self, state: LoopState, sub_question: SubQuestion, retrieval: Retrieval) -> Findings:
        """Up to three statements from the evidence of one sub-question."""
        if not retrieval.evidence:
            return Findings()
        said, calls = await self._ask(
            "sub_answer",
            {"sub_question": sub_question.text},
            lambda labels: replies.statements_schema(labels, SUB_STATEMENTS),
            replies.read_statements,
            evidence=retrieval.evidence,
        )
        statements = by_id(said.statements, calls[-1].evidence) if said and said.enough else ()
        return Findings(statements=statements, calls=tuple(calls))

    async def conclude(self, state: LoopState) -> Conclusion:
        """The answer from all evidence, by the kind of the question."""
        async with aclosing(self.concluding(state)) as pieces:
            async for piece in pieces:
                if isinstance(piece, Conclusion):
                    return piece
        raise AssertionError("concluding() ended without a conclusion")

    async def concluding(self, state: LoopState) -> AsyncGenerator[str | Conclusion, None]:
        """The statements and the short answer as they are written; then the conclusion."""
        if state.basis in ("memory", "memory_steps"):
            yield await self._recalled(state.question, steps=state.basis == "memory_steps")
            return
        evidence = gathered(state)
        if not evidence:
            yield Conclusion(short="", enough_evidence=False)
            return
        said: Said | None = None
        calls: list[ModelCall] = []
        async with aclosing(self._final(state, evidence if state.basis == "evidence" else ())) as pieces:
            async for piece in pieces:
                if isinstance(piece, str):
                    yield piece
                else:
                    said, calls = piece
        found = tuple(dict.fromkeys(s for round_ in state.rounds for sub in round_.sub_answers for s in sub.statements))
        if said is None:  # what the sub-answers found is all there is
            yield Conclusion(short="", statements=found, enough_evidence=False, calls=tuple(calls))
            return
        statements, enough = by_id(said.statements, calls[-1].evidence), said.enough
        if state.basis == "pairs":  # no passage was shown: what stands behind the verdict are the sub-answers
            statements, enough = found, bool(found)
        if self._encoder is not None:
            chunks = {item.chunk.id: item.chunk for item in evidence}
            statements = await asyncio.to_thread(with_support, statements, chunks, self._encoder)
        yield Conclusion(
            choice=said.choice if state.question.options else None,
            short=said.short,
            statements=statements,
            enough_evidence=enough,
            calls=tuple(calls),
        )

    def _final(
        self, state: LoopState, evidence: Sequence[Evidence]
    ) -> AsyncGenerator[str | tuple[Said | None, list[ModelCall]], None]:
        """Asks by the kind of the question."""
        wanted = wanted_of(state.question)
        values = {"question": told_question(state.question)}
        if wanted.name == "final_polar":
            values["verdicts"] = ", ".join(wanted.words)
        return self._asking(
            wanted.name,
            values,
            lambda labels: replies.statements_schema(labels, FINAL_STATEMENTS, **wanted.schema),
            wanted.read,
            evidence,
            pairs_of(state),
            streamed=True,
        )

    async def _recalled(self, question: Question, steps: bool) -> Conclusion:
        """An answer without any document; the loop marks it."""
        wanted = wanted_of(question)
        thinking = {"steps": replies.SHORT_SCHEMA} if steps else {}
        said, calls = await self._ask(
            "recall_steps" if steps else "recall",
            {"question": told_question(question), "form": wanted.form},
            lambda _: replies.object_of(**thinking, **wanted.schema),
            wanted.read,
        )
        choice = said.choice if said and question.options else None
        return Conclusion(choice=choice, short=said.short if said else "", enough_evidence=False, calls=tuple(calls))

    async def _entities(self, item: SubQuestion) -> tuple[SubQuestion, list[ModelCall]]:
        """Where its names cannot be read, the retrieval finds them in the text."""
        names, calls = await self._ask(
            "entities", {"sub_question": item.text}, lambda _: replies.ENTITIES_SCHEMA, replies.read_entities
        )
        return item.model_copy(update={"entities": names or ()}), calls

    async def _ask(
        self,
        name: str,
        values: Mapping[str, str],
        schema: Callable[[list[str]], dict[str, Any]],
        read: Callable[[str], T | None],
        evidence: Sequence[Evidence] = (),
        pairs: Sequence[Pair] = (),
    ) -> tuple[T | None, list[ModelCall]]:
        """Fit the window, call, read; once more where that fails.  ``schema``: by the labels that the prompt shows."""
        async with aclosing(self._asking(name, values, schema, read, evidence, pairs)) as pieces:
            async for piece in pieces:
                if not isinstance(piece, str):
                    return piece
        raise AssertionError("_asking() ended without a reply")

    async def _asking(
        self,
        name: str,
        values: Mapping[str, str],
        schema: Callable[[list[str]], dict[str, Any]],
        read: Callable[[str], T | None],
        evidence: Sequence[Evidence],
        pairs: Sequence[Pair],
        streamed: bool = False,
    ) -> AsyncGenerator[str | tuple[T | None, list[ModelCall]], None]:
        """As ``_ask``, with what the reply says as it comes where it is ``streamed``."""
        file = self._prompts[name]
        calls: list[ModelCall] = []
        for seed in (None, RETRY_SEED):
            again = f"\n\n{AGAIN}" if calls else ""

            def render(kept: Sequence[Evidence], told: Sequence[Pair], again: str = again) -> tuple[Message, ...]:
                return filled(file, values, kept, told, again)

            fitted = await fit(self._llm, render, evidence, pairs, self._max_tokens)
            prompt = Prompt(
                messages=fitted.messages,
                json_schema=schema(labels_of(fitted.evidence)),
                max_tokens=fitted.max_tokens,
                seed=seed,
            )
            reply: Reply | None = None
            if streamed:
                async with aclosing(self._streamed(prompt)) as pieces:
                    async for piece in pieces:
                        if isinstance(piece, str):
                            yield piece
                        else:
                            reply = piece
            if reply is None:
                reply = await self._llm.complete(prompt)
            value = read(reply.text)
            calls.append(
                ModelCall(
                    prompt=file.label,
                    prompt_hash=prompt_hash(prompt),
                    reply=reply.text,
                    read=value is not None,
                    finish=reply.finish,
                    prompt_tokens=reply.usage.prompt,
                    completion_tokens=reply.usage.completion,
                    seconds=reply.seconds,
                    tries=reply.tries,
                    evidence=tuple(item.chunk.id for item in fitted.evidence),
                    cut_evidence=fitted.cut_evidence,
                    cut_history=fitted.cut_history,
                    window=fitted.window,
                    counted=fitted.counted,
                )
            )
            if value is not None:
                yield value, calls
                return
        yield None, calls

    async def _streamed(self, prompt: Prompt) -> AsyncGenerator[str | Reply, None]:
        """The sentences as they come, then the reply; no reply where the stream breaks, which is not tried again."""
        text = PartialText()
        try:
            async with aclosing(self._llm.stream(prompt)) as pieces:
                async for piece in pieces:
                    if isinstance(piece, Reply):
                        yield piece
                    elif said := text.feed(piece):
                        yield said
        except Unavailable:
            return
