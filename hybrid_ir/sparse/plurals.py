"""Plural -> singular of English words, by their endings (the S-stemmer of Harman 1991, with medicine's plurals)."""

from __future__ import annotations

_NAMES = frozenset("aids ards mers sars caries rabies scabies series species".split())
"""What is no plural, or would become another word: ``AIDS`` is no aid."""

_GREEK_PLURALS = ("noses", "lyses", "theses", "stases", "croses", "broses", "choses")
"""``diagnoses``, ``analyses``, ``metastases``, ``necroses``, but not ``diseases`` and ``doses``."""
_LATIN_PLURALS = ("ruses", "nuses", "tuses", "cuses")
"""``viruses``, ``sinuses``, ``fetuses``, ``focuses``, but not ``causes``."""


def singular(word: str) -> str:
    """A word in lower case without its plural ending; what holds a digit or a sign stays as it is."""
    if len(word) < 4 or word[-1] != "s" or not (word.isascii() and word.isalpha()) or word in _NAMES:
        return word
    if word.endswith(("ss", "us", "is")):
        return word
    if word.endswith("ies") and len(word) > 4:
        return word[:-3] + "y"
    if word.endswith(_GREEK_PLURALS):
        return word[:-2] + "is"
    if word.endswith((*_LATIN_PLURALS, "xes", "ches", "shes", "sses", "zzes")):
        return word[:-2]
    return word[:-1]
