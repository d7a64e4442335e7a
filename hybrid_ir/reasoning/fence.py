"""Text of other people in a prompt: in blocks whose borders it cannot write.

Each border line holds a code that is a hash of all the texts in the prompt: whoever wrote one of them cannot know it.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable

_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f\x80-\x9f]|[\u202a-\u202e\u2066-\u2069]")
"""Control characters, and those that turn the direction of writing."""
_CHAT_MARKS = re.compile(
    r"<(?=\|)|(?<=\|)>|<(?=/?(?:s|bos|eos|think|tool_call|start_of_turn|end_of_turn)>)|<<(?=/?SYS>>)|\[(?=/?INST\])"
    r"|<(?=[｜])|(?<=[｜])>",
    re.IGNORECASE,
)
"""Where chat templates' own marks begin and end, which a tokenizer would take for a new turn."""


def clean(text: str) -> str:
    """Without control characters, and with chat marks broken by a blank: ``<|im_start|>`` is ``< |im_start| >``."""
    text = _CONTROL.sub(" ", text.replace("\r\n", "\n").replace("\r", "\n"))
    return _CHAT_MARKS.sub(lambda mark: f" {mark[0]}" if mark[0] == ">" else f"{mark[0]} ", text)


class Fence:
    """The borders of one prompt's blocks."""

    def __init__(self, texts: Iterable[str]) -> None:
        held = [clean(text) for text in texts]
        digest = hashlib.sha256("\0".join(held).encode("utf-8", "surrogatepass"))
        while any(digest.hexdigest()[:12] in text for text in held):
            digest.update(b"again")
        self.code = digest.hexdigest()[:12]

    def block(self, name: str, text: str) -> str:
        """``name`` is ours; ``text`` is anyone's."""
        return f"{self._border(name)}\n{clean(text)}\n{self._border(f'end of {name}')}"

    def passages(self, labelled: Iterable[tuple[str, str]]) -> str:
        """Each passage under its label; a line says so where there is none."""
        lines = [f"{self._border(f'passage {label}')}\n{clean(text)}" for label, text in labelled]
        return "\n".join([*lines, self._border("end of passages")]) if lines else "There are no passages."

    def _border(self, name: str) -> str:
        return f"<<{self.code} {name}>>"
