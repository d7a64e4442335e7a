"""Which option the evidence supports best."""

from __future__ import annotations

import numpy as np

from hybrid_ir.reasoning.focus import focus_of
from hybrid_ir.reasoning.polarity import negates
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
AGAINST = 0.5
"""Weight of the best sentence that denies an option beside the best that speaks for it."""
DENIED = 0.6
"""Share of an option's own words that a sentence with a negation must hold to deny it, ..."""
DENIED_OF = 0.5
"""... and share of the words of what asks: "can no longer serve X" denies nothing where the loss of X is asked."""


def option_support(question: Question, field: Field, reader: Reader) -> tuple[dict[str, float], dict[str, list[int]]]:
    """The support of each option, and the sentences that give it, best first.

        match(s, o) = NAMED * coverage(o, s) + MEANT * cos(o, s)
        support(o) = max over s of relevance(s) match(s, o), plus SECOND times the best of another chunk,
                     less AGAINST times the best that denies o

    A sentence denies an option where it names it, says what is asked, and negates, and neither what asks nor the
    option does: it is then no support.  ``coverage`` counts the option's words that the question does not hold: a word
    that all options share with the question tells nothing.
    """
    support: dict[str, float] = {}
    sentences: dict[str, list[int]] = {}
    asked = content_words(question.text)
    vectors = reader.query_vectors(list(question.options.values()))
    focus = focus_of(question)
    affirms = focus.inverted or not negates(focus.need)  # "all but which": each option is a plain statement
    wanted_of = content_words(focus.need)
    denies = np.array(
        [
            affirms and negates(sentence.text) and coverage(wanted_of, words, {}) >= DENIED_OF
            for sentence, words in zip(field.sentences, field.words, strict=True)
        ],
        bool,
    )
    for row, (letter, text) in enumerate(question.options.items()):
        wanted = content_words(text)
        wanted = (wanted - asked) or wanted
        named = np.array([coverage(wanted, found, field.weights) for found in field.words], np.float64)
        match = NAMED * named + MEANT * np.maximum(field.vectors @ vectors[row], 0.0)
        denied = (named >= DENIED) & denies & (not negates(text))
        scores = np.where(denied, 0.0, field.relevance * match)
        against = np.where(denied, field.relevance * match, 0.0)
        order = [int(index) for index in np.argsort(-scores, kind="stable")[:8]]
        first = order[0] if order else None
        second = next(
            (i for i in order if first is not None and field.sentences[i].chunk.id != field.sentences[first].chunk.id),
            None,
        )
        support[letter] = (float(scores[first]) if first is not None else 0.0) + (
            SECOND * float(scores[second]) if second is not None else 0.0
        )
        support[letter] -= AGAINST * float(against.max(initial=0.0))
        sentences[letter] = [index for index in (first, second) if index is not None]
    return support, sentences
