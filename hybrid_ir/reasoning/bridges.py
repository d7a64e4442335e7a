"""Where the evidence leads beside the question's own names: the entities worth a query."""

from __future__ import annotations

import re
from collections import defaultdict

import numpy as np

from hybrid_ir.reasoning.kinds import is_medical, is_vague
from hybrid_ir.reasoning.known import Known
from hybrid_ir.reasoning.sentences import Reader
from hybrid_ir.reasoning.words import content_words, names

BRIDGE_SENTENCES = 20
"""Bridges are sought in the best sentences only: the evidence of one round holds hundreds of entities."""
MIN_BRIDGE_RARITY = 0.3
"""What stands in most chunks of the evidence (``patient``, ``disease``) leads nowhere new."""
NAMED = 0.8
"""Weight of a medical term or a proper name beside that of a topic: a passage of its own tells most."""
PLAIN = 0.5
"""Weight of a bridge that is an everyday word (``birth``, ``hold``): it names nothing in particular."""
APART = 0.1
"""What a bridge keeps that has nothing to do with any name of the question."""
ROOT = 6
"""Letters by which two words of one root begin."""
FILLED = "answer so far: "
BRIDGE = "bridge: "
"""How the reason of a sub-question begins that asks on with an answer, or with a bridge."""


def bridges(known: Known, reader: Reader) -> list[str]:
    """Entities of the best sentences that the question and its options do not name, best first.

        value(e) = sqrt(rarity(e)) * specific(e) * (APART + cos(e, names)) * max over s with e of relevance(s)

    ``rarity`` is that of the evidence; see ``_specific``; ``cos`` is with the nearest name of the
    question: bats are near the cave animals it asks about, a chicken house is not.  Skipped are
    bridges asked before.
    """
    state, field = known.state, known.field
    asked_words = [
        content_words(re.sub(f"^(?:{BRIDGE}|{FILLED})", "", sub.sub_question.reason))
        for round_ in state.rounds
        for sub in round_.sub_answers
        if sub.sub_question.reason.startswith((BRIDGE, FILLED))
    ]
    named = content_words(" ".join((known.focus.whole, *state.question.options.values())))
    order = np.argsort(-field.relevance, kind="stable")[:BRIDGE_SENTENCES]
    titles = list(dict.fromkeys(sentence.chunk.title for sentence in field.sentences))
    topics = frozenset(name for found in reader.mentions(titles) for name in found)
    value: dict[str, float] = defaultdict(float)
    for index in order:
        for entity in field.entities[int(index)]:
            rarity = field.rarity(entity)
            if (
                rarity >= MIN_BRIDGE_RARITY
                and content_words(entity)
                and not names(named, entity)
                and not is_vague(entity)
                and not any(_same_root(word, other) for word in content_words(entity) for other in named)
            ):
                worth = (
                    rarity * _specific(entity, field.sentences[int(index)].text, topics) * float(field.relevance[index])
                )
                value[entity] = max(value[entity], worth)
    candidates = sorted(value)
    anchors = [*(reader.mentions([known.focus.need])[0] or (known.focus.need,)), *(h.subject for h in known.plan.hops)]
    if candidates:
        nearness = (reader.query_vectors(candidates) @ reader.query_vectors(anchors).T).max(axis=1)
        for entity, near in zip(candidates, nearness, strict=True):
            value[entity] *= APART + max(float(near), 0.0)
    chosen: list[str] = []
    for entity in sorted(value, key=lambda name: (-value[name], name)):
        words = content_words(entity)
        if not any(words <= other or other <= words for other in asked_words):
            chosen.append(entity)
            asked_words.append(words)
    return chosen


def _same_root(word: str, other: str) -> bool:
    """``exploration`` says no more than ``explored``."""
    return len(word) > ROOT and word[:ROOT] == other[:ROOT]


def _specific(entity: str, sentence: str, topics: frozenset[str]) -> float:
    """1 for what a passage of the evidence has in its title, ``NAMED`` for a medical term and for a name with a
    capital or digit (a capital that begins the sentence tells nothing), ``PLAIN`` for the rest."""
    if entity in topics:
        return 1.0
    at = sentence.casefold().find(entity.casefold())
    shown = sentence[at : at + len(entity)] if at > 0 else entity
    proper = any(c.isdigit() or c.isupper() for c in shown)
    return NAMED if proper or is_medical(entity) else PLAIN
