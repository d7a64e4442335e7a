"""Measures of answers: accuracy over choices, macro-F1 over verdicts, exact match and F1 of short texts."""

from __future__ import annotations

import re
import string
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from hybrid_ir.evaluation.intervals import Interval, wilson
from hybrid_ir.evaluation.sets.questions import GoldQuestion

_ARTICLE = re.compile(r"\b(?:a|an|the)\b")
_PUNCTUATION = str.maketrans("", "", string.punctuation)


def accuracy(gold: Sequence[str], said: Sequence[str | None]) -> float:
    """The share that is right; what was not answered is wrong.  NaN without questions."""
    right = sum(one == other for one, other in zip(gold, said, strict=True))
    return right / len(gold) if gold else float("nan")


def macro_f1(gold: Sequence[str], said: Sequence[str | None]) -> float:
    """The mean F1 over the labels that occur in ``gold``, each counting the same; a label never said has 0.

    NaN without questions.
    """
    labels = sorted(set(gold))
    pairs = Counter(zip(gold, said, strict=True))
    is_gold, is_said = Counter(gold), Counter(said)
    scores = [2 * pairs[label, label] / (is_gold[label] + is_said[label]) for label in labels]
    return sum(scores) / len(scores) if scores else float("nan")


def confusion(gold: Sequence[str], said: Sequence[str | None]) -> dict[tuple[str, str | None], int]:
    """How often each gold label was given each answer; ``None``: no answer."""
    return dict(Counter(zip(gold, said, strict=True)))


def accepted(question: GoldQuestion) -> frozenset[str]:
    """The letters that are right: the answer's, and any other option of the same text (case and blanks apart)."""
    texts = {letter: folded(text) for letter, text in question.options.items()}
    return frozenset(letter for letter, text in texts.items() if text == texts.get(question.answer))


def right_choice(question: GoldQuestion, choice: str | None, *, by_letter: bool = False) -> bool:
    """Whether a choice is right.  ``by_letter``: only the gold letter, as MIRAGE counts, even where two are equal."""
    return choice == question.answer if by_letter else choice in accepted(question)


def folded(text: str) -> str:
    """Case and blanks apart."""
    return " ".join(text.casefold().split())


def normalised(text: str) -> str:
    """Lower case, no punctuation, no articles, single blanks (Rajpurkar et al. 2016, SQuAD)."""
    return " ".join(_ARTICLE.sub(" ", text.casefold().translate(_PUNCTUATION)).split())


def exact_match(said: str, gold: Sequence[str]) -> bool:
    """Whether a short answer is one of the accepted ones, normalised.  An empty answer never is."""
    return normalised(said) in {normalised(text) for text in gold} - {""}


def token_f1(said: str, gold: Sequence[str]) -> float:
    """The best F1 over normalised tokens with any accepted answer (SQuAD's), from 0 to 1."""
    return max((_overlap(normalised(said).split(), normalised(text).split()) for text in gold), default=0.0)


def _overlap(said: list[str], gold: list[str]) -> float:
    shared = sum((Counter(said) & Counter(gold)).values())
    return 2 * shared / (len(said) + len(gold)) if shared else 0.0


@dataclass(frozen=True)
class Said:
    """What was answered to a question."""

    choice: str | None
    """A letter, where there are options."""
    short: str = ""
    """The short answer; empty: none."""


@dataclass(frozen=True)
class Score:
    """What the answers to several questions came to."""

    asked: int
    unanswered: int
    accuracy: Interval
    """The share of right answers, with Wilson's interval; an open answer is right where it holds an accepted text."""
    by_letter: float
    """As MIRAGE counts: the same but for options of equal text."""
    macro_f1: float
    """Over yes, no and maybe; NaN unless all questions ask for these."""
    exact: float
    """Exact match of open answers; NaN unless all questions are open."""
    f1: float
    """Token F1 of open answers; NaN unless all questions are open."""


def score(questions: Sequence[GoldQuestion], said: Sequence[Said]) -> Score:
    """The measures of the answers to some questions, in the same order.  An unanswered question is wrong."""
    pairs = list(zip(questions, said, strict=True))
    right = sum(is_right(question, one) for question, one in pairs)
    letters = sum(is_right(question, one, by_letter=True) for question, one in pairs)
    nothing = sum(one.choice is None and not one.short for _, one in pairs)
    count = len(pairs)
    open_ = bool(pairs) and all(not question.options for question in questions)
    polar = bool(pairs) and all(question.type == "yesno" and question.options for question in questions)
    accepted_texts = [(question.answer, *question.aliases) for question in questions]
    return Score(
        asked=count,
        unanswered=nothing,
        accuracy=wilson(right, count),
        by_letter=letters / count if count else float("nan"),
        macro_f1=macro_f1([q.options[q.answer] for q in questions], [q.options.get(s.choice or "") for q, s in pairs])
        if polar
        else float("nan"),
        exact=sum(exact_match(s.short, texts) for s, texts in zip(said, accepted_texts, strict=True)) / count
        if open_
        else float("nan"),
        f1=sum(token_f1(s.short, texts) for s, texts in zip(said, accepted_texts, strict=True)) / count
        if open_
        else float("nan"),
    )


def is_right(question: GoldQuestion, said: Said, *, by_letter: bool = False) -> bool:
    """The right letter; of an open question, an accepted text within the short answer, case apart."""
    if question.options:
        return right_choice(question, said.choice, by_letter=by_letter)
    short = said.short.casefold()
    return any(text.casefold() in short for text in (question.answer, *question.aliases) if text)
