"""JSON as language models write it, and what of it is whole where it was cut.

Beside JSON itself this reads what models put in its place: single or typographic quotes, quotes
inside a text that are not escaped, Python's tuples and constants, a comma too many or too few.
A list or an object that is not closed is a :class:`CutList` or :class:`CutDict` of its whole
members; a text or number that is cut is left out.
"""

from __future__ import annotations

import json
import re
from typing import Any

MOST_DEPTH = 12
MOST_STARTS = 50
"""Brackets in prose that begin no JSON are tried so often."""
MOST_CHARS = 200_000
"""What a longer reply says after these is not read."""

_SPACE = re.compile(r"[\s\ufeff]*")
_NUMBER = re.compile(r"-?\d+(?:\.\d+)?(?:[eE][-+]?\d+)?")
_WORD = re.compile(r"[A-Za-z]+")
_CONSTANTS = {"true": True, "false": False, "null": None, "True": True, "False": False, "None": None}
_QUOTES = {'"': '"', "'": "'", "“": "”", "”": "”", "„": "“", "‘": "’", "«": "»", "`": "`"}
_CLOSING = {"[": "]", "(": ")", "{": "}"}
_AFTER_TEXT = re.compile(r"[\s\ufeff]*(?:[,:;\]})]|$)")
_ESCAPE = re.compile(r"\\(.)", re.S)
_START = re.compile(r"[{\[]")


class CutList(list[Any]):
    """A list whose end is missing."""


class CutDict(dict[str, Any]):
    """An object whose end is missing."""


class _Malformed(Exception):
    """Nothing can be read from here on."""


class _End(_Malformed):
    """The text ends inside a value."""


def values(text: str) -> list[Any]:
    """The lists and objects of a text, whatever prose or fences stand between them."""
    text = text[:MOST_CHARS]
    found: list[Any] = []
    at = starts = 0
    while (start := _START.search(text, at)) is not None and starts < MOST_STARTS:
        try:
            value, at = _Reader(text).value(start.start(), 0)
            found.append(value)
        except _Malformed:
            at, starts = start.end(), starts + 1
    return found


class _Reader:
    """Each method takes a position and returns (value, position after it)."""

    def __init__(self, text: str) -> None:
        self._text = text

    def value(self, at: int, depth: int) -> tuple[Any, int]:
        at = self._space(at)
        if at >= len(self._text):
            raise _End
        first = self._text[at]
        if first in "[({":
            if depth >= MOST_DEPTH:
                raise _Malformed
            return self._object(at, depth) if first == "{" else self._list(at, depth)
        if first in _QUOTES:
            return self._string(at)
        if (number := _NUMBER.match(self._text, at)) is not None:
            if number.end() == len(self._text):
                raise _End
            return number.group(), number.end()  # as it stands: 1.50 stays 1.50
        word = _WORD.match(self._text, at)
        if word is not None and word.group() in _CONSTANTS:
            return _CONSTANTS[word.group()], word.end()
        raise _Malformed

    def _list(self, at: int, depth: int) -> tuple[list[Any], int]:
        close, items = _CLOSING[self._text[at]], list[Any]()
        at += 1
        while True:
            at = self._separators(at)
            if at >= len(self._text):
                return CutList(items), at
            if self._text[at] == close:
                return items, at + 1
            try:
                value, at = self.value(at, depth + 1)
            except _Malformed:  # all that follows may be displaced
                return CutList(items), len(self._text)
            items.append(value)

    def _object(self, at: int, depth: int) -> tuple[dict[str, Any], int]:
        members: dict[str, Any] = {}
        at += 1
        while True:
            at = self._separators(at)
            if at >= len(self._text):
                return CutDict(members), at
            if self._text[at] == "}":
                return members, at + 1
            try:
                key, at = self._string(at)
                at = self._space(at)
                if self._text[at : at + 1] != ":":
                    raise _Malformed
                value, at = self.value(at + 1, depth + 1)
            except _Malformed:
                if not members:
                    raise  # a brace in prose or LaTeX
                return CutDict(members), len(self._text)
            # A model that begins again writes the same key again: both are kept.
            if isinstance(value, list) and isinstance(members.get(key), list):
                value = type(value)([*members[key], *value])
            members[key] = value

    def _string(self, at: int) -> tuple[str, int]:
        closing = _QUOTES.get(self._text[at])
        if closing is None:
            raise _Malformed
        position = at + 1
        while position < len(self._text):
            c = self._text[position]
            if c == "\\":
                position += 2
                continue
            if c == closing and _AFTER_TEXT.match(self._text, position + 1):
                return _unescaped(self._text[at + 1 : position]), position + 1
            position += 1
        raise _End

    def _space(self, at: int) -> int:
        match = _SPACE.match(self._text, at)
        return match.end() if match else at

    def _separators(self, at: int) -> int:
        at = self._space(at)
        while at < len(self._text) and self._text[at] in ",;":
            at = self._space(at + 1)
        return at


def _unescaped(inside: str) -> str:
    if "\\" in inside:
        try:
            inside = json.loads(f'"{inside}"', strict=False)
        except ValueError:
            inside = _ESCAPE.sub(r"\1", inside)
    return inside.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
