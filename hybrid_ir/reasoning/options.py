"""Which option the evidence supports best, and yes, no or maybe."""

from __future__ import annotations

import re

import numpy as np

from hybrid_ir.reasoning.focus import Focus
from hybrid_ir.reasoning.sentences import Reader
from hybrid_ir.reasoning.support import Field, similarity
from hybrid_ir.reasoning.words import content_words, coverage
from hybrid_ir.records import Question

NAMED = 1.0
"""Weight of an option's own words in a sentence."""
MEANT = 0.5
"""Weight of the cosine of option and sentence: options are often paraphrased."""
SECOND = 0.3
"""Weight of the best sentence of a second chunk beside the best: two sources say more than one."""

POLAR_SENTENCES = 3
"""Sentences that vote on yes or no."""
POLAR_POWER = 6
"""Votes are relevance to this power: the sentence that speaks of the matter outvotes its neighbours."""

_NEGATION = re.compile(
    r"\b(?:no|not|never|neither|nor|cannot|none|nothing|hardly|fails?|failed|lacks?|lacking|absent|unlikely|"
    r"rather than|unchanged)\b|n't\b",
    re.IGNORECASE,
)
_HEDGE = re.compile(
    r"\b(?:unclear|uncertain|unknown|inconclusive|conflicting|controversial|insufficient|limited evidence|"
    r"further (?:studies|research|trials)|remains? to be|mixed results|not conclusive|debated)\b",
    re.IGNORECASE,
)
_OPPOSITES = tuple(
    (re.compile(rf"\b(?:{one})\b", re.IGNORECASE), re.compile(rf"\b(?:{other})\b", re.IGNORECASE))
    for one, other in (
        (
            r"safe\w*|help\w*|better|improv\w*|protect\w*|effective\w*|benefi\w*|useful",
            r"danger\w*|harm\w*|unsafe|useless|wors\w*|hinder\w*|avoid\w*|contraindicated|ineffective|poor\w*|impair\w*",
        ),
        (
            r"rais\w*|increas\w*|rise\w*|rising|higher|high|elevat\w*|more",
            r"lower\w*|low|reduc\w*|decreas\w*|fall\w*|less|fewer|suppress\w*",
        ),
    )
)
"""Words of opposite sense: a question with one and a sentence with only the other disagree."""


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


def polarity(focus: Focus, field: Field, reader: Reader) -> tuple[str, list[int]]:
    """``yes``, ``no`` or ``maybe`` by the sentences closest to the question, and those sentences.

    A sentence votes with (relevance + similarity to the main clause) ** POLAR_POWER: maybe if it
    hedges, no if it negates what the question says or says the opposite, else yes.
    """
    main = similarity(focus.main, field.vectors, field.words, field.weights, reader)
    scores = (field.direct + main) / 2.0
    order = [int(index) for index in np.argsort(-scores, kind="stable")[:POLAR_SENTENCES]]
    votes = {"yes": 0.0, "no": 0.0, "maybe": 0.0}
    for index in order:
        text = field.sentences[index].text
        vote = "maybe" if _HEDGE.search(text) else "no" if _disagrees(focus.main, text) else "yes"
        votes[vote] += float(scores[index]) ** POLAR_POWER
    return max(votes, key=lambda word: votes[word]), order


def _disagrees(question: str, sentence: str) -> bool:
    """Whether an odd number of the things that turn a meaning round stand between the two."""
    turns = (_NEGATION.search(question) is not None) != (_NEGATION.search(sentence) is not None)
    for sides in _OPPOSITES:
        for one, other in (sides, sides[::-1]):
            if one.search(question) and not other.search(question):
                turns |= other.search(sentence) is not None and not one.search(sentence)
    return turns
