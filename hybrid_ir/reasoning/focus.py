"""What a question asks: its need, its context, the kind of answer it wants."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache

from hybrid_ir.records import Question
from hybrid_ir.text import sentence_spans

MAX_CONTEXT_SENTENCES = 24
"""A vignette has five to fifteen sentences; of a 20,000-character question the last ones before the need count."""
MAX_SENTENCE_CHARS = 400
"""About twice what the encoder reads of a query (64 tokens)."""

_POLAR = re.compile(
    r"(?:is|are|was|were|does|do|did|can|could|may|might|should|will|would|has|have|had|must)(?![^\W_])", re.IGNORECASE
)
_INVERTED = re.compile(
    r"\b(?:NOT|EXCEPT|LEAST)\b|\bexcept\b|\bleast likely\b|\b(?:is|are) not (?:a|an|one|true|correct|associated)\b"
)
_ASKED = re.compile(r"\b(?:which|what|whose)\s+((?:[^\W_][\w'’-]*\s+){0,3}?[^\W_][\w'’-]*)", re.IGNORECASE)
_OF_THESE = re.compile(r"(?:of|one|is|are|was|were|did|does|do|can|could|may|might|should|will|would|has|have|had)\b")
_VERBISH = re.compile(
    r"\b(?:is|are|was|were|be|may|might|can|could|should|must|will|would|did|does|do|has|have|had|of|in|at|from|for|"
    r"that|which|who|to|on|by|with|puts?|carr(?:y|ies)|explains?|causes?|treats?|makes?|lies?|stands?|falls?)\b.*",
    re.IGNORECASE | re.DOTALL,
)
_QUANTITY = re.compile(r"\bhow (?:many|much|long|often|old|high)\b|\bwhat (?:percentage|proportion|share|dose)\b", re.I)

POLAR_WORDS = frozenset({"yes", "no", "maybe"})


@dataclass(frozen=True)
class Focus:
    """A question taken apart; every text is a stretch of the question."""

    need: str
    """The sentence that asks: the last one with a question mark, or the last one."""
    context: tuple[str, ...]
    """The sentences before it, in order."""
    asked: str
    """The noun that the need asks for, ``enzyme`` or ``motor protein``; empty where none was found."""
    polar: bool
    """Yes or no (or maybe) is asked for."""
    inverted: bool
    """Which option does *not* fit is asked for."""
    quantity: bool
    """A number is asked for."""

    @property
    def whole(self) -> str:
        return " ".join((*self.context, self.need))


def focus_of(question: Question) -> Focus:
    """Take a question apart.  Linear in its length."""
    option_words = {text.strip(" .").casefold() for text in question.options.values()}
    return _focus(question.text, bool(option_words) and option_words <= POLAR_WORDS, bool(question.options))


@lru_cache(maxsize=256)
def _focus(text: str, polar_options: bool, options: bool) -> Focus:
    sentences = [text[start:end][:MAX_SENTENCE_CHARS] for start, end in sentence_spans(text)]
    asking = [index for index, sentence in enumerate(sentences) if sentence.endswith("?")]
    at = asking[-1] if asking else len(sentences) - 1
    need = sentences[at] if sentences else text[:MAX_SENTENCE_CHARS]
    context = tuple(sentence for index, sentence in enumerate(sentences) if index != at)[-MAX_CONTEXT_SENTENCES:]
    return Focus(
        need=need,
        context=context,
        asked=_asked(need),
        polar=polar_options or (not options and _POLAR.match(need.lstrip("\"'“(")) is not None),
        inverted=_INVERTED.search(need) is not None,
        quantity=_QUANTITY.search(need) is not None,
    )


def _asked(need: str) -> str:
    """``Which motor protein carries ...`` -> ``motor protein``."""
    for match in _ASKED.finditer(need):
        if _OF_THESE.match(match[1]):
            continue
        noun = _VERBISH.sub("", match[1]).strip()
        if noun:
            return noun
    return ""
