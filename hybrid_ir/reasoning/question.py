"""Whether a question can be asked."""

from __future__ import annotations

import re

from hybrid_ir.errors import BadInput
from hybrid_ir.records import Question

_LETTER = re.compile(r"[A-Z]")


def check_question(question: Question, max_chars: int) -> None:
    """Raise ``BadInput`` with a sentence that names the field and what to do.

    ``max_chars`` holds for the text together with its options.  Two options may have the same text.
    """
    if not question.text.strip():
        raise BadInput("The question is empty: write one.")
    length = len(question.text) + sum(map(len, question.options.values()))
    if length > max_chars:
        with_options = " with its options" if question.options else ""
        raise BadInput(
            f"The question is too long: {length} characters{with_options}, the limit is {max_chars}; shorten it."
        )
    for letter, text in question.options.items():
        if not _LETTER.fullmatch(letter):
            raise BadInput(f"options: {letter[:20]!r} is not a letter; name each option by one letter A to Z.")
        if not text.strip():
            raise BadInput(f"options.{letter} is empty: write its text or leave the option out.")
    if len(question.options) == 1:
        raise BadInput("options holds a single option: give at least two, or none for an open question.")
