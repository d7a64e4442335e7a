"""The JSON object in what a model wrote: bare, fenced, with words around it, or cut off."""

from __future__ import annotations

import json
import re
from collections.abc import Container
from typing import Any

MAX_CHARS = 200_000
"""Of a longer reply the end is read."""
MAX_TRIES = 50
"""Opening braces that are tried; each costs at most one pass over the reply."""

_DECODER = json.JSONDecoder(strict=False)
_TOKEN = re.compile(r'"(?:[^"\\]|\\.)*+"?|[{}\[\],]', re.DOTALL)
_CLOSERS = {"{": "}", "[": "]"}
_THOUGHT = re.compile(r"\A.*</think>", re.DOTALL)
_COMMA = re.compile(r",(?=\s*[}\]])")
_PYTHON = re.compile(r'"(?:[^"\\]|\\.)*+"|\b(?:True|False|None)\b', re.DOTALL)
_WORDS = {"True": "true", "False": "false", "None": "null"}


def json_object(reply: str, keys: Container[str]) -> dict[str, Any] | None:
    """The last object of ``reply`` that has one of ``keys``; of one that is cut off, what had come to its end.

    Forgiven: a fence, text before and after, raw line breaks in strings, a comma too many, Python's ``True``.
    What a reasoning model thinks before ``</think>`` is not looked at.
    """
    text = _THOUGHT.sub("", reply[-MAX_CHARS:])
    found = _whole(text, keys)
    if found is None:
        mended = _PYTHON.sub(lambda match: _WORDS.get(match[0], match[0]), _COMMA.sub("", text))
        found = _whole(mended, keys) or _cut_off(mended, keys)
    return found


def _whole(text: str, keys: Container[str]) -> dict[str, Any] | None:
    found: dict[str, Any] | None = None
    at, tries = text.find("{"), 0
    while at >= 0 and tries < MAX_TRIES:
        tries += 1
        try:
            value, end = _DECODER.raw_decode(text, at)
        except (ValueError, RecursionError):
            end = at + 1
        else:
            if isinstance(value, dict) and any(key in keys for key in value):
                found = value
        at = text.find("{", end)
    return found


def _cut_off(text: str, keys: Container[str]) -> dict[str, Any] | None:
    """The longest beginning of the last open object that is whole when its brackets are closed."""
    at, tries = text.find("{"), 0
    while at >= 0 and tries < 3:
        tries += 1
        open_: list[str] = []
        ends: list[tuple[int, str]] = []
        for token in _TOKEN.finditer(text, at):
            mark = token[0]
            if mark in _CLOSERS:
                open_.append(_CLOSERS[mark])
                continue
            if mark in "}]":
                if not open_ or open_.pop() != mark or not open_:
                    break
                ends.append((token.end(), "".join(reversed(open_[-50:]))))
            elif mark[0] == '"' and (len(mark) == 1 or mark[-1] != '"'):
                break  # the string that was being written
            elif open_:  # a comma ends a value, and so may a string
                end = token.start() if mark == "," else token.end()
                ends.append((end, "".join(reversed(open_[-50:]))))
        for end, closers in reversed(ends[-MAX_TRIES:]):
            try:
                value = json.loads(text[at:end] + closers, strict=False)
            except (ValueError, RecursionError):
                continue
            if isinstance(value, dict) and any(key in keys for key in value):
                return value
        at = text.find("{", at + 1)
    return None
