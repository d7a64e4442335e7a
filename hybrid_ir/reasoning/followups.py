"""Later rounds without a language model: what the evidence now allows to ask.

The question with the answer to a part in the part's place; for an answer that holds for one side
of ``both by A and by B``, whether it holds for the other; and what the evidence names beside the
question's own names (a bridge).
"""

from __future__ import annotations

from dataclasses import replace
from itertools import zip_longest

from hybrid_ir.reasoning.bridges import BRIDGE, FILLED, bridges
from hybrid_ir.reasoning.chain import Chain, chain_of
from hybrid_ir.reasoning.decompose import (
    MAX_ENTITIES,
    MAX_QUERY_CHARS,
    entities_of,
    essential,
    shortened,
    side_entities,
)
from hybrid_ir.reasoning.focus import focus_of
from hybrid_ir.reasoning.known import Known
from hybrid_ir.reasoning.plan import Plan
from hybrid_ir.reasoning.sentences import Reader
from hybrid_ir.reasoning.spans import Span, best_spans
from hybrid_ir.reasoning.words import content_words
from hybrid_ir.records import LoopState, Question, SubQuestion

MIN_NEED_WORDS = 4
"""``What is this complication called?`` needs the findings beside it."""
CHOICES = 3
MAX_CHOICE_QUERIES = 3
"""Answers of another side that are asked in one query, and such queries for one side."""


def next_round(known: Known, reader: Reader, limit: int) -> tuple[list[SubQuestion], str]:
    """What the evidence now allows to ask, and what is missing in words; nothing when nothing is missing."""
    if not known.field.sentences:
        return [], ""
    if known.plan.sides:
        spans = best_spans(known.focus, known.field, reader, sides=known.plan.sides)
        if spans and all(spans[0].sides) and spans[0].typed:
            return [], ""
        found = _other_sides(known.state, known.plan, spans, reader)
    else:
        chain = chain_of(known.state, known.plan, known.field.sentences, reader)
        found = _filled(chain, reader)
        if chain.question and len(chain.links[-1].spans) == 1:
            known = replace(known, focus=focus_of(Question(text=chain.question)))
    asked = known.state.asked()
    found = [sub for sub in found if " ".join(sub.text.casefold().split()) not in asked][:limit]
    found += _bridge_questions(known, reader, limit - len(found))
    missing = [sub.reason.removeprefix(FILLED).removeprefix(BRIDGE) for sub in found]
    return found, f"what the corpus says about {', '.join(dict.fromkeys(missing))}" if missing else ""


def _other_sides(state: LoopState, plan: Plan, spans: list[Span], reader: Reader) -> list[SubQuestion]:
    """Do the answers to one side hold for the other?  ``Which ... by kanamycin: cystitis, haematuria or pain?``

    Answers of the asked-for kind that the passages of another side name, ``CHOICES`` a query,
    those not asked before.
    """
    before = {sub.sub_question.text for round_ in state.rounds for sub in round_.sub_answers}
    found = []
    for number, side in enumerate(plan.sides):
        stem = side.text.rstrip("?")
        asked = content_words(" ".join(text for text in before if text.startswith(stem)))
        choices: list[str] = []
        for span in spans:
            words = content_words(span.text)
            if not span.sides[number] and any(span.sides) and span.typed and not words <= asked:
                choices.append(span.text)
                asked |= words
        for first in range(0, min(len(choices), CHOICES * MAX_CHOICE_QUERIES), CHOICES):
            group = choices[first : first + CHOICES]
            listed = f"{', '.join(group[:-1])} or {group[-1]}" if len(group) > 1 else group[0]
            names = dict.fromkeys(
                (*side_entities(side, reader), *(e for g in group for e in entities_of(g, reader) or (g,)))
            )
            found.append(
                SubQuestion(text=f"{stem}: {listed}?", entities=tuple(names)[:MAX_ENTITIES], reason=f"{FILLED}{listed}")
            )
    return _alternating(found, plan)


def _alternating(found: list[SubQuestion], plan: Plan) -> list[SubQuestion]:
    """The first of each side, then the second of each."""
    by_side = [[sub for sub in found if sub.text.startswith(side.text.rstrip("?"))] for side in plan.sides]
    return [sub for row in zip_longest(*by_side) for sub in row if sub is not None]


def _filled(chain: Chain, reader: Reader) -> list[SubQuestion]:
    """The question with the answers so far, the next part, the question with a second answer."""
    found = []
    for link in chain.links[-1:]:
        for span, text in zip(link.spans, link.filled, strict=True):
            focus = focus_of(Question(text=text))
            # An answer that stands in the sentence that asks makes that sentence a question of its own.
            query = focus.need if span.text in focus.need else essential(focus)
            entities = dict.fromkeys((*entities_of(span.text, reader), *entities_of(focus.need, reader)))
            found.append(
                SubQuestion(text=query, entities=tuple(entities)[:MAX_ENTITIES], reason=f"{FILLED}{span.text}")
            )
    if chain.open is not None:
        part = chain.open
        found.insert(
            1, SubQuestion(text=part.text, entities=entities_of(part.text, reader), reason=f"part: {part.noun}")
        )
    return found


def _bridge_questions(known: Known, reader: Reader, limit: int) -> list[SubQuestion]:
    if limit <= 0:
        return []
    options, focus = known.state.question.options, known.focus
    extra = tuple(entity for letter in known.leading for entity in entities_of(options[letter], reader)[:2])
    telling = len(content_words(focus.need)) >= MIN_NEED_WORDS
    need = shortened(focus.need if telling else essential(focus), MAX_QUERY_CHARS - 80)
    return [
        SubQuestion(text=f"{bridge}: {need}", entities=(bridge, *extra), reason=f"{BRIDGE}{bridge}")
        for bridge in bridges(known, reader)[:limit]
    ]
