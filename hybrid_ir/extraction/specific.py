"""Which names of a query are names, and which are everyday words that happen to be entities of some graph."""

from __future__ import annotations

import re
from functools import lru_cache

from hybrid_ir.errors import BadInput
from hybrid_ir.extraction import vocabulary
from hybrid_ir.extraction.plurals import singular
from hybrid_ir.extraction.words import ANAPHORIC

VOCABULARIES = ("diseases", "drugs", "phenotypes")


def is_specific(name: str, text: str) -> bool:
    """Whether ``text`` writes it with a capital or a digit, or a medical vocabulary lists it.

    A capital that begins the text tells nothing.  A name that does not stand in the text was given
    by someone who meant it.
    """
    at = re.search(re.escape(name), text, re.IGNORECASE)
    if at is None:
        return True
    shown = text[max(at.start(), 1) : at.end()]
    return any(c.isupper() or c.isdigit() for c in shown) or is_listed(name)


def is_listed(name: str) -> bool:
    """Whether a vocabulary lists it, or what is left of it without the word for its kind ("rabies virus").

    None does where the vocabularies' packages are not installed.
    """
    held = _vocabulary()
    if held is None:
        return False
    words = name.casefold().split()
    # Any listed word would do for more names ("stroke survivor"), and cost PubMedQA three first places of 400.
    proper = [word for word in words if singular(word) not in ANAPHORIC]
    return any(some and held.name(" ".join(some)) is not None for some in (words, proper))


@lru_cache(maxsize=1)
def _vocabulary() -> vocabulary.Vocabulary | None:
    try:
        return vocabulary.load(VOCABULARIES)
    except BadInput:
        return None
