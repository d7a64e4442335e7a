"""Yes, no or maybe, by what the evidence says and by what its studies found.

No language is understood here: cues of negation, opposition, hedging and of null results are
counted, weighted by how close their sentence is to the question.
"""

from __future__ import annotations

import re

import numpy as np

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

_NULL_RESULT = re.compile(
    r"\bno (?:statistically )?(?:significan\w*|difference\w*|association|correlation\w*|effect|evidence|relation\w*|"
    r"change|benefit|improvement|increase)\b"
    r"|\bnot (?:statistically )?(?:significant\w*|differ\w*|associated|correlat\w*|related|improve\w*|affect\w*|"
    r"change\w*|increase\w*|reduce\w*|predict\w*|influenc\w*)\b"
    r"|\bnon-?significant|\b(?:was|were) (?:similar|comparable|equivalent)\b|\bfailed to\b|\bdid not\b",
    re.IGNORECASE,
)
_POSITIVE_RESULT = re.compile(
    r"\bsignificant(?:ly)? (?:higher|lower|more|less|better|shorter|longer|increas\w*|decreas\w*|improv\w*|associat\w*|"
    r"correlat\w*|reduc\w*|differen\w*)\b|\b(?:was|were) (?:significantly|independently|strongly)\b"
    r"|\bp\s*[<=]\s*0?\.0[0-5]",
    re.IGNORECASE,
)
RESULT_POWER = 2
"""Results are often reported in words far from the question's, so their votes differ less than the sentences' own."""
LATE = 3.0
"""A result in the second half of its chunk counts this much more: abstracts report and conclude there."""


def polarity(focus: Focus, field: Field, reader: Reader) -> tuple[str, list[int]]:
    """``yes``, ``no`` or ``maybe`` by the sentences closest to the question, and those sentences.

    A sentence votes with (relevance + similarity to the main clause) ** POLAR_POWER: maybe if it
    hedges, no if it negates what the question says or says the opposite, else yes.  Where the
    chunks of these sentences report results of a study, a yes becomes a no if null results
    outweigh positive ones, and a no becomes a yes if it is the other way round.
    """
    main = similarity(focus.main, field.vectors, field.words, field.weights, reader)
    scores = (field.direct + main) / 2.0
    order = [int(index) for index in np.argsort(-scores, kind="stable")[:POLAR_SENTENCES]]
    votes = {"yes": 0.0, "no": 0.0, "maybe": 0.0}
    for index in order:
        text = field.sentences[index].text
        vote = "maybe" if _HEDGE.search(text) else "no" if _disagrees(focus.main, text) else "yes"
        votes[vote] += float(scores[index]) ** POLAR_POWER
    verdict = max(votes, key=lambda word: votes[word])
    null, positive = _results(field, {field.sentences[index].chunk.id for index in order})
    if verdict != "maybe" and null != positive:
        verdict = "no" if null > positive else "yes"
    return verdict, order


def _results(field: Field, chunks: set[str]) -> tuple[float, float]:
    """The weights of null and of positive results in these chunks; a sentence with both counts for neither."""
    ends = {sentence.chunk.id: sentence.position for sentence in field.sentences if sentence.last}
    null = positive = 0.0
    for sentence, direct in zip(field.sentences, field.direct, strict=True):
        if sentence.chunk.id not in chunks:
            continue
        is_late = 2 * sentence.position >= ends.get(sentence.chunk.id, 0)
        weight = float(direct) ** RESULT_POWER * (LATE if is_late else 1.0)
        is_null = _NULL_RESULT.search(sentence.text) is not None
        # "no significant difference" holds a "significant difference".
        is_positive = _POSITIVE_RESULT.search(_NULL_RESULT.sub(" ", sentence.text)) is not None
        null += weight * (is_null and not is_positive)
        positive += weight * (is_positive and not is_null)
    return null, positive


def _disagrees(question: str, sentence: str) -> bool:
    """Whether an odd number of the things that turn a meaning round stand between the two."""
    turns = (_NEGATION.search(question) is not None) != (_NEGATION.search(sentence) is not None)
    for sides in _OPPOSITES:
        for one, other in (sides, sides[::-1]):
            if one.search(question) and not other.search(question):
                turns |= other.search(sentence) is not None and not one.search(sentence)
    return turns
