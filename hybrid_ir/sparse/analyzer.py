"""Text -> terms for BM25, such that medical names survive and their spellings meet.

``IL-2`` gives its whole ``il2`` and its parts ``il`` and ``2``, so that ``IL2`` finds it, and so
does ``TNFα`` with ``TNF-alpha``, ``β blockers`` with ``beta-blocker``, ``COVID`` with ``COVID-19``.
Case and accents are folded, for search is forgiving where a graph's names must not be.  Inflection
is taken off plain words alone, and of that only the plural: a stemmer that goes further merges
drugs with enzymes.  Scripts that write no blanks are cut into pairs of characters.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from itertools import pairwise

from hybrid_ir.extraction.plurals import singular

VERSION = 2
"""Raised when a text's terms change: an index of other terms cannot be searched or updated with these."""

LONGEST_TERM = 64
"""Longer ones (sequences, encoded bytes) are nobody's query and are left out."""

STOP_WORDS = frozenset(
    """
    a about after again all also although am an and any are as at be because been before being between both but by can
    could did do does doing done during each either for from further had has have having he her here hers him his how if
    in into is it its itself just many may me might more most much must my neither no nor not of off on once only or
    other our ours out over own same shall she should since so some such than that the their theirs them then there
    therefore these they this those through thus to too under until up upon us very was we were what when where whether
    which while who whom whose why will with within without would yet you your yours eg ie e.g i.e vs
    """.split()
)

_GREEK = dict(
    zip(
        "αβγδεζηθικλμνξοπρσςτυφχψω",
        "alpha beta gamma delta epsilon zeta eta theta iota kappa lambda mu nu xi omicron pi rho sigma sigma tau "
        "upsilon phi chi psi omega".split(),
        strict=True,
    )
)
_GREEK_LETTERS = re.compile(r"(?<![Ͱ-Ͽ])[Ͱ-Ͽ]{1,2}(?![Ͱ-Ͽ])")
"""One letter or two (``γδ T cells``) are a sign; more are a word of Greek."""
_MICRO = re.compile(r"μ(?=(?:g|l|m|mol|s|v|w|a|ci|kat|iu|u)(?![^\W_]))", re.IGNORECASE)
_HYPHENS = re.compile("[\u2010-\u2013\u2212\ufe63\uff0d]")
_MARKS = re.compile("[\u00ad\u200b-\u200f\u2060\ufeff\u0300-\u036f\u0591-\u05bd\u0640\u064b-\u0652]")
"""Accents, vowel points and characters without width."""
_BRACKETED = re.compile(r"(?<=[^\W_])\((\d?\+)\)|(?<=[A-Z])\((\d{1,2})\)")
"""``Ca(2+)`` and ``CO(2)``, as PubMed writes what stood as superscript or subscript."""
_THOUSANDS = re.compile(r"(?<![\d,.])\d{1,3}(?:,\d{3})+(?!,?\d|\.\d)")

_INSIDE = r"['’\-*+>]|(?<=\d)[.,:](?=\d)|(?<![^\W_][^\W_])\."
"""What may stand inside a name: ``5'-UTR``, ``B*15:02``, ``1,25-``, ``c.1555A>G``."""
_UNSPACED = "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af\U00020000-\U0003ffff"
"""Thai, Lao, Burmese, Khmer, Japanese, Chinese, Korean."""
_ASCII_WORD = re.compile(rf"[^\W_]+(?:(?:{_INSIDE})[^\W_]+)*\+?")
_CHARACTER = rf"(?:[^\W_{_UNSPACED}]|[\u0900-\u0dff])"  # the signs of Indic scripts are no letters to Python
_ANY_WORD = re.compile(rf"([{_UNSPACED}]+)|{_CHARACTER}+(?:(?:{_INSIDE}){_CHARACTER}+)*\+?")

_POSSESSIVE = re.compile(r"['’]s?$")
_SPLIT = re.compile(r"['’\-*:>+]|\.(?!\d)|(?<!\d)\.")
_GLUE = re.compile(r"['’]|(?<!\d)-|-(?!\d)")
"""Left out of a whole; a hyphen between two digits stays, as ``10-20`` is not ``1020``."""


def fingerprint() -> dict[str, str]:
    """What an index's terms depend on, as its manifest keeps it."""
    return {"kind": "medical words", "version": str(VERSION)}


def terms(text: str) -> list[str]:
    """The terms of a text in order, one for each occurrence; the length of the list is the text's length for BM25."""
    text = _normalised(text)
    pattern = _ASCII_WORD if text.isascii() else _ANY_WORD
    found: list[str] = []
    for match in pattern.finditer(text):
        word = match.group()
        if match.lastindex:
            found += [word[i : i + 2] for i in range(max(len(word) - 1, 1))]
        elif word == "A" and text[max(match.start() - 2, 0)].islower():
            found.append("a")  # "vitamin A", "hepatitis A"
        else:
            found += _terms_of(word.casefold())
    return found


def _terms_of(word: str) -> Iterator[str]:
    """A name's whole, its neighbouring parts in pairs where it has three or more, and its parts."""
    word = _POSSESSIVE.sub("", word)
    if word.isalnum():
        if word not in STOP_WORDS and len(word) <= LONGEST_TERM and (term := singular(word)) not in STOP_WORDS:
            yield term
        return
    if word in STOP_WORDS:
        return
    parts = [part for part in _SPLIT.split(word) if part]
    made = [_GLUE.sub("", word)]
    if len(parts) > 2:
        made += [
            f"{a}-{b}" if a[-1].isdigit() and b[0].isdigit() else a + b
            for a, b in pairwise(parts)
            if a not in STOP_WORDS and b not in STOP_WORDS
        ]
    made += [part for part in parts if part not in STOP_WORDS]
    # A whole may be a stop word that its parts are not: ``I-N``.
    found = dict.fromkeys(singular(term) for term in made if term and len(term) <= LONGEST_TERM)
    yield from (term for term in found if term not in STOP_WORDS)


def _normalised(text: str) -> str:
    """NFKC without accents; Greek letters spelt out as parts of their word, one kind of hyphen."""
    if not text.isascii():
        text = _HYPHENS.sub("-", unicodedata.normalize("NFKC", text))
        text = unicodedata.normalize("NFC", _MARKS.sub("", unicodedata.normalize("NFKD", text)))
        text = _GREEK_LETTERS.sub(_spelt, _MICRO.sub("u", text))
    text = _BRACKETED.sub(lambda match: match.group(1) or match.group(2), text)
    return _THOUSANDS.sub(lambda match: match.group().replace(",", ""), text)


def _spelt(match: re.Match[str]) -> str:
    letters = match.group().casefold()
    if any(letter not in _GREEK for letter in letters):
        return match.group()
    text, start, end = match.string, match.start(), match.end()
    before = "-" if start and text[start - 1].isalnum() else ""
    after = "-" if end < len(text) and text[end].isalnum() else ""
    return before + "-".join(_GREEK[letter] for letter in letters) + after
