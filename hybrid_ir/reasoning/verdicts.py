"""The kind of verdict that a question wants from a language model: an option, yes or no or maybe, a few words."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from hybrid_ir.reasoning import replies
from hybrid_ir.reasoning.focus import POLAR_WORDS, focus_of
from hybrid_ir.reasoning.replies import Said
from hybrid_ir.records import Question


@dataclass(frozen=True)
class Wanted:
    """How the verdict is asked for and read."""

    name: str
    """Of the final prompt."""
    options: Mapping[str, str]
    """Letters to texts; empty: an open question."""
    field: str
    words: tuple[str, ...]
    """What the field may hold; empty: any text."""

    @property
    def schema(self) -> dict[str, dict[str, Any]]:
        return {self.field: replies.words_schema(self.words) if self.words else replies.SHORT_SCHEMA}

    @property
    def form(self) -> str:
        """The field in words."""
        told = f"one of {', '.join(self.words)}" if self.words else "the answer in as few words as it takes"
        return f'"{self.field}": {told}'

    def read(self, reply: str) -> Said | None:
        return replies.read_option(reply, self.options) if self.options else replies.read_open(reply)


def wanted_of(question: Question) -> Wanted:
    options = question.options
    words = {text.strip(" .").casefold() for text in options.values()}
    if focus_of(question).polar and (not options or words <= POLAR_WORDS):
        verdicts = tuple(word for word in replies.VERDICTS.values() if not options or word in words)
        return Wanted("final_polar", options or replies.VERDICTS, "answer", verdicts)
    if options:
        return Wanted("final_options", options, "answer_choice", tuple(options))
    return Wanted("final_open", {}, "short", ())
