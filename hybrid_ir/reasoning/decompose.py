"""Sub-questions without a language model: clauses and options first, bridges later."""

from __future__ import annotations

import re
from collections import defaultdict

import numpy as np

from hybrid_ir.reasoning.focus import Focus
from hybrid_ir.reasoning.sentences import Reader
from hybrid_ir.reasoning.support import Field
from hybrid_ir.reasoning.words import content_words, names
from hybrid_ir.records import LoopState, Question, SubQuestion

MAX_QUERY_CHARS = 320
"""About what the encoder reads of a query (64 tokens); more is not seen."""
MAX_ENTITIES = 12
"""Seeds of one sub-question: more blur the walk over the graph."""
MIN_CLAUSE_WORDS = 2
"""A clause with fewer content words is no query."""
MIN_NEED_WORDS = 4
"""``What is this complication called?`` needs the findings beside it."""
WORDS_BEFORE = 4
"""Words kept before a relative clause: ``the integrase inhibitor that binds antacids``."""
BRIDGE_SENTENCES = 12
"""Bridges are sought in the best sentences only: the evidence of one round holds hundreds of entities."""
BRIDGE_SHARE = 0.4
"""A bridge is worth a query when it has this share of the value of the best sentence."""
MIN_BRIDGE_RARITY = 0.3
"""What stands in most chunks of the evidence (``patient``, ``disease``) leads nowhere new."""

_CLAUSE = re.compile(
    r",?\s+(?=(?:that|which|who|whose|whom|when|where|while)\s)|[;:]\s|,\s|\s(?:and|but|because|although|if|after)\s"
)
_RELATIVE = re.compile(r"(?:that|which|who|whose|whom)\s")


def first_round(question: Question, focus: Focus, reader: Reader, limit: int) -> list[SubQuestion]:
    """The essential question, then its clauses and its options, at most ``limit``.

    The essential question comes first: as one query it is the strongest.  Half of the other
    places go to clauses (of a vignette: its sentences), each a first hop of its own, and half to
    the options, all of which are named so that none is favoured by its letter.
    """
    found = [SubQuestion(text=essential(focus), entities=_entities(focus.whole, reader), reason="question")]
    clauses = _clauses(focus)
    options = [] if focus.polar else [text[:MAX_QUERY_CHARS] for text in question.options.values()]
    places = limit - 1
    for_options = min(len(options), max(places // 2, 1 if places else 0)) if options else 0
    for number, clause in enumerate(clauses[: places - for_options], start=1):
        found.append(SubQuestion(text=clause, entities=_entities(clause, reader), reason=f"clause {number}"))
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
    """A vignette's sentences, longest first; of a single sentence its clauses, the last first."""
    if focus.context:
        pieces = [_shortened(sentence, MAX_QUERY_CHARS) for sentence in focus.context]
        ranked = sorted(pieces, key=lambda piece: -len(content_words(piece)))
    else:
        cuts = [match.start() for match in _CLAUSE.finditer(focus.need)]
        pieces = []
        for start, end in zip([0, *cuts], [*cuts, len(focus.need)], strict=True):
            piece = focus.need[start:end].strip(" ,;:?")
            if start and _RELATIVE.match(piece):
                piece = " ".join((*focus.need[:start].split()[-WORDS_BEFORE:], piece))
            pieces.append(piece)
        ranked = pieces[::-1] if len(pieces) > 1 else []
    return [piece for piece in ranked if len(content_words(piece)) >= MIN_CLAUSE_WORDS]


def next_round(
    state: LoopState,
    focus: Focus,
    field: Field,
    option_support: dict[str, float],
    reader: Reader,
    limit: int,
) -> tuple[list[SubQuestion], str]:
    """Queries on bridges, and what is missing in words; nothing when no bridge is worth it."""
    bridges = _bridges(state, focus, field)[:limit]
    leading = sorted(option_support, key=lambda letter: -option_support[letter])[:2]
    extra = tuple(entity for letter in leading for entity in _entities(state.question.options[letter], reader)[:2])
    telling = len(content_words(focus.need)) >= MIN_NEED_WORDS
    need = _shortened(focus.need if telling else essential(focus), MAX_QUERY_CHARS - 80)
    sub_questions = [
        SubQuestion(text=f"{bridge}: {_unresolved(need, seen)}", entities=(bridge, *extra), reason=f"bridge: {bridge}")
        for bridge, seen in bridges
    ]
    return sub_questions, f"what the corpus says about {', '.join(bridge for bridge, _ in bridges)}" if bridges else ""


def _unresolved(need: str, seen: frozenset[str]) -> str:
    """The need without what the bridge's own passage says; whole where too little would be left.

    ``the drug that prevents gout`` led to allopurinol, and asked again it would lead back to gout.
    """
    rest = " ".join(word for word in need.split() if not content_words(word) or not content_words(word) <= seen)
    return rest if len(content_words(rest)) >= MIN_CLAUSE_WORDS else need


def _bridges(state: LoopState, focus: Focus, field: Field) -> list[tuple[str, frozenset[str]]]:
    """Entities of the best sentences that the question and its options do not name, best first.

    Each with the words of the best passage that holds it.

    The value of a bridge is the best relevance of a sentence that holds it times its rarity in
    the evidence.  Skipped are bridges asked before and those that a chunk of the evidence has
    in its title: what the corpus says about them is there.
    """
    asked_words = [
        content_words(sub.sub_question.reason.removeprefix("bridge: "))
        for round_ in state.rounds
        for sub in round_.sub_answers
        if sub.sub_question.reason.startswith("bridge: ")
    ]
    asked_words += [content_words(title) for title in {sentence.chunk.title for sentence in field.sentences}]
    known = content_words(" ".join((focus.whole, *state.question.options.values())))
    if not field.sentences:
        return []
    order = np.argsort(-field.relevance, kind="stable")[:BRIDGE_SENTENCES]
    value: dict[str, float] = defaultdict(float)
    seen: dict[str, frozenset[str]] = {}
    for index in order:
        chunk = field.sentences[int(index)].chunk
        for entity in field.entities[int(index)]:
            rarity = field.rarity(entity)
            if rarity >= MIN_BRIDGE_RARITY and content_words(entity) and not names(known, entity):
                value[entity] = max(value[entity], rarity * float(field.relevance[index]))
                seen.setdefault(entity, content_words(chunk.title + " " + chunk.text))
    floor = BRIDGE_SHARE * float(field.relevance[order[0]])
    chosen: list[tuple[str, frozenset[str]]] = []
    for entity in sorted(value, key=lambda name: (-value[name], name)):
        words = content_words(entity)
        if value[entity] >= floor and not any(words <= other or other <= words for other in asked_words):
            chosen.append((entity, seen[entity]))
            asked_words.append(words)
    return chosen


def _entities(text: str, reader: Reader) -> tuple[str, ...]:
    return reader.mentions([text])[0][:MAX_ENTITIES]


def _shortened(text: str, limit: int) -> str:
    """Cut at a word."""
    return text if len(text) <= limit else text[:limit].rsplit(None, 1)[0]
