"""The JSON object that a model was asked for, in what it wrote: bare, fenced, with words around it, or cut off."""

from __future__ import annotations

import re
from collections.abc import Container, Iterator
from typing import Any

from hybrid_ir.llm.json_text import MOST_CHARS, CutDict, values

_THOUGHT = re.compile(r"\A.*</think>", re.DOTALL)


def json_object(reply: str, keys: Container[str]) -> dict[str, Any] | None:
    """The last object of ``reply`` that has one of ``keys``, a whole one before one that is cut off.

    Of one that is cut off it is what had come to its end.  What a reasoning model thinks before ``</think>`` is not
    looked at, and of a very long reply the end is read.
    """
    found = [
        one
        for value in values(_THOUGHT.sub("", reply[-MOST_CHARS:]))
        for one in _objects(value)
        if any(key in keys for key in one)
    ]
    whole = [one for one in found if not isinstance(one, CutDict)]
    best = whole or found
    return best[-1] if best else None


def _objects(value: Any) -> Iterator[dict[str, Any]]:
    """An object, or those of a list."""
    if isinstance(value, dict):
        yield value
    elif isinstance(value, list):
        for item in value:
            yield from _objects(item)
