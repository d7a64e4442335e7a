"""The short answer to an open question: a name in the evidence that fits what is asked."""

from __future__ import annotations

import re
from dataclasses import dataclass

import numpy as np

from hybrid_ir.reasoning.focus import Focus, asked_noun
from hybrid_ir.reasoning.sentences import Reader
from hybrid_ir.reasoning.support import Field
from hybrid_ir.reasoning.words import content_words, names, stem

SPAN_SENTENCES = 32
"""Answers are sought in the best sentences only."""
MEANT = 0.5
"""Weight of the cosine of the candidate with the asked-for noun."""
SAID = 0.4
"""Added where the evidence says that the candidate is of the kind: ``the enzyme X``, ``X is an enzyme``."""
KIND_ONLY = 0.5
"""Taken off a candidate that only describes: ``a human antibody`` is what the answer is, not its name."""
NEAR_WORDS = 6
"""How near the kind's name must stand."""
ALIKE = 0.5
"""Share of an entity's words that a stretch of the sentence must hold to be its surface form."""

_NUMBER = re.compile(r"\d[\d.,]*(?:\s?(?:%|percent|mg|g|ml|mmol/l|hours?|days?|weeks?|months?|years?))?")
_CODE = re.compile(r"(?<![\w-])(?=[\w.*:>/-]*\d)(?=[\w.*:>/-]*[A-Za-z])[A-Za-z0-9][\w.*:>/-]*[\w]")
"""Genes, alleles, variants: ``CYP2C9``, ``HLA-B*15:02``, ``m.1555A>G``."""
_TOKEN = re.compile(r"[^\W_]+")


@dataclass(frozen=True)
class Span:
    """A candidate answer, as it stands in the sentence."""

    text: str
    score: float
    sentence: int


def best_spans(focus: Focus, field: Field, reader: Reader) -> list[Span]:
    """Candidates, best first; empty when no sentence names anything new.

    Candidates are the entities (and codes; numbers where a quantity is asked) of the best
    sentences that the question does not name.

        score = relevance(s) (1 + MEANT cos(candidate, kind) + SAID - KIND_ONLY)

    for the best sentence s that holds it, the last two terms where they apply.
    """
    known = content_words(focus.whole)
    kind = asked_noun(focus, reader.mentions([focus.need])[0])
    order = [int(index) for index in np.argsort(-field.relevance, kind="stable")[:SPAN_SENTENCES]]
    first: dict[str, int] = {}
    for index in order:
        text = field.sentences[index].text
        found = [*field.entities[index], *_CODE.findall(text)]
        if focus.quantity:
            found += [match.group() for match in _NUMBER.finditer(text)]
        for name in found:
            if not names(known, name) and (content_words(name) or focus.quantity):
                first.setdefault(name, index)
    candidates = list(first)
    fits = _fits(kind, candidates, [field.sentences[index].text for index in order], reader)
    spans = [
        Span(
            surface(field.sentences[first[name]].text, name),
            float(field.relevance[first[name]]) * (1 + fit),
            first[name],
        )
        for name, fit in zip(candidates, fits, strict=True)
    ]
    return sorted(spans, key=lambda span: (-span.score, span.text))


def _fits(kind: str, candidates: list[str], texts: list[str], reader: Reader) -> list[float]:
    if not kind or not candidates:
        return [0.0] * len(candidates)
    vectors = reader.query_vectors([kind, *candidates])
    cosines = np.maximum(vectors[1:] @ vectors[0], 0.0)
    head = stem(kind.casefold().split()[-1])
    tokens = [[stem(token) for token in _TOKEN.findall(text.casefold())] for text in texts]
    raw = [_TOKEN.findall(text.casefold()) for text in texts]
    fits = []
    for candidate, cosine in zip(candidates, cosines, strict=True):
        words = [stem(token) for token in _TOKEN.findall(candidate.casefold())]
        said = described = False
        for stems, plain in zip(tokens, raw, strict=True):
            at = _find(stems, words)
            if at is None:
                continue
            around = stems[max(0, at - NEAR_WORDS) : at + len(words) + NEAR_WORDS]
            said |= head in around
            described |= words[-1] == head and bool({"a", "an"} & set(plain[max(0, at - 3) : at]))
        fits.append(MEANT * float(cosine) + SAID * said - KIND_ONLY * described)
    return fits


def _find(tokens: list[str], words: list[str]) -> int | None:
    return next((at for at in range(len(tokens) - len(words) + 1) if tokens[at : at + len(words)] == words), None)


def surface(text: str, entity: str) -> str:
    """The entity as the sentence writes it: ``small-cell lung cancer`` for ``small cell lung carcinoma``.

    The stretch of as many words that shares most with the name, if that is more than ``ALIKE``;
    else the name itself.
    """
    tokens = list(_TOKEN.finditer(text))
    words = [stem(token) for token in _TOKEN.findall(entity.casefold())]
    stems = [stem(token.group().casefold()) for token in tokens]
    best, at = ALIKE * len(words), None
    for start in range(len(tokens) - len(words) + 1):
        shared = sum(a == b for a, b in zip(stems[start : start + len(words)], words, strict=True))
        if shared > best:
            best, at = shared, start
    return entity if at is None else text[tokens[at].start() : tokens[at + len(words) - 1].end()]
