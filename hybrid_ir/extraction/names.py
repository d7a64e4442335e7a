"""Names of entities: the one form under which an entity stands in the graph.

Two surface forms become one name only where nothing is lost: white space, dashes, articles and
case without meaning.  What differs in meaning stays apart: ``CAT`` (a gene) and ``cat``,
``10⁵`` and ``105``, ``α`` and ``a``.
"""

from __future__ import annotations

import re
import unicodedata
from functools import lru_cache

_DASHES = dict.fromkeys(map(ord, "‐‑‒–—―−﹘﹣－"), "-")
_QUOTES = {ord("’"): "'", ord("‘"): "'", ord("ʼ"): "'", ord("′"): "'", ord("µ"): "μ"}
# Zero-width characters and soft hyphens are typesetting.  The joiners U+200C and U+200D are
# spelling in some scripts and stay.
_INVISIBLE = dict.fromkeys(map(ord, "\u00ad\u200b\u2060\ufeff"), None)
_FOLDS = {**_DASHES, **_QUOTES, **_INVISIBLE}

_LEADING = frozenset("a an the this that these those his her hers its their theirs our ours my mine your yours".split())
_NO_NAME = _LEADING | frozenset(
    """i me we us you he him she it they them who whom whose which what when where why how there here one ones
    itself himself herself themselves others something anything nothing someone everyone and or of in to by
    with for from at on as some any each every no another such all both either neither several many most other
    various""".split()
)
_NUMBER = re.compile(r"[\d\s.,:;/%+*×x<>=≤≥~±°()\[\]^-]+(?:e-?\d+)?", re.IGNORECASE)
_CAPITALISED = re.compile(r"[^\W\d_][^\W\d_]{2,}")
_OPENING = {")": "(", "]": "[", "}": "{"}
_CLOSING = {"(": ")", "[": "]", "{": "}"}


def canonical(name: str) -> str:
    """The graph's form of a name, or ``""`` where it names nothing (a pronoun, a number, signs only).

    Idempotent.  NFC, not NFKC, which would turn ``10⁵`` into ``105``.
    """
    text = unicodedata.normalize("NFC", name).translate(_FOLDS)
    text = "".join(" " if unicodedata.category(c) in ("Cc", "Cs") else c for c in text)
    while True:
        words = _strip(" ".join(text.split())).split()
        while words and words[0].lower() in _LEADING and not carries_case(words[0]):
            words = words[1:]
        if words and words[-1] == "'s":
            words = words[:-1]
        elif words and words[-1].endswith("'s"):
            words[-1] = words[-1][:-2]
        after = " ".join(word if carries_case(word) else word.lower() for word in words)
        # Lower-casing may compose or decompose letters; normal form is part of the promise.
        after = unicodedata.normalize("NFC", after)
        if after == text:
            break
        text = after
    return "" if _names_nothing(text) else text


@lru_cache(maxsize=65536)
def carries_case(word: str) -> bool:
    """Whether the case of a word is part of its meaning: ``IL-2Rα``, ``CAT``, ``CYP2C9``, ``NaCl``, ``pH``.

    Two or more capitals, a capital with a digit, or a capital after a small letter; Greek counts
    as a letter without case, so that ``IL-2Rα`` keeps its small alpha.
    """
    capitals = sum(1 for c in word if c.isupper())
    if not capitals:
        return False
    if capitals >= 2 and not _titled_parts(word):
        return True
    if any(c.isdigit() for c in word):
        return capitals > 1 or not _CAPITALISED.match(word)  # "Glucose-6-phosphate" only begins a sentence
    first = next((c for c in word if c.isalpha()), "")
    return capitals == 1 and not first.isupper()


def _titled_parts(word: str) -> bool:
    """Whether each capital only begins a part of at least two letters: ``Klippel-Trenaunay``, ``O'Brien``."""
    parts = [part for part in re.split(r"[-'/.]", word) if any(c.isalpha() for c in part)]
    if len(parts) < 2:
        return False
    lone = [part for part in parts if len(part) == 1 and part.isupper()]
    if len(lone) == len(parts):
        return False
    return all(not any(c.isupper() for c in part[1:]) for part in parts) and (not lone or "'" in word)


def _strip(text: str) -> str:
    """Surrounding punctuation goes; a bracket or sign that belongs to the name (``CD4+``, ``Fe(II)``) stays."""
    while text:
        first, last = text[0], text[-1]
        if len(text) > 1 and _CLOSING.get(first) == last and _encloses(text):
            text = text[1:-1].strip()
        elif not _starts_a_name(first, text):
            text = text[1:].lstrip()
        elif not _ends_a_name(last, text):
            text = text[:-1].rstrip()
        else:
            break
    return text


def _encloses(text: str) -> bool:
    depth = 0
    for position, c in enumerate(text):
        depth += (c == text[0]) - (c == text[-1])
        if depth == 0:
            return position == len(text) - 1
    return False


def _starts_a_name(c: str, text: str) -> bool:
    if c in _CLOSING:
        return _CLOSING[c] in text  # (R)-warfarin, [3H]-naloxone
    return not _is_edge(c)


def _ends_a_name(c: str, text: str) -> bool:
    if c in _OPENING:
        return _OPENING[c] in text
    if c == "+" or (c == "-" and len(text) > 1 and text[-2].isdigit() and any(x.isupper() for x in text)):
        return len(text) > 1  # CD4+, CD4-
    return not _is_edge(c)


def _is_edge(c: str) -> bool:
    return unicodedata.category(c)[0] in "PZ" or c in "=<>|~^`+*±×"


def _names_nothing(text: str) -> bool:
    if not any(unicodedata.category(c)[0] in "LS" for c in text):
        return True
    if not any(c.isalpha() for c in text) and not any(unicodedata.category(c) == "So" for c in text):
        return True
    return (text.lower() in _NO_NAME and not carries_case(text)) or _NUMBER.fullmatch(text) is not None
