"""Sub-questions without a language model: the parts of a question first; later, answers filled in and bridges.

Round 1 asks the whole question and its parts (see ``plan.py``).  Later rounds ask what the
evidence now allows: the question with the answer to a part in the part's place; for an answer
that holds for one side of ``both by A and by B``, whether it holds for the other; and what the
evidence names beside the question's own names (a bridge).  Every text is a sentence, or a name
and a sentence; ``entities`` steers the graph.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from itertools import zip_longest

import numpy as np

from hybrid_ir.reasoning.bridges import BRIDGE, FILLED, bridges
from hybrid_ir.reasoning.focus import Focus, focus_of
from hybrid_ir.reasoning.plan import Part, Plan, plan_of, resolved
from hybrid_ir.reasoning.sentences import Reader, Sentence
from hybrid_ir.reasoning.spans import Span, best_spans
from hybrid_ir.reasoning.support import Field, field_of, similarity
from hybrid_ir.reasoning.words import content_words
from hybrid_ir.records import LoopState, Question, SubQuestion

MAX_QUERY_CHARS = 320
"""About what the encoder reads of a query (64 tokens); more is not seen."""
MAX_ENTITIES = 12
"""Seeds of one sub-question: more blur the walk over the graph."""
MIN_CLAUSE_WORDS = 2
"""A clause with fewer content words is no query."""
MIN_NEED_WORDS = 4
"""``What is this complication called?`` needs the findings beside it."""
CHOICES = 3
MAX_CHOICE_QUERIES = 3
"""Answers of another side that are asked in one query, and such queries for one side."""
TRIED = 6
WORTH_TRYING = 0.75
"""Answers to a part that are tried in the question: the best few, if they score this share of the best."""
SURE = 0.85
"""A part's second answer is asked too where it is nearly as good as the best."""

_ADVERBIAL = re.compile(r",?\s(?:when|because|although|if|while|before|after|why)\s(?!which|what)|;\s", re.IGNORECASE)
_SENTENCE = re.compile(r"^(?:the|an?|his|her|its|their|some|one)?\s*[\w'’/+-]+\s+\S+\s+\S+", re.IGNORECASE)


def first_round(question: Question, focus: Focus, plan: Plan, reader: Reader, limit: int) -> list[SubQuestion]:
    """The essential question, then its parts, its clauses and its options, at most ``limit``.

    The essential question comes first: as one query it is the strongest.  Half of the other
    places go to parts and clauses, each a first hop of its own, and half to the options, all of
    which are named so that none is favoured by its letter.
    """
    found = [SubQuestion(text=essential(focus), entities=_entities(focus.whole, reader), reason="question")]
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
                text=f"{_shortened(focus.need, MAX_QUERY_CHARS // 2)} {'; '.join(named)}",
                entities=_entities("; ".join(named), reader),
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
        parts.append(SubQuestion(text=plan.first, entities=_entities(plan.first, reader), reason="first of two"))
        if resolved(plan.sequel, "") == plan.sequel:  # no pronoun: it need not wait
            parts.append(SubQuestion(text=plan.sequel, entities=_entities(plan.sequel, reader), reason="second of two"))
    parts += [
        SubQuestion(text=hop.text, entities=_entities(hop.text, reader), reason=f"part: {hop.noun}")
        for hop in plan.hops[:1]
    ]
    for number, clause in enumerate(_clauses(focus), start=1):
        parts.append(SubQuestion(text=clause, entities=_entities(clause, reader), reason=f"clause {number}"))
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
    return text if text != focus.need else f"{_shortened(focus.context[-1], MAX_QUERY_CHARS // 2)} {focus.need}"


def _clauses(focus: Focus) -> list[str]:
    """A vignette's sentences, longest first; of a single sentence what stands after ``when`` or ``because``."""
    if focus.context:
        pieces = [_shortened(sentence, MAX_QUERY_CHARS) for sentence in focus.context]
        ranked = sorted(pieces, key=lambda piece: -len(content_words(piece)))
    else:
        pieces = [piece.strip(" ,;:?.") for piece in _ADVERBIAL.split(focus.need)[1:]]
        ranked = [piece[:1].upper() + piece[1:] + "." for piece in pieces[::-1] if _SENTENCE.match(piece)]
    return [piece for piece in ranked if len(content_words(piece)) >= MIN_CLAUSE_WORDS]


def next_round(
    state: LoopState,
    focus: Focus,
    plan: Plan,
    field: Field,
    option_support: dict[str, float],
    reader: Reader,
    limit: int,
) -> tuple[list[SubQuestion], str]:
    """What the evidence now allows to ask, and what is missing in words; nothing when nothing is missing."""
    if not field.sentences:
        return [], ""
    if plan.sides:
        spans = best_spans(focus, field, reader, sides=plan.sides)
        if spans and all(spans[0].sides) and spans[0].typed:
            return [], ""
        found = _other_sides(state, plan, spans, reader)
    else:
        chain = chain_of(state, plan, field.sentences, reader)
        found = _filled(chain, reader)
        if chain.question and len(chain.links[-1].spans) == 1:
            focus = focus_of(Question(text=chain.question))
    asked = state.asked()
    found = [sub for sub in found if " ".join(sub.text.casefold().split()) not in asked][:limit]
    found += _bridge_questions(state, focus, plan, field, option_support, reader, limit - len(found))
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
                (*side_entities(side, reader), *(e for g in group for e in _entities(g, reader) or (g,)))
            )
            found.append(
                SubQuestion(text=f"{stem}: {listed}?", entities=tuple(names)[:MAX_ENTITIES], reason=f"{FILLED}{listed}")
            )
    return _alternating(found, plan)


def _alternating(found: list[SubQuestion], plan: Plan) -> list[SubQuestion]:
    """The first of each side, then the second of each."""
    by_side = [[sub for sub in found if sub.text.startswith(side.text.rstrip("?"))] for side in plan.sides]
    return [sub for row in zip_longest(*by_side) for sub in row if sub is not None]


@dataclass(frozen=True)
class Link:
    """A part of the question, answered, and the question with its answers filled in."""

    part: Part
    spans: list[Span]
    filled: tuple[str, ...]
    """With each of ``spans``."""


@dataclass(frozen=True)
class Chain:
    """What is described in a question, resolved step by step."""

    links: tuple[Link, ...] = ()
    open: Part | None = None
    """The next part, not asked yet."""

    @property
    def question(self) -> str:
        """The question with all answers so far; empty without any."""
        return self.links[-1].filled[0] if self.links else ""


def chain_of(state: LoopState, plan: Plan, sentences: list[Sentence], reader: Reader) -> Chain:
    """Resolve the parts in order, by all evidence so far.

    ``the country where the composer of X was a citizen`` becomes ``the country where Haydn was a
    citizen``, which is the next part.  Nothing is remembered between rounds: new evidence may
    correct an earlier answer.
    """
    links: list[Link] = []
    asked = state.asked()
    if plan.first:
        focus = focus_of(Question(text=plan.first))
        spans = best_spans(focus, field_of(focus, sentences, reader), reader)[:1]
        return Chain(
            tuple(Link(Part(plan.first, plan.first), [span], (resolved(plan.sequel, span.text),)) for span in spans)
        )
    for _ in range(len(state.rounds) + 1):
        part = plan.hops[0] if plan.hops else None
        if part is None or " ".join(part.text.casefold().split()) not in asked:
            return Chain(tuple(links), part)
        focus = focus_of(Question(text=part.text))
        spans = best_spans(focus, field_of(focus, sentences, reader), reader, part.noun)
        if not spans:
            break
        spans = _verified(plan, part, spans, sentences, reader)
        filled = tuple(plan.filled(part, span.text) for span in spans)
        links.append(Link(part, spans, filled))
        plan = plan_of(filled[0], focus_of(Question(text=filled[0])).need)
    return Chain(tuple(links))


def _verified(plan: Plan, part: Part, spans: list[Span], sentences: list[Sentence], reader: Reader) -> list[Span]:
    """At most two answers to a part, best first by their own score times the support of what they make of the question.

    An answer is right when the question makes sense with it: of ``bite`` and ``rabies``, one is
    said to travel along nerves.
    """
    close = [span for span in spans[:TRIED] if span.score >= WORTH_TRYING * spans[0].score]
    vectors = reader.vectors(sentences)
    words = [sentence.words | content_words(sentence.chunk.title) for sentence in sentences]
    support = []
    for span in close:
        text = focus_of(Question(text=plan.filled(part, span.text))).need
        support.append(float(similarity(text, vectors, words, {}, reader).max()))
    value = {span: span.score * support[at] ** 2 for at, span in enumerate(close)}
    best = sorted(close, key=lambda span: -value[span])
    return [span for span in best[:2] if value[span] >= SURE * value[best[0]]]


def _filled(chain: Chain, reader: Reader) -> list[SubQuestion]:
    """The question with the answers so far, the next part, the question with a second answer."""
    found = []
    for link in chain.links[-1:]:
        for span, text in zip(link.spans, link.filled, strict=True):
            focus = focus_of(Question(text=text))
            # An answer that stands in the sentence that asks makes that sentence a question of its own.
            query = focus.need if span.text in focus.need else essential(focus)
            entities = dict.fromkeys((*_entities(span.text, reader), *_entities(focus.need, reader)))
            found.append(
                SubQuestion(text=query, entities=tuple(entities)[:MAX_ENTITIES], reason=f"{FILLED}{span.text}")
            )
    if chain.open is not None:
        part = chain.open
        found.insert(1, SubQuestion(text=part.text, entities=_entities(part.text, reader), reason=f"part: {part.noun}"))
    return found


def side_entities(side: Part, reader: Reader) -> tuple[str, ...]:
    """The side's name as the extractor reads it; as it stands where the extractor finds no such name."""
    words = content_words(side.subject)
    found = [name for name in reader.mentions([side.text])[0] if content_words(name) <= words]
    return (max(found, key=lambda name: (len(name), name)),) if found else (side.subject,)


def _bridge_questions(
    state: LoopState,
    focus: Focus,
    plan: Plan,
    field: Field,
    option_support: dict[str, float],
    reader: Reader,
    limit: int,
) -> list[SubQuestion]:
    if limit <= 0:
        return []
    found = bridges(state, focus, plan, field, reader)[:limit]
    leading = sorted(option_support, key=lambda letter: -option_support[letter])[:2]
    extra = tuple(entity for letter in leading for entity in _entities(state.question.options[letter], reader)[:2])
    telling = len(content_words(focus.need)) >= MIN_NEED_WORDS
    need = _shortened(focus.need if telling else essential(focus), MAX_QUERY_CHARS - 80)
    return [
        SubQuestion(text=f"{bridge}: {need}", entities=(bridge, *extra), reason=f"{BRIDGE}{bridge}") for bridge in found
    ]


def _entities(text: str, reader: Reader) -> tuple[str, ...]:
    return reader.mentions([text])[0][:MAX_ENTITIES]


def _shortened(text: str, limit: int) -> str:
    """Cut at a word."""
    return text if len(text) <= limit else text[:limit].rsplit(None, 1)[0]
