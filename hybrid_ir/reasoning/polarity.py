"""Yes, no or maybe, by what the evidence says and by what its studies found.

No language is understood here: cues of negation, opposition, hedging and of null results are
counted, weighted by how close their sentence is to the question.
"""

from __future__ import annotations

import re

import numpy as np

from hybrid_ir.reasoning import studies
from hybrid_ir.reasoning.focus import Focus
from hybrid_ir.reasoning.sentences import Reader
from hybrid_ir.reasoning.support import Field, similarity

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


def polarity(focus: Focus, field: Field, reader: Reader) -> tuple[str, list[int]]:
    """``yes``, ``no`` or ``maybe`` by the sentences closest to the question, and those sentences.

    A sentence votes with (relevance + similarity to the main clause) ** POLAR_POWER: maybe if it
    hedges, no if it negates what the question says or says the opposite, else yes.  Where the
    closest sentence stands in the report of a study, what the report found says instead; see ``studies``.
    """
    main = similarity(focus.main, field.vectors, field.words, field.weights, reader)
    scores = (field.direct + main) / 2.0
    order = [int(index) for index in np.argsort(-scores, kind="stable")[:POLAR_SENTENCES]]
    report = _report(field, order[0])
    if studies.is_study(report):
        return studies.verdict(focus.whole, report), order
    votes = {"yes": 0.0, "no": 0.0, "maybe": 0.0}
    for index in order:
        text = field.sentences[index].text
        vote = "maybe" if _HEDGE.search(text) else "no" if _disagrees(focus.main, text) else "yes"
        votes[vote] += float(scores[index]) ** POLAR_POWER
    return max(votes, key=lambda word: votes[word]), order


def _report(field: Field, index: int) -> list[str]:
    """What the evidence holds of the document of a sentence, in the document's order."""
    document = field.sentences[index].chunk.document_id
    own = [sentence for sentence in field.sentences if sentence.chunk.document_id == document]
    return [sentence.text for sentence in sorted(own, key=lambda one: (one.chunk.position, one.position))]


def negates(text: str) -> bool:
    """Whether a text denies what it says."""
    return _NEGATION.search(text) is not None


def _disagrees(question: str, sentence: str) -> bool:
    """Whether an odd number of the things that turn a meaning round stand between the two."""
    turns = negates(question) != negates(sentence)
    for sides in _OPPOSITES:
        for one, other in (sides, sides[::-1]):
            if one.search(question) and not other.search(question):
                turns |= other.search(sentence) is not None and not one.search(sentence)
    return turns
