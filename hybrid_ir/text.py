"""Text as people write it in medicine: where its sentences begin and end."""

from __future__ import annotations

import re

_BLANK_LINE = re.compile(r"\n\s*\n")

# The lookbehind and the possessive quantifiers keep this linear on megabytes of dots.
_STOP = re.compile(r"""(?<![.?!])[.?!]++["'”’»)\]]*+(?=\s)|[。！？]++""")

_NEVER_LAST = frozenset(
    """
    e.g i.e eg ie vs cf al approx ca viz fig figs eq eqs ref refs tab suppl dr drs prof mr mrs ms st resp
    incl excl sp spp subsp var gen dept univ
    """.split()
)
"""A full stop after these belongs to the word, whatever follows."""

_BEFORE_NUMBER = frozenset(
    "no nos vol p pp ch sec art ser chap para jan feb mar apr jun jul aug sep sept oct nov dec".split()
)
"""A full stop after these belongs to the word where a number follows: ``No. 5``, ``Jan. 1``."""

_STARTERS = frozenset(
    """
    A After All Although An As At Because Both But By Data During Each For From Furthermore He Her Here His However If
    In It Its Most Moreover No Of On Our Patients Results She Since Some Such That The Their Then There Therefore These
    They This Those Thus To Using We When Whereas While With
    """.split()
)
"""Words that tell ``hepatitis B. The`` (two sentences) from ``by J. Smith`` (one)."""

_INITIAL = re.compile(r"(?:[^\W\d_]\.)*[^\W\d_]")
_LIST_NUMBER = re.compile(r"\(?(?:\d{1,3}|[ivxIVX]{1,4}|[A-Za-z])(?:\.\d{1,3}){0,3}")
_OPENERS = "\"'“‘«([*_"
_CLOSERS = "\"'”’»)]"
_WINDOW = 48
"""Characters looked at on either side of a stop; a longer word decides nothing."""


def sentence_spans(text: str) -> list[tuple[int, int]]:
    """Offsets (start, end) of the sentences of ``text``.

    They are in order, do not overlap, begin and end with a character that is not blank, and
    together hold every character that is not blank.  A blank line, ``?`` and ``!`` end a
    sentence; a full stop does unless it belongs to a number, an initial or an abbreviation.
    """
    spans: list[tuple[int, int]] = []
    block_start = 0
    for gap in _BLANK_LINE.finditer(text):
        _add_block(text, block_start, gap.start(), spans)
        block_start = gap.end()
    _add_block(text, block_start, len(text), spans)
    return spans


def _add_block(text: str, start: int, end: int, spans: list[tuple[int, int]]) -> None:
    sentence_start = start
    for stop in _STOP.finditer(text, start, end):
        if _ends_sentence(text, sentence_start, stop, end):
            _add_span(text, sentence_start, stop.end(), spans)
            sentence_start = stop.end()
    _add_span(text, sentence_start, end, spans)


def _add_span(text: str, start: int, end: int, spans: list[tuple[int, int]]) -> None:
    while start < end and text[start].isspace():
        start += 1
    while end > start and text[end - 1].isspace():
        end -= 1
    if start < end:
        spans.append((start, end))


def _ends_sentence(text: str, sentence_start: int, stop: re.Match[str], block_end: int) -> bool:
    mark = stop.group().rstrip(_CLOSERS)
    following = text[stop.end() : min(stop.end() + _WINDOW, block_end)].split(maxsplit=1)
    if not following:
        return True
    after = following[0].lstrip(_OPENERS)
    if mark[-1] != ".":
        # "(P < 0.01!) in": only a closing bracket and a small letter say that the sentence goes on.
        return not (len(mark) < len(stop.group()) and after[:1].islower())
    window_start = max(sentence_start, stop.start() - _WINDOW)
    preceding = text[window_start : stop.start()].split()
    before = preceding[-1].lstrip(_OPENERS) if preceding else ""
    if not before or not after:
        return bool(after)
    first = after[0]
    if mark == "." and mark == stop.group():
        folded = before.casefold()
        if folded in _NEVER_LAST:
            return False
        if folded in _BEFORE_NUMBER and first.isdigit():
            return False
        is_first_word = len(preceding) == 1 and window_start == sentence_start
        if is_first_word and _LIST_NUMBER.fullmatch(before):
            return False
        if _INITIAL.fullmatch(before) and not (len(before) == 1 and before.islower()):
            after_plain_word = len(preceding) > 1 and preceding[-2].isalpha() and preceding[-2].islower()
            return after_plain_word and after.rstrip(",") in _STARTERS
    if first.islower():
        # mRNA, pH, p53, miR-21 and β-blockers may begin a sentence; an ordinary small word may not.
        word = after.rstrip(".,;:)")
        return "α" <= first <= "ω" or any(c.isupper() or c.isdigit() for c in word)
    return True
