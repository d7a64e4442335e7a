"""What is described in a question, resolved step by step from the evidence."""

from __future__ import annotations

from dataclasses import dataclass

from hybrid_ir.reasoning.focus import focus_of
from hybrid_ir.reasoning.plan import Part, Plan, plan_of, resolved
from hybrid_ir.reasoning.sentences import Reader, Sentence
from hybrid_ir.reasoning.spans import Span, best_spans
from hybrid_ir.reasoning.support import field_of, similarity
from hybrid_ir.reasoning.words import content_words
from hybrid_ir.records import LoopState, Question

TRIED = 6
WORTH_TRYING = 0.75
"""Answers to a part that are tried in the question: the best few, if they score this share of the best."""
SURE = 0.85
"""A part's second answer is asked too where it is nearly as good as the best."""


@dataclass(frozen=True)
class Link:
    """A part of the question, answered, and the question with its answers filled in."""

    part: Part
    spans: list[Span]
    filled: tuple[str, ...]
    """With each of ``spans``."""


@dataclass(frozen=True)
class Chain:
    """What is described in a question, resolved step by step."""

    links: tuple[Link, ...] = ()
    open: Part | None = None
    """The next part, not asked yet."""

    @property
    def question(self) -> str:
        """The question with all answers so far; empty without any."""
        return self.links[-1].filled[0] if self.links else ""


def chain_of(state: LoopState, plan: Plan, sentences: list[Sentence], reader: Reader) -> Chain:
    """Resolve the parts in order, by all evidence so far.

    ``the country where the composer of X was a citizen`` becomes ``the country where Haydn was a
    citizen``, which is the next part.  Nothing is remembered between rounds: new evidence may
    correct an earlier answer.
    """
    links: list[Link] = []
    asked = state.asked()
    if plan.first:
        focus = focus_of(Question(text=plan.first))
        spans = best_spans(focus, field_of(focus, sentences, reader), reader)[:1]
        return Chain(
            tuple(Link(Part(plan.first, plan.first), [span], (resolved(plan.sequel, span.text),)) for span in spans)
        )
    for _ in range(len(state.rounds) + 1):
        part = plan.hops[0] if plan.hops else None
        if part is None or " ".join(part.text.casefold().split()) not in asked:
            return Chain(tuple(links), part)
        focus = focus_of(Question(text=part.text))
        spans = best_spans(focus, field_of(focus, sentences, reader), reader, part.noun)
        if not spans:
            break
        spans = _verified(plan, part, spans, sentences, reader)
        filled = tuple(plan.filled(part, span.text) for span in spans)
        links.append(Link(part, spans, filled))
        plan = plan_of(filled[0], focus_of(Question(text=filled[0])).need)
    return Chain(tuple(links))


def _verified(plan: Plan, part: Part, spans: list[Span], sentences: list[Sentence], reader: Reader) -> list[Span]:
    """At most two answers to a part, best first by their own score times the support of what they make of the question.

    An answer is right when the question makes sense with it: of ``bite`` and ``rabies``, one is
    said to travel along nerves.
    """
    close = [span for span in spans[:TRIED] if span.score >= WORTH_TRYING * spans[0].score]
    vectors = reader.vectors(sentences)
    words = [sentence.words | content_words(sentence.chunk.title) for sentence in sentences]
    support = []
    for span in close:
        text = focus_of(Question(text=plan.filled(part, span.text))).need
        support.append(float(similarity(text, vectors, words, {}, reader).max()))
    value = {span: span.score * support[at] ** 2 for at, span in enumerate(close)}
    best = sorted(close, key=lambda span: -value[span])
    return [span for span in best[:2] if value[span] >= SURE * value[best[0]]]
