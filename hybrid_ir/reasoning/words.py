"""Words for lexical overlap: what a text is about, folded so that forms of one word meet."""

from __future__ import annotations

import re
from collections.abc import Mapping

_WORD = re.compile(r"[^\W_]+(?:[-'’:*>.][^\W_]+)*")
"""Hyphens, stars and points inside a word stay: ``IL-6``, ``HLA-B*15:02``, ``m.1555A>G``."""

_FUNCTION_WORDS = frozenset(
    """
    a an the this that these those it its he his him she her they them their there here who whom whose which what when
    where why how is are was were be been being am do does did done has have had having can could may might must shall
    should will would and or but nor not no if then than so as at by for from in into of off on onto out over to up with
    without within about after again against all also any because before between both during each either few further
    however least less like likely many more most much neither now often once only other others own per quite rather
    same several since some such through thus too toward towards under until upon very via while yet you your we our us
    i one two three first second following patient patients best
    """.split()
)
"""Words that tell nothing about the subject of a medical question."""


def content_words(text: str) -> frozenset[str]:
    """The folded content words of a text; a word with hyphens also gives its parts."""
    found: set[str] = set()
    for match in _WORD.finditer(text.casefold()):
        word = match.group()
        parts = [word, *re.split(r"[-'’]", word)] if "-" in word or "’" in word or "'" in word else [word]
        found.update(stem(part) for part in parts if part not in _FUNCTION_WORDS and (len(part) > 1 or part.isdigit()))
    return frozenset(found)


def stem(word: str) -> str:
    """Inflection taken off an English word, crudely: ``binds``, ``binding`` and ``bind`` meet, ``bound`` does not.

    Words with a digit are names and stay.
    """
    if len(word) < 5 or any(c.isdigit() for c in word):
        return word[:-1] if len(word) == 4 and word.endswith("s") and not word.endswith("ss") else word
    for ending, replacement in (
        ("ies", "y"),
        ("sses", "ss"),
        ("ing", ""),
        ("ed", ""),
        ("es", ""),
        ("s", ""),
        ("e", ""),
    ):
        if word.endswith(ending) and not word.endswith(("ss", "us", "is")):
            return word[: len(word) - len(ending)] + replacement
    return word


def coverage(wanted: frozenset[str], found: frozenset[str], weights: Mapping[str, float]) -> float:
    """The weight of the wanted words that were found, over the weight of all wanted, in [0, 1]."""
    total = sum(weights.get(word, 1.0) for word in wanted)
    return sum(weights.get(word, 1.0) for word in wanted & found) / total if total else 0.0


def names(text_words: frozenset[str], entity: str) -> bool:
    """Whether a text with these words names the entity: all of the entity's content words are there."""
    words = content_words(entity)
    return bool(words) and words <= text_words
