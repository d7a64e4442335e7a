"""What a question asks: its need, its context, the kind of answer it wants."""

from __future__ import annotations

import re
from collections.abc import Sequence
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
_ASKED = re.compile(
    r"\b(?:(?:which|what|whose)\s+(?!(?:of|one|is|are|was|were|did|does|do|can|could|may|might|should|will|would|has|"
    r"have|had)\b)|what\s+(?:is|was|are|were)\s+(?:this|that|these|the)\s+(?:name\s+of\s+)?(?:the\s+|this\s+)?)",
    re.IGNORECASE,
)
"""What stands before the noun that is asked for."""
_SUBORDINATE = re.compile(
    r",?\s(?:that|which|who|whose|when|where|while|because|although|if|after|before)\s", re.IGNORECASE
)
MIN_MAIN_CHARS = 20
"""A shorter main clause ("Can a patient who ...") says too little."""
_WORD = re.compile(r"[^\W_][\w'’*-]*")
_QUANTITY = re.compile(r"\bhow (?:many|much|long|often|old|high)\b|\bwhat (?:percentage|proportion|share|dose)\b", re.I)

POLAR_WORDS = frozenset({"yes", "no", "maybe"})


@dataclass(frozen=True)
class Focus:
    """A question taken apart; every text is a stretch of the question."""

    need: str
    """The sentence that asks: the last one with a question mark, or the last one."""
    context: tuple[str, ...]
    """The sentences before it, in order."""
    polar: bool
    """Yes or no (or maybe) is asked for."""
    inverted: bool
    """Which option does *not* fit is asked for."""
    quantity: bool
    """A number is asked for."""
    main: str
    """The need up to its first subordinate clause: what a yes or no is said about."""

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
        polar=polar_options or (not options and _POLAR.match(need.lstrip("\"'“(")) is not None),
        inverted=_INVERTED.search(need) is not None,
        quantity=_QUANTITY.search(need) is not None,
        main=_main(need),
    )


def _main(need: str) -> str:
    match = _SUBORDINATE.search(need)
    return need[: match.start()] if match and match.start() >= MIN_MAIN_CHARS else need


def asked_noun(focus: Focus, mentions: Sequence[str]) -> str:
    """The noun phrase that is asked for: ``Which motor protein carries ...`` -> ``motor protein``.

    The longest of the need's ``mentions`` that begins where a noun is asked for, else the word
    there; empty where no noun is ("How ...", "When ...").
    """
    folded = focus.need.casefold()
    for match in _ASKED.finditer(focus.need):
        here = [name for name in mentions if folded.startswith(name.casefold(), match.end())]
        word = _WORD.match(focus.need, match.end())
        if here:
            return max(here, key=len)
        if word:
            return word.group()
    return ""
