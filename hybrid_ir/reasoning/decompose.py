"""Round 1 without a language model: the whole question and its parts (see ``plan.py``).

Every text is a sentence, or a name and a sentence; ``entities`` steers the graph.  Later rounds: ``followups.py``.
"""

from __future__ import annotations

import re

import numpy as np

from hybrid_ir.reasoning.focus import Focus
from hybrid_ir.reasoning.plan import Part, Plan, resolved
from hybrid_ir.reasoning.sentences import Reader
from hybrid_ir.reasoning.words import content_words
from hybrid_ir.records import Question, SubQuestion

MAX_QUERY_CHARS = 320
"""About what the encoder reads of a query (64 tokens); more is not seen."""
MAX_ENTITIES = 12
"""Seeds of one sub-question: more blur the walk over the graph."""
MIN_CLAUSE_WORDS = 2
"""A clause with fewer content words is no query."""

_ADVERBIAL = re.compile(r",?\s(?:when|because|although|if|while|before|after|why)\s(?!which|what)|;\s", re.IGNORECASE)
_SENTENCE = re.compile(r"^(?:the|an?|his|her|its|their|some|one)?\s*[\w'’/+-]+\s+\S+\s+\S+", re.IGNORECASE)


def first_round(question: Question, focus: Focus, plan: Plan, reader: Reader, limit: int) -> list[SubQuestion]:
    """The essential question, then its parts, its clauses and its options, at most ``limit``.

    The essential question comes first: as one query it is the strongest.  Half of the other
    places go to parts and clauses, each a first hop of its own, and half to the options, all of
    which are named so that none is favoured by its letter.
    """
    found = [SubQuestion(text=essential(focus), entities=entities_of(focus.whole, reader), reason="question")]
    parts = _parts(focus, plan, reader)
    options = [] if focus.polar else [text[:MAX_QUERY_CHARS] for text in question.options.values()]
    places = limit - 1
    for_options = min(len(options), max(places // 2, 1 if places else 0)) if options else 0
    found += parts[: max(places - for_options, 0)]
    for_options = min(len(options), limit - len(found))
    letters = list(question.options)
    for group in np.array_split(np.arange(len(options)), for_options) if for_options else []:
        named = [options[int(index)] for index in group]
        found.append(
            SubQuestion(
                text=f"{shortened(focus.need, MAX_QUERY_CHARS // 2)} {'; '.join(named)}",
                entities=entities_of("; ".join(named), reader),
                reason="option " + ", ".join(letters[int(index)] for index in group),
            )
        )
    return found


def _parts(focus: Focus, plan: Plan, reader: Reader) -> list[SubQuestion]:
    """Sides, the first of two questions, what is only described, then clauses."""
    parts = [
        SubQuestion(text=side.text, entities=side_entities(side, reader), reason=f"for {side.subject}")
        for side in plan.sides
    ]
    if plan.first:
        parts.append(SubQuestion(text=plan.first, entities=entities_of(plan.first, reader), reason="first of two"))
        if resolved(plan.sequel, "") == plan.sequel:  # no pronoun: it need not wait
            parts.append(
                SubQuestion(text=plan.sequel, entities=entities_of(plan.sequel, reader), reason="second of two")
            )
    parts += [
        SubQuestion(text=hop.text, entities=entities_of(hop.text, reader), reason=f"part: {hop.noun}")
        for hop in plan.hops[:1]
    ]
    for number, clause in enumerate(_clauses(focus), start=1):
        parts.append(SubQuestion(text=clause, entities=entities_of(clause, reader), reason=f"clause {number}"))
    return parts


def essential(focus: Focus) -> str:
    """The whole question where an encoder can read it; else what asks, then as many of the last findings as fit."""
    if len(focus.whole) <= MAX_QUERY_CHARS or not focus.context:
        return focus.whole
    text = focus.need
    for sentence in reversed(focus.context):
        if len(text) + len(sentence) >= MAX_QUERY_CHARS:
            break
        text = f"{sentence} {text}"
    return text if text != focus.need else f"{shortened(focus.context[-1], MAX_QUERY_CHARS // 2)} {focus.need}"


def _clauses(focus: Focus) -> list[str]:
    """A vignette's sentences, longest first; of a single sentence what stands after ``when`` or ``because``."""
    if focus.context:
        pieces = [shortened(sentence, MAX_QUERY_CHARS) for sentence in focus.context]
        ranked = sorted(pieces, key=lambda piece: -len(content_words(piece)))
    else:
        pieces = [piece.strip(" ,;:?.") for piece in _ADVERBIAL.split(focus.need)[1:]]
        ranked = [piece[:1].upper() + piece[1:] + "." for piece in pieces[::-1] if _SENTENCE.match(piece)]
    return [piece for piece in ranked if len(content_words(piece)) >= MIN_CLAUSE_WORDS]


def side_entities(side: Part, reader: Reader) -> tuple[str, ...]:
    """The side's name as the extractor reads it; as it stands where the extractor finds no such name."""
    words = content_words(side.subject)
    found = [name for name in reader.mentions([side.text])[0] if content_words(name) <= words]
    return (max(found, key=lambda name: (len(name), name)),) if found else (side.subject,)


def entities_of(text: str, reader: Reader) -> tuple[str, ...]:
    return reader.mentions([text])[0][:MAX_ENTITIES]


def shortened(text: str, limit: int) -> str:
    """Cut at a word."""
    return text if len(text) <= limit else text[:limit].rsplit(None, 1)[0]
