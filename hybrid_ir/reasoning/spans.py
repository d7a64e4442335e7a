"""The short answer to an open question: a name in the evidence that fits what is asked."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hybrid_ir.reasoning.focus import Focus, asked_noun
from hybrid_ir.reasoning.kinds import families, is_medical, is_vague, kinds_of
from hybrid_ir.reasoning.plan import Part
from hybrid_ir.reasoning.sentences import Reader
from hybrid_ir.reasoning.support import Field, similarity
from hybrid_ir.reasoning.words import content_words, names, stem

SPAN_SENTENCES = 32
"""Answers are sought in the best sentences only."""
SIDE_SENTENCES = 24
"""Of each side of ``both by A and by B``: those that name it come first."""
MEANT = 0.5
"""Weight of the cosine of the candidate with the asked-for noun."""
SAID = 0.4
"""Added where the evidence says that the candidate is of the kind: ``the enzyme X``, ``X is an enzyme``."""
OF_KIND = 0.4
"""Added where the candidate's own name shows the kind that is asked for; taken off where it shows only others."""
KIND_ONLY = 0.5
"""Taken off a candidate that only describes: ``a human antibody`` is what the answer is, not its name."""
BEFORE_WORDS = 3
NEAR_WORDS = 6
"""How near the kind's name must stand: just before, or a little after ``is a`` and its like."""
_COPULAS = frozenset("is are was were a an the other another called".split())
ALIKE = 0.5
"""Share of an entity's words that a stretch of the sentence must hold to be its surface form."""
ABSENT = 0.3
"""What a candidate that one side's passages do not name keeps of that side's support."""
UNTYPED = 0.6
"""What a name keeps that does not show the kind that is asked for, where the kind is one that names show."""
UNNAMED = 0.6
"""What a sentence counts for a side whose name its chunk does not hold."""
LONGEST = 6
"""Words of a short answer."""

_NUMBER = re.compile(r"\d[\d.,]*(?:\s?(?:%|percent|mg|g|ml|mmol/l|hours?|days?|weeks?|months?|years?))?")
_CODE = re.compile(r"(?<![\w-])(?=[\w.*:>/-]*\d)(?=[\w.*:>/-]*[A-Za-z])[A-Za-z0-9][\w.*:>/-]*[\w]")
"""Genes, alleles, variants: ``CYP2C9``, ``HLA-B*15:02``, ``m.1555A>G``."""
_TOKEN = re.compile(r"[^\W_]+")


@dataclass(frozen=True)
class Span:
    """A candidate answer, as it stands in the sentence."""

    text: str
    score: float
    sentence: int
    fit: float = 0.0
    """How well it fits the asked-for kind."""
    sides: tuple[bool, ...] = ()
    """Which sides' sentences name it."""
    support: tuple[int, ...] = ()
    """The best sentence of each side; that of ``sentence`` without sides."""
    typed: bool = True
    """False where the asked-for kind is known and the name does not show it."""


def best_spans(
    focus: Focus, field: Field, reader: Reader, noun: str = "", sides: Sequence[Part] = (), given: str = ""
) -> list[Span]:
    """Candidates, best first; empty when no sentence names anything new.

    Candidates are the entities (and codes; numbers where a quantity is asked) of the best
    sentences that the question does not name and that say something on their own.

        score = relevance(s) (1 + MEANT cos(candidate, noun) + SAID + OF_KIND - KIND_ONLY)

    for the best sentence s that holds it, the last three terms where they apply.  ``noun`` is
    what is asked for; without it, it is read from the question.  ``given`` holds what else is
    known.  With sides, relevance(s) gives way to the geometric mean over the sides of the best
    support that a side's own sentences give.
    """
    known = content_words(f"{focus.whole} {given}")
    noun = noun or asked_noun(focus, reader.mentions([focus.need])[0])
    supports = [_side_relevance(side, field, reader) for side in sides]
    lists = [np.argsort(-s, kind="stable")[:SIDE_SENTENCES] for s in supports] or [
        np.argsort(-field.relevance, kind="stable")[:SPAN_SENTENCES]
    ]
    order = list(dict.fromkeys(int(index) for list_ in lists for index in list_))
    holders: dict[str, list[int]] = defaultdict(list)
    for index in order:
        text = field.sentences[index].text
        found = [*field.entities[index], *_CODE.findall(text)]
        if focus.quantity:
            found += [match.group() for match in _NUMBER.finditer(text)]
        for name in dict.fromkeys(found):
            telling = content_words(name) and not is_vague(name)
            if not names(known, name) and (telling or focus.quantity):
                holders[name].append(index)
    candidates = list(holders)
    asked = families(noun)
    all_names = tuple(dict.fromkeys(entity for index in order for entity in field.entities[index]))
    fits = _fits(noun, candidates, [field.sentences[index].text for index in order], reader)
    spans = []
    for name, fit in zip(candidates, fits, strict=True):
        if sides:
            base, support, held = _joint(name, sides, supports, field)
            at = next((index for index, own in zip(support, held, strict=True) if own), support[0])
        else:
            at = holders[name][0]
            base, held, support = float(field.relevance[at]), (), (at,)
        typed = not asked or bool(asked & kinds_of(name))
        # A vocabulary's term is complete as it is.
        longer = () if asked and typed else all_names
        text = _fullest(field.sentences[at].text, name, longer, known)
        score = base * max(1 + fit, 0.1) * (1.0 if typed else UNTYPED)
        spans.append(Span(text, score, at, fit, held, support, typed))
    return sorted(spans, key=lambda span: (-span.score, span.text))


def _side_relevance(side: Part, field: Field, reader: Reader) -> NDArray[np.float64]:
    """Similarity to the side's own question; less for sentences of chunks that do not name the side."""
    wanted = content_words(side.subject)
    scores = similarity(side.text, field.vectors, field.words, field.weights, reader)
    chunks = {s.chunk.id: content_words(f"{s.chunk.title} {s.chunk.text}") for s in field.sentences}
    named = np.array([wanted <= chunks[s.chunk.id] for s in field.sentences], bool)
    weighted: NDArray[np.float64] = np.where(named, scores, UNNAMED * scores)
    return weighted


def _joint(
    name: str, sides: Sequence[Part], supports: list[NDArray[np.float64]], field: Field
) -> tuple[float, tuple[int, ...], tuple[bool, ...]]:
    """(geometric mean of the sides' support, each side's best sentence, which sides a sentence names with it).

    A sentence counts with its title: abstracts name the drug there.
    """
    words = content_words(name)
    holds = np.array([words <= found for found in field.words], bool)
    support, best, held = [], [], []
    for side, scores in zip(sides, supports, strict=True):
        wanted = content_words(side.subject)
        stated = np.where(holds & np.array([wanted <= found for found in field.words], bool), scores, 0.0)
        held.append(bool(stated.any()))
        apart = ABSENT * max(float(np.where(holds, scores, 0.0).max()), ABSENT)
        support.append(float(stated.max()) if held[-1] else apart)
        best.append(int((stated if held[-1] else scores).argmax()))
    return float(np.prod(support)) ** (1 / len(support)), tuple(best), tuple(held)


def _fits(noun: str, candidates: list[str], texts: list[str], reader: Reader) -> list[float]:
    if not noun or not candidates:
        return [0.0] * len(candidates)
    vectors = reader.query_vectors([noun, *candidates])
    cosines = np.maximum(vectors[1:] @ vectors[0], 0.0)
    head = stem(noun.casefold().split()[-1])
    asked = families(noun)
    tokens = [[stem(token) for token in _TOKEN.findall(text.casefold())] for text in texts]
    raw = [_TOKEN.findall(text.casefold()) for text in texts]
    fits = []
    for candidate, cosine in zip(candidates, cosines, strict=True):
        words = [stem(token) for token in _TOKEN.findall(candidate.casefold())]
        said = described = False
        for stems, plain in zip(tokens, raw, strict=True):
            at = _find(stems, words)
            if at is None:
                continue
            said |= _says(stems, plain, at, at + len(words), head)
            described |= words[-1] == head and bool({"a", "an"} & set(plain[max(0, at - 3) : at]))
        of_kind = _of_kind(asked, candidate)
        if not asked and len(words) > 1 and words[-1] == head:
            of_kind = OF_KIND  # a "Duffy antigen" is an antigen
        fits.append(MEANT * float(cosine) + SAID * said + of_kind - KIND_ONLY * described)
    return fits


def _says(stems: list[str], plain: list[str], start: int, end: int, head: str) -> bool:
    """Whether the words around ``[start:end]`` say that it is a ``head``.

    ``the enzyme X``, ``enzymes such as X``; ``X is an efflux transporter``, ``X, the enzyme that ...``,
    ``X and other antibiotics``.
    """
    before, after = stems[max(0, start - BEFORE_WORDS) : start], stems[end : end + NEAR_WORDS]
    return head in before or (head in after and bool(_COPULAS & set(plain[end : end + 2])))


def _of_kind(asked: frozenset[str], candidate: str) -> float:
    """Full where a vocabulary lists it, half where only its ending speaks; a name of unknown kind loses half."""
    if not asked:
        return 0.0
    shown = kinds_of(candidate)
    if asked & shown:
        return OF_KIND if is_medical(candidate) else OF_KIND / 2
    return -OF_KIND if shown else -OF_KIND / 2


def _find(tokens: list[str], words: list[str]) -> int | None:
    return next((at for at in range(len(tokens) - len(words) + 1) if tokens[at : at + len(words)] == words), None)


def _fullest(text: str, name: str, entities: Sequence[str], known: frozenset[str]) -> str:
    """The name as the sentence writes it, with the words before it that belong to it: ``retrograde axonal transport``.

    The longest entity of the evidence that ends in the name and that the sentence holds as well;
    words of the question add nothing.
    """
    words, held = content_words(name), " ".join(text.casefold().split())
    last = name.casefold().split()[-1:]
    longer = [
        entity
        for entity in entities
        if entity.casefold().split()[-1:] == last
        and words < content_words(entity)
        and entity.casefold() in held
        and len(entity.split()) <= LONGEST
        and not (content_words(entity) - words) & known
    ]
    return surface(text, max(longer, key=lambda entity: (len(entity), entity), default=name))


def surface(text: str, entity: str) -> str:
    """The entity as the sentence writes it: ``small-cell lung cancer`` for ``small cell lung carcinoma``.

    The stretch of as many words that shares most with the name, if that is more than ``ALIKE``;
    else the name itself.
    """
    tokens = list(_TOKEN.finditer(text))
    words = [stem(token) for token in _TOKEN.findall(entity.casefold())]
    stems = [stem(token.group().casefold()) for token in tokens]
    best, at = ALIKE * len(words), None
    for start in range(len(tokens) - len(words) + 1):
        shared = sum(a == b for a, b in zip(stems[start : start + len(words)], words, strict=True))
        if shared > best and content_words(tokens[start].group()):
            best, at = shared, start
    if at is None:
        return entity
    end = at + len(words)
    while not content_words(tokens[end - 1].group()):
        end -= 1
    return text[tokens[at].start() : tokens[end - 1].end()]
