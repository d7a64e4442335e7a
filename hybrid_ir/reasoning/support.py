"""How well the sentences of the evidence support a question: directly, and over chains.

Spreading activation.  A sentence is relevant to the question by

    direct(s) = max over the question's sentences q of  w_q (cos(q, s) + OVERLAP * coverage(q, s))

with w = 1 for the sentence that asks and CONTEXT for the others; ``coverage`` is the share of
q's content words, weighted by rarity, that s or its title holds.  A sentence that is not about
the question itself may share a *bridge* with one that is: an entity that is rare in the
evidence.  Then

    chained(s) = max over bridges e of s, sentences t with e, t != s of  rarity(e) direct(t)
    relevance(s) = direct(s) + CHAIN * chained(s)

so that "Rabies virus travels by dynein" counts for a question on bats, because "Bats carry
rabies virus" does.  Each step is linear in the number of (sentence, entity) pairs.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hybrid_ir.reasoning.focus import Focus
from hybrid_ir.reasoning.sentences import Reader, Sentence
from hybrid_ir.reasoning.words import content_words, coverage

OVERLAP = 0.5
"""Weight of shared words beside the cosine: sentence encoders blur names, drugs and numbers."""
CONTEXT = 0.8
"""Weight of a question's other sentences beside the one that asks."""
FILLED = 0.95
"""Weight of the question with answers filled in: they may be wrong."""
CHAIN = 0.3
"""Weight of one step over a bridge; two steps are worth its square."""
STEPS = 2
"""Bridges in a chain: a question of three hops has two."""


@dataclass(frozen=True)
class Field:
    """Sentences with their relevance to one question; all arrays have shape (sentences,)."""

    sentences: list[Sentence]
    entities: list[tuple[str, ...]]
    """Of each sentence, its chunk's title among them."""
    words: list[frozenset[str]]
    """Of each sentence and its chunk's title."""
    weights: dict[str, float]
    """Rarity of each content word in the evidence, in (0, 1]."""
    vectors: NDArray[np.float32]
    direct: NDArray[np.float64]
    need: NDArray[np.float64]
    """Relevance to the asking sentence alone."""
    relevance: NDArray[np.float64]

    def rarity(self, text: str) -> float:
        """The mean rarity of a name's words."""
        words = content_words(text)
        return sum(self.weights.get(word, 1.0) for word in words) / len(words) if words else 0.0


def field_of(focus: Focus, sentences: list[Sentence], reader: Reader, filled: str = "", chains: bool = True) -> Field:
    """Score the sentences for the question; ``filled`` is what asks, with the answers so far in the place of parts.

    Without ``chains`` no entities are looked for, which is most of the work, and relevance is the direct one alone.
    """
    words = [sentence.words | content_words(sentence.chunk.title) for sentence in sentences]
    weights = _rarities(sentences, words)
    vectors = reader.vectors(sentences)
    entities: list[tuple[str, ...]] = _entities(sentences, reader) if chains else [()] * len(sentences)
    need = similarity(focus.need, vectors, words, weights, reader)
    direct = need
    for text in focus.context:
        direct = np.maximum(direct, CONTEXT * similarity(text, vectors, words, weights, reader))
    if filled:
        direct = np.maximum(direct, FILLED * similarity(filled, vectors, words, weights, reader))
    relevance = _spread(direct, sentences, entities, weights) if chains else direct
    return Field(sentences, entities, words, weights, vectors, direct, need, relevance)


def _entities(sentences: list[Sentence], reader: Reader) -> list[tuple[str, ...]]:
    own = reader.mentions([sentence.text for sentence in sentences])
    titles = reader.mentions([sentence.chunk.title for sentence in sentences])
    return [tuple(dict.fromkeys((*mentions, *named))) for mentions, named in zip(own, titles, strict=True)]


def similarity(
    text: str,
    vectors: NDArray[np.float32],
    words: list[frozenset[str]],
    weights: dict[str, float],
    reader: Reader,
) -> NDArray[np.float64]:
    """Cosine plus weighted overlap of ``text`` with each sentence; shape (sentences,), from 0 to 1 + OVERLAP."""
    cosines = np.maximum(vectors @ reader.query_vectors([text])[0], 0.0).astype(np.float64)
    wanted = content_words(text)
    shared = np.array([coverage(wanted, found, weights) for found in words], np.float64)
    scores: NDArray[np.float64] = cosines + OVERLAP * shared
    return scores


def _rarities(sentences: list[Sentence], words: list[frozenset[str]]) -> dict[str, float]:
    """log(1 + N / n) over the chunks, scaled so that a word of a single chunk has 1 (inverse document frequency)."""
    chunks: dict[str, set[str]] = defaultdict(set)
    for sentence, found in zip(sentences, words, strict=True):
        chunks[sentence.chunk.id] |= found
    counts = Counter(word for found in chunks.values() for word in found)
    top = math.log1p(len(chunks)) or 1.0
    return {word: math.log1p(len(chunks) / count) / top for word, count in counts.items()}


def _spread(
    direct: NDArray[np.float64],
    sentences: list[Sentence],
    entities: list[tuple[str, ...]],
    weights: dict[str, float],
) -> NDArray[np.float64]:
    rarity: dict[str, float] = {}
    for entity in {entity for found in entities for entity in found}:
        words = content_words(entity)
        rarity[entity] = sum(weights.get(word, 1.0) for word in words) / len(words) if words else 0.0
    best = direct.copy()
    chained = np.zeros_like(direct)
    for step in range(1, STEPS + 1):
        # The two best sentences of each entity, from different chunks: a chain does not return to its own.
        top: dict[str, list[tuple[float, str]]] = defaultdict(list)
        for index, found in enumerate(entities):
            for entity in found:
                held = top[entity]
                held.append((float(best[index]), sentences[index].chunk.id))
                if len(held) > 2:
                    top[entity] = _two_best(held)
        reached = np.zeros_like(direct)
        for index, found in enumerate(entities):
            here = sentences[index].chunk.id
            reached[index] = max(
                (rarity[e] * score for e in found for score, chunk in _two_best(top[e]) if chunk != here), default=0.0
            )
        chained = np.maximum(chained, CHAIN ** (step - 1) * reached)
        best = reached
    return direct + CHAIN * chained


def _two_best(held: list[tuple[float, str]]) -> list[tuple[float, str]]:
    ordered = sorted(held, reverse=True)
    other = next((item for item in ordered if item[1] != ordered[0][1]), None)
    return [ordered[0]] if other is None else [ordered[0], other]
