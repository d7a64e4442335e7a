"""Words of a noun phrase: which of them count, and what the phrase is called."""

from __future__ import annotations

import re

from hybrid_ir.extraction.names import canonical, carries_case
from hybrid_ir.extraction.parse import Span, Token
from hybrid_ir.extraction.plurals import singular
from hybrid_ir.extraction.words import GENERIC, MONTHS, WEAK_MODIFIERS

_NUMBERED = frozenset("type grade stage class factor phase chromosome group subtype isoform".split())
_NUMERAL = re.compile(r"\d{1,2}[A-Za-z]?|[IVX]{1,4}[a-z]?|[A-Z]")
NUMERIC = frozenset("DATE TIME PERCENT MONEY QUANTITY CARDINAL ORDINAL".split())


def phrase_name(words: Span) -> str:
    """The name of a phrase: its text with the last word in the singular where it is a common noun."""
    name = canonical(words.text)
    head = words[-1]
    if head.tag_ == "NNS" or (head.pos_ == "NOUN" and head.text.islower()):
        before, _, last = name.rpartition(" ")
        stem, hyphen, tail = last.rpartition("-")
        last = f"{stem}{hyphen}{singular(tail)}"
        name = f"{before} {last}" if before else last
    after = words.doc[words.end].text if words.end < len(words.doc) else ""
    if head.lower_ in _NUMBERED and _NUMERAL.fullmatch(after):
        name = f"{name} {after}"  # "dehydrogenase type 2"
    return canonical(name)


def compound_start(words: Span) -> int:
    """Where the nouns before the head begin: ``lead`` in "severe acute lead poisoning"."""
    start = words.end - 1
    while start > words.start:
        before = words.doc[start - 1]
        hyphen = before.text == "-" and not before.whitespace_
        if not (before.pos_ in ("NOUN", "PROPN") or hyphen or carries_case(before.text)):
            break
        start -= 1
    while words.doc[start].text == "-":
        start += 1
    # "dose-dependent", "lidocaine-induced": a hyphen binds leftwards too
    if start > words.start and words.doc[start - 1].text == "-":
        start = words.end - 1
    return int(start)


def is_generic(token: Token) -> bool:
    word = token.lower_
    return word in WEAK_MODIFIERS or singular(word) in GENERIC or word in MONTHS or is_number(token)


def is_number(token: Token) -> bool:
    if token.ent_type_ in NUMERIC and (token.lower_ in MONTHS or singular(token.lower_) in GENERIC):
        return True
    text = token.text
    return not any(c.isalpha() for c in text.removesuffix("s")) or (token.like_num and text.islower())
