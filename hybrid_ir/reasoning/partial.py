"""The sentences in a JSON reply that is still being written."""

from __future__ import annotations

import json
import re

_TEXT = re.compile(r'"(?:text|short)"\s*:\s*"((?:[^"\\]|\\.)*+)("?)', re.DOTALL)
_HALF_ESCAPE = re.compile(r"\\u(?:d[89ab][0-9a-f]{2}(?:\\(?:u[0-9a-f]{0,3})?)?|[0-9a-f]{0,3})$", re.IGNORECASE)


class PartialText:
    """Takes the pieces of a reply, gives the pieces of what it says: the statements, a line each, and the short answer.

    Of a reply that is no JSON of ours it gives nothing.
    """

    def __init__(self) -> None:
        self._reply = ""
        self._given = 0
        """Characters given of the text that has not."""

    def feed(self, piece: str) -> str:
        """What ``piece`` adds."""
        self._reply += piece
        added = ""
        while match := _TEXT.search(self._reply):
            raw, ended = match[1], bool(match[2])
            text = _decoded(raw if ended else _HALF_ESCAPE.sub("", raw))
            added += text[self._given :]
            if not ended:
                self._given = max(self._given, len(text))
                return added
            added += "\n"
            self._given, self._reply = 0, self._reply[match.end() :]
        return added


def _decoded(raw: str) -> str:
    try:
        return str(json.loads(f'"{raw}"', strict=False))
    except ValueError:
        return raw
