"""Proper names: of people, places and works, of genes and alleles, and the title where a text repeats it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from hybrid_ir.extraction.names import canonical, carries_case
from hybrid_ir.extraction.parse import Doc, Span
from hybrid_ir.extraction.phrases import NUMERIC, phrase_name
from hybrid_ir.extraction.words import GENERIC

_PROPER = frozenset("PERSON ORG GPE LOC FAC WORK_OF_ART EVENT PRODUCT NORP LAW".split())
_SYMBOL = re.compile(r"(?<!\w)[\w\[(]*[A-Za-zα-ωΑ-Ω][\w\])⁺⁻]*(?:[-*:/][\w\])⁺⁻]+)*[+]?")
_ROMAN = re.compile(r"[IVX]+")

Names = dict[tuple[int, int], str]
"""(first token, token after the last) -> name."""


class Topic(NamedTuple):
    """What a text is about, from its title."""

    text: str = ""
    name: str = ""


NO_TOPIC = Topic()


def proper_names(doc: Doc, topic: Topic) -> Names:
    names: Names = {}
    taken: set[int] = set()
    if len(topic.text) > 2:
        for match in re.finditer(rf"(?<!\w){re.escape(topic.text)}(?!\w)", doc.text):
            span = doc.char_span(*match.span(), alignment_mode="contract")
            if span is not None and len(span):
                names[(span.start, span.end)] = topic.name
                taken.update(range(span.start, span.end))
    recognised = list(_recognised(doc))
    for span, name in symbols(doc):
        place = range(span.start, span.end)
        if not taken.intersection(place) and not any(
            s.start <= span.start and span.end <= s.end for s, _ in recognised
        ):
            names[(span.start, span.end)] = name
            taken.update(place)
    people: list[str] = [topic.name]
    for span, label in recognised:
        if taken.intersection(range(span.start, span.end)):
            continue
        name = phrase_name(span)
        if label == "PERSON":
            name = next((person for person in people if len(span) == 1 and name in person.split(" ")), name)
            people.append(name)
        if name:
            names[(span.start, span.end)] = name
            taken.update(range(span.start, span.end))
    return names


def _recognised(doc: Doc) -> Iterator[tuple[Span, str]]:
    for entity in doc.ents:
        if entity.label_ not in _PROPER:
            continue
        start, end = entity.start, entity.end
        while start < end and (doc[start].tag_ in ("DT", "POS") or doc[start].is_punct):
            start += 1
        while start < end and (doc[end - 1].tag_ == "POS" or doc[end - 1].is_punct):
            end -= 1
        if start == end:
            continue
        span = doc[start:end]
        if span.text[0].isupper() and not all(token.tag_ == "CD" for token in span):
            if end - start == 1 and (doc[start].is_sent_start or doc[start].pos_ not in ("PROPN", "NOUN")):
                continue  # a capital at the start of a sentence says nothing
            yield span, entity.label_


def symbols(doc: Doc) -> Iterator[tuple[Span, str]]:
    """Genes, alleles, cell markers: ``IL-6``, ``HLA-B*57:01``, ``CD4+``."""
    letters = [c for c in doc.text if c.isalpha()]
    if sum(c.isupper() for c in letters) > len(letters) / 2:
        return  # all in capitals: case says nothing
    for match in _SYMBOL.finditer(doc.text):
        word = match.group()
        capitals = sum(c.isupper() for c in word)
        digits = any(c.isdigit() for c in word)
        if not (capitals >= 2 or (capitals and digits)) or not carries_case(word) or len(word) > 24:
            continue
        if _ROMAN.fullmatch(word) or (not digits and (len(word) > 6 or word.lower() in GENERIC)) or len(word) < 2:
            continue
        span = doc.char_span(match.start(), match.end(), alignment_mode="expand")
        if span is None or (span.root.ent_type_ in NUMERIC and not digits):
            continue
        name = canonical(word)
        if name:
            yield span, name
