"""The short answer to an open question: an entity of the evidence that fits what is asked."""

from __future__ import annotations

import re
from dataclasses import dataclass

import numpy as np

from hybrid_ir.reasoning.focus import Focus
from hybrid_ir.reasoning.sentences import Reader
from hybrid_ir.reasoning.support import Field
from hybrid_ir.reasoning.words import content_words, names

SPAN_SENTENCES = 16
"""Answers are sought in the best sentences only."""
FIT = 1.0
"""Weight of how well a candidate fits the asked-for kind."""
SAID = 0.5
"""Added to the fit when the evidence says that the candidate is of the kind: ``the enzyme X``, ``X is an enzyme``."""
NEAR_CHARS = 40
"""How near the kind's name must stand."""

_NUMBER = re.compile(r"\d[\d.,]*(?:\s?(?:%|percent|mg|g|ml|mmol/l|hours?|days?|weeks?|months?|years?))?")


@dataclass(frozen=True)
class Span:
    """A candidate answer, as it stands in the sentence."""

    text: str
    score: float
    sentence: int


def best_spans(focus: Focus, field: Field, reader: Reader) -> list[Span]:
    """Candidates, best first; empty when no sentence names anything new.

    score = relevance(sentence) * (1 + FIT * fit), where fit is the cosine of the candidate with
    the asked-for noun, plus SAID when the evidence says so.
    """
    known = content_words(focus.whole)
    order = [int(index) for index in np.argsort(-field.relevance, kind="stable")[:SPAN_SENTENCES]]
    candidates: dict[str, tuple[str, int]] = {}
    for index in order:
        sentence = field.sentences[index]
        if focus.quantity:
            for match in _NUMBER.finditer(sentence.text):
                candidates.setdefault(match.group(), (match.group(), index))
        for entity in field.entities[index]:
            if not names(known, entity):
                candidates.setdefault(entity, (surface(sentence.text, entity), index))
    if not candidates:
        return []
    texts = list(candidates)
    fits = _fits(focus.asked, texts, field, order, reader)
    spans = [
        Span(
            text=candidates[text][0],
            score=float(field.relevance[candidates[text][1]]) * (1.0 + FIT * fits[position]),
            sentence=candidates[text][1],
        )
        for position, text in enumerate(texts)
    ]
    return sorted(spans, key=lambda span: (-span.score, span.text))


def _fits(asked: str, candidates: list[str], field: Field, order: list[int], reader: Reader) -> list[float]:
    if not asked:
        return [0.0] * len(candidates)
    vectors = reader.query_vectors([asked, *candidates])
    cosines = np.maximum(vectors[1:] @ vectors[0], 0.0)
    kind = content_words(asked)
    fits = []
    for candidate, cosine in zip(candidates, cosines, strict=True):
        said = content_words(candidate) & kind or any(
            _near(field.sentences[index].text, candidate, asked) for index in order
        )
        fits.append(float(cosine) + (SAID if said else 0.0))
    return fits


def _near(text: str, candidate: str, asked: str) -> bool:
    folded = text.casefold()
    at = folded.find(candidate.casefold())
    if at < 0:
        return False
    around = folded[max(0, at - NEAR_CHARS) : at + len(candidate) + NEAR_CHARS]
    return bool(content_words(asked.split()[-1]) & content_words(around))


def surface(text: str, entity: str) -> str:
    """The entity as the sentence writes it; its canonical name where the sentence has another form."""
    at = text.casefold().find(entity.casefold())
    return text[at : at + len(entity)] if at >= 0 else entity
