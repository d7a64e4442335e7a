"""Which option the evidence supports best, and yes, no or maybe."""

from __future__ import annotations

import re

import numpy as np

from hybrid_ir.reasoning.focus import Focus
from hybrid_ir.reasoning.sentences import Reader
from hybrid_ir.reasoning.support import Field
from hybrid_ir.reasoning.words import content_words, coverage
from hybrid_ir.records import Question

NAMED = 1.0
"""Weight of an option's own words in a sentence."""
MEANT = 0.5
"""Weight of the cosine of option and sentence: options are often paraphrased."""
SECOND = 0.3
"""Weight of the best sentence of a second chunk beside the best: two sources say more than one."""

POLAR_SENTENCES = 4
"""Sentences that vote on yes or no."""

_NEGATION = re.compile(
    r"\b(?:no|not|never|neither|nor|without|cannot|none|nothing|hardly|fails?|failed|lacks?|lacking|absent|unlikely|"
    r"useless|avoid(?:ed|s)?|contraindicated|unsafe|harmful|dangerous|forbidden|instead|rather than|"
    r"no longer|ineffective|unchanged|poorly|hinders?|worse)\b|n't\b",
    re.IGNORECASE,
)
_HEDGE = re.compile(
    r"\b(?:unclear|uncertain|unknown|inconclusive|conflicting|controversial|insufficient|limited evidence|"
    r"further (?:studies|research|trials)|remains? to be|mixed results|not conclusive|debated)\b",
    re.IGNORECASE,
)


def option_support(question: Question, field: Field, reader: Reader) -> tuple[dict[str, float], dict[str, list[int]]]:
    """The support of each option, and the sentences that give it, best first.

        match(s, o) = NAMED * coverage(o, s) + MEANT * cos(o, s)
        support(o) = max over s of relevance(s) match(s, o), plus SECOND times the best of another chunk

    ``coverage`` counts the option's words that the question does not hold: a word that all
    options share with the question tells nothing.
    """
    support: dict[str, float] = {}
    sentences: dict[str, list[int]] = {}
    asked = content_words(question.text)
    vectors = reader.query_vectors(list(question.options.values()))
    for row, (letter, text) in enumerate(question.options.items()):
        wanted = content_words(text)
        wanted = (wanted - asked) or wanted
        named = np.array([coverage(wanted, found, field.weights) for found in field.words], np.float64)
        match = NAMED * named + MEANT * np.maximum(field.vectors @ vectors[row], 0.0)
        scores = field.relevance * match
        order = [int(index) for index in np.argsort(-scores, kind="stable")[:8]]
        first = order[0] if order else None
        second = next(
            (i for i in order if first is not None and field.sentences[i].chunk.id != field.sentences[first].chunk.id),
            None,
        )
        support[letter] = (float(scores[first]) if first is not None else 0.0) + (
            SECOND * float(scores[second]) if second is not None else 0.0
        )
        sentences[letter] = [index for index in (first, second) if index is not None]
    return support, sentences


def polarity(focus: Focus, field: Field) -> tuple[str, list[int]]:
    """``yes``, ``no`` or ``maybe`` by the sentences most relevant to the question, and those sentences.

    Each votes with its relevance: no where it negates, maybe where it hedges.
    """
    order = [int(index) for index in np.argsort(-field.relevance, kind="stable")[:POLAR_SENTENCES]]
    votes = {"yes": 0.0, "no": 0.0, "maybe": 0.0}
    flipped = _NEGATION.search(focus.need) is not None
    for index in order:
        text = field.sentences[index].text
        weight = float(field.relevance[index]) ** 4
        if _HEDGE.search(text):
            votes["maybe"] += weight
        elif (_NEGATION.search(text) is not None) != flipped:
            votes["no"] += weight
        else:
            votes["yes"] += weight
    verdict = max(votes, key=lambda word: votes[word])
    return verdict, order
