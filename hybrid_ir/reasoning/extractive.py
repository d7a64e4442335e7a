"""A reasoner without a language model: it finds and quotes, and never writes a sentence of its own.

Deterministic; needs an encoder and an extractor, the ones the index was built with.  It is what
a laptop runs, and what retrieval and iteration can be measured with, free of an LLM's noise.
"""

from __future__ import annotations

import asyncio

import numpy as np

from hybrid_ir.errors import BadInput
from hybrid_ir.reasoning.chain import Chain, chain_of
from hybrid_ir.reasoning.decompose import first_round
from hybrid_ir.reasoning.focus import Focus, focus_of
from hybrid_ir.reasoning.followups import next_round
from hybrid_ir.reasoning.kinds import is_medical, kinds_of
from hybrid_ir.reasoning.known import Known
from hybrid_ir.reasoning.options import option_support
from hybrid_ir.reasoning.plan import Plan, plan_of
from hybrid_ir.reasoning.polarity import polarity
from hybrid_ir.reasoning.sentences import Reader, gathered, sentences_of
from hybrid_ir.reasoning.spans import best_spans
from hybrid_ir.reasoning.support import Field, field_of, similarity
from hybrid_ir.reasoning.words import content_words, coverage
from hybrid_ir.records import (
    Conclusion,
    Decomposition,
    Findings,
    LoopState,
    Question,
    Retrieval,
    Statement,
    SubQuestion,
)
from hybrid_ir.roles import Encoder, Extractor

QUOTES = 3
"""Sentences in a sub-answer."""
QUOTE_FLOOR = 0.35
"""Cosine plus overlap below which a sentence does not answer a sub-question."""
QUOTE_SHARE = 0.75
"""A further quote must be this good compared with the best."""
ENOUGH = 0.45
"""Relevance of the best sentence below which the evidence is not about the question."""
COVERED = 0.4
"""Share of the question's words, by rarity, that the evidence must hold: what it never mentions it cannot answer."""


TOGETHER = 0.6
"""Share of the words of a yes/no question's names that one sentence must hold for its verdict to count as supported.

Not weighted by rarity: "digoxin" alone says nothing on digoxin in pregnancy.
"""


class ExtractiveReasoner:
    """See :class:`hybrid_ir.roles.Reasoner`; the models run in a thread, so the event loop stays free."""

    name = "extractive"

    def __init__(self, encoder: Encoder, extractor: Extractor) -> None:
        self._reader = Reader(encoder, extractor)

    async def decompose(self, state: LoopState, limit: int) -> Decomposition:
        """Round 1: the question, its clauses, its options.  Later: bridges; see ``decompose.py``."""
        return await asyncio.to_thread(self._decompose, state, limit)

    async def answer(self, state: LoopState, sub_question: SubQuestion, retrieval: Retrieval) -> Findings:
        """Up to ``QUOTES`` sentences of the evidence, verbatim, each with its chunk."""
        return Findings(statements=await asyncio.to_thread(self._answer, sub_question, retrieval))

    async def conclude(self, state: LoopState) -> Conclusion:
        """An option, yes or no, or the best short span, with the sentences that support it."""
        return await asyncio.to_thread(self._conclude, state)

    def _decompose(self, state: LoopState, limit: int) -> Decomposition:
        focus = focus_of(state.question)
        plan = plan_of(focus.whole, focus.need)
        if not state.rounds:
            return Decomposition(sub_questions=tuple(first_round(state.question, focus, plan, self._reader, limit)))
        field = self._field(state, focus)
        leading: tuple[str, ...] = ()
        if state.question.options and not focus.polar and field.sentences:
            support, _ = option_support(state.question, field, self._reader)
            leading = tuple(sorted(support, key=lambda letter: -support[letter])[:2])
        sub_questions, missing = next_round(Known(state, focus, plan, field, leading), self._reader, limit)
        return Decomposition(sub_questions=tuple(sub_questions), missing=missing)

    def _answer(self, sub_question: SubQuestion, retrieval: Retrieval) -> tuple[Statement, ...]:
        sentences = sentences_of(retrieval.evidence)
        if not sentences:
            return ()
        vectors = self._reader.vectors(sentences)
        words = [sentence.words for sentence in sentences]
        scores = similarity(sub_question.text, vectors, words, {}, self._reader)
        order = np.argsort(-scores, kind="stable")[:QUOTES]
        floor = max(QUOTE_FLOOR, QUOTE_SHARE * float(scores[order[0]]))
        return tuple(
            Statement(text=sentences[int(index)].text, citations=(sentences[int(index)].chunk.id,))
            for index in order
            if scores[index] >= floor
        )

    def _field(self, state: LoopState, focus: Focus, filled: str = "", chains: bool = True) -> Field:
        return field_of(focus, sentences_of(gathered(state)), self._reader, filled, chains)

    def _conclude(self, state: LoopState) -> Conclusion:
        if state.basis != "evidence":
            raise BadInput("The extractive reasoner concludes from evidence alone; this flow needs a language model.")
        focus = focus_of(state.question)
        plan = plan_of(focus.whole, focus.need)
        chain = chain_of(state, plan, sentences_of(gathered(state)), self._reader)
        filled = focus_of(Question(text=chain.question)).need if chain.question else ""
        field = self._field(state, focus, filled, chains=not focus.polar)
        if not field.sentences:
            return Conclusion(short="", enough_evidence=False)
        held = frozenset[str]().union(*field.words)
        covered = coverage(content_words(focus.whole), held, field.weights)
        enough = float(field.direct.max()) >= ENOUGH and covered >= COVERED and not self._unknown(focus, plan, held)
        if focus.polar:
            return self._polar(state, focus, field, enough)
        if state.question.options:
            return self._choice(state, focus, field, enough)
        return self._open(focus, plan, chain, field, enough)

    def _unknown(self, focus: Focus, plan: Plan, held: frozenset[str]) -> bool:
        """Whether the evidence never names a side, or a drug that the asking sentence names.

        Only these: diseases and findings are often called in other words.  A name counts as the question writes
        it, and is unknown only where none of its words occurs.
        """
        asked = content_words(focus.need)
        names = [name for name in self._reader.mentions([focus.need])[0] if kinds_of(name) == {"substance"}]
        drugs = [content_words(name) for name in names if is_medical(name) and content_words(name) <= asked]
        return any(words and not words & held for words in (*drugs, *(content_words(s.subject) for s in plan.sides)))

    def _choice(self, state: LoopState, focus: Focus, field: Field, enough: bool) -> Conclusion:
        support, sentences = option_support(state.question, field, self._reader)
        pick = min if focus.inverted else max
        letter = pick(support, key=lambda option: support[option])
        return Conclusion(
            choice=letter,
            short=state.question.options[letter],
            statements=_quoted(field, [*sentences[letter], int(field.direct.argmax())]),
            enough_evidence=enough,
        )

    def _polar(self, state: LoopState, focus: Focus, field: Field, enough: bool) -> Conclusion:
        verdict, order = polarity(focus, field, self._reader)
        names = frozenset[str]().union(*map(content_words, self._reader.mentions([focus.main])[0]))
        # A verdict stands only where one sentence, or a quote with its chunk's title, brings what is asked together.
        enough = enough and (not names or max(coverage(names, field.words[index], {}) for index in order) >= TOGETHER)
        options = {text.strip(" .").casefold(): letter for letter, text in state.question.options.items()}
        if options and verdict not in options:
            verdict = "yes" if "yes" in options else next(iter(options))
        letter = options.get(verdict)
        return Conclusion(
            choice=letter, short=verdict, statements=_quoted(field, order[:QUOTES]), enough_evidence=enough
        )

    def _open(self, focus: Focus, plan: Plan, chain: Chain, field: Field, enough: bool) -> Conclusion:
        spans = best_spans(focus, field, self._reader, sides=plan.sides, given=chain.question) if enough else []
        if not spans:
            return Conclusion(short="", enough_evidence=False)
        best = spans[0]
        steps = [*best.support, *(link.spans[0].sentence for link in chain.links)]
        return Conclusion(
            short=_headed(best.text),
            statements=_quoted(field, [best.sentence, *steps, int(field.direct.argmax())]),
            enough_evidence=True,
        )


def _headed(text: str) -> str:
    """With a capital, as an answer stands alone; symbols such as ``m.1555A>G`` keep their case."""
    first = (text.split() or [""])[0]
    return text[0].upper() + text[1:] if first.islower() and first.isalpha() and len(first) > 2 else text


def _quoted(field: Field, indexes: list[int]) -> tuple[Statement, ...]:
    """Each sentence once, verbatim, with its chunk."""
    return tuple(
        Statement(text=field.sentences[index].text, citations=(field.sentences[index].chunk.id,))
        for index in dict.fromkeys(indexes)
    )
