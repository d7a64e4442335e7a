"""Predictions read anew and scored: strictly, and as MIRAGE does."""

from __future__ import annotations

from collections import Counter
from typing import Literal

from hybrid_ir.evaluation.answers import right_choice
from hybrid_ir.evaluation.intervals import wilson
from hybrid_ir.evaluation.predictions import Predictions
from hybrid_ir.evaluation.sets.datasets import AnswerSet
from hybrid_ir.evaluation.sets.questions import GoldQuestion
from hybrid_ir.reasoning.parsing import mirage_choice, read_choice
from hybrid_ir.records import Record

SHOWN_CHARS = 200
SHOWN = 10


class Share(Record):
    """A share with Wilson's 95 % interval."""

    right: int
    asked: int
    mean: float
    low: float
    high: float


class Reading(Record):
    """One question's first reply, read both ways."""

    id: str
    subject: str
    gold: str
    state: Literal["read", "unread", "missing"]
    """``unread``: there is a reply, but no choice in it; ``missing``: there is none."""
    strict: str | None
    compatible: str | None
    """``None`` where there is no reply."""
    reply: str
    """Its end, to look at."""


class Rescored(Record):
    """What the predictions for one set came to."""

    dataset: str
    strict: Share
    """What cannot be read is wrong; options of equal text count the same."""
    compatible: Share
    """MIRAGE's own score: its reading, in which what cannot be read is A, and the gold letter alone is right."""
    unread: int
    missing: int
    guessed_right: int
    """Replies that only MIRAGE's reading makes right: it took an A that nobody said, or a letter out of a text."""
    read_otherwise: int
    """Replies that both readings read, differently."""
    by_subject: dict[str, Share]
    """Strict; empty where the set has no subjects."""
    unknown: tuple[str, ...]
    """Ids of predictions that the set does not have."""
    problems: tuple[str, ...]
    """What could not be used of the questions' file and of the predictions', each a sentence."""
    readings: tuple[Reading, ...]


def rescore(questions: AnswerSet, predictions: Predictions) -> Rescored:
    """Score the first reply to each question; a question without any is wrong."""
    readings = [_reading(question, predictions.replies.get(question.id, ())) for question in questions.questions]
    pairs = list(zip(questions.questions, readings, strict=True))
    strict = {question.id: right_choice(question, reading.strict) for question, reading in pairs}
    compatible = {question.id: reading.compatible == question.answer for question, reading in pairs}
    asked = Counter(question.subject for question in questions.questions)
    right = Counter(question.subject for question in questions.questions if strict[question.id])
    states = Counter(reading.state for reading in readings)
    subjects = sorted(asked) if set(asked) != {""} else []
    return Rescored(
        dataset=questions.name,
        strict=share(sum(strict.values()), len(pairs)),
        compatible=share(sum(compatible.values()), len(pairs)),
        unread=states["unread"],
        missing=states["missing"],
        guessed_right=sum(compatible[r.id] and not strict[r.id] for r in readings),
        read_otherwise=sum(r.strict is not None and r.strict != r.compatible for r in readings),
        by_subject={subject: share(right[subject], asked[subject]) for subject in subjects},
        unknown=predictions.unknown,
        problems=(*questions.problems, *predictions.problems),
        readings=tuple(readings),
    )


def share(right: int, asked: int) -> Share:
    interval = wilson(right, asked)
    return Share(right=right, asked=asked, mean=interval.mean, low=interval.low, high=interval.high)


def table(found: Rescored) -> str:
    """For a terminal."""
    lines = [f"{found.dataset}: {found.strict.asked:,} questions"]
    for name, one in (("strict", found.strict), ("as MIRAGE", found.compatible)):
        lines.append(f"  {name:<24}{one.mean:.3f} [{one.low:.3f}, {one.high:.3f}]   {one.right:,} right")
    counts = [
        (found.unread, "replies without a choice that can be read (strict: wrong; MIRAGE: A)"),
        (found.missing, "questions without a reply (wrong in both)"),
        (found.guessed_right, "right by MIRAGE's reading alone"),
        (found.read_otherwise, "read differently by the two"),
        (len(found.unknown), "predictions for ids that the set does not have, left out"),
        (len(found.problems), "lines or entries that could not be used, of the questions and the predictions"),
    ]
    lines += [f"  {count:>6,} {what}" for count, what in counts if count]
    lines += [
        f"  {name or '(none)':<40}{one.mean:.3f}  {one.right}/{one.asked}" for name, one in found.by_subject.items()
    ]
    if found.unknown:
        lines.append(f"  not in the set: {_few(found.unknown, ', ')}")
    if found.problems:
        lines.append(f"  {_few(found.problems, chr(10) + '  ')}")
    return "\n".join(lines)


def _few(said: tuple[str, ...], between: str) -> str:
    """The first ones, and how many more there are."""
    more = [f"and {len(said) - SHOWN:,} more"] if len(said) > SHOWN else []
    return between.join((*said[:SHOWN], *more))


def _reading(question: GoldQuestion, replies: tuple[str, ...]) -> Reading:
    reply = replies[0] if replies else None
    strict = None if reply is None else read_choice(reply, question.options)
    state: Literal["read", "unread", "missing"] = "read" if strict else "unread"
    return Reading(
        id=question.id,
        subject=question.subject,
        gold=question.answer,
        state="missing" if reply is None else state,
        strict=strict,
        compatible=None if reply is None else mirage_choice(reply),
        reply="" if reply is None else reply[-SHOWN_CHARS:],
    )
