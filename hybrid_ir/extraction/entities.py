"""The entities that a parsed text names.

From four sources: terms of the vocabularies, noun phrases, proper names (spaCy's recogniser) and
symbols such as genes.  A noun phrase also gives its head compound ("chronic lead poisoning" ->
"lead poisoning"), so that passages meet on what they share.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from hybrid_ir.extraction.names import canonical, carries_case
from hybrid_ir.extraction.parse import Doc, Span, Token
from hybrid_ir.extraction.plurals import singular
from hybrid_ir.extraction.vocabulary import Vocabulary
from hybrid_ir.extraction.words import GENERIC, HOLLOW, MONTHS, WEAK_MODIFIERS

_MOST_WORDS = 6  # a longer noun phrase is a description; its head compound is the entity
_PROPER = frozenset("PERSON ORG GPE LOC FAC WORK_OF_ART EVENT PRODUCT NORP LAW".split())
_NUMERIC = frozenset("DATE TIME PERCENT MONEY QUANTITY CARDINAL ORDINAL".split())
_SYMBOL = re.compile(r"(?<!\w)[\w\[(]*[A-Za-zα-ωΑ-Ω][\w\])]*(?:[-*:/][\w\])]+)*[+]?")
_ROMAN = re.compile(r"[IVX]+")
_EPONYM_HEADS = frozenset("disease syndrome palsy sign lymphoma sarcoma tumor tumour chorea esophagus node".split())


@dataclass
class Entities:
    """What a text names."""

    found: list[tuple[int, int, str]] = field(default_factory=list)
    """(first token, number of tokens, name)."""
    heads: dict[int, str] = field(default_factory=dict)
    """The token that heads a noun phrase -> the name of the phrase."""
    aliases: list[tuple[int, str]] = field(default_factory=list)

    def add(self, start: int, end: int, name: str) -> None:
        if name:
            self.found.append((start, end - start, name))

    def names(self) -> tuple[str, ...]:
        """In order of appearance, the longer first, each once."""
        return tuple(dict.fromkeys(name for _, _, name in sorted(self.found, key=lambda f: (f[0], -f[1]))))


def find_entities(doc: Doc, vocabulary: Vocabulary) -> Entities:
    """All entities of a parsed text."""
    entities = Entities()
    proper = list(_proper_names(doc))
    terms = {}
    for term in vocabulary.find(doc.text):
        span = doc.char_span(term.start, term.end, alignment_mode="expand")
        if span is not None and not any(_inside_name(span, name) for name in proper):
            terms[(span.start, span.end)] = term.name
            entities.add(span.start, span.end, term.name)
    for chunk in doc.noun_chunks:
        _add_chunk(entities, chunk, terms)
    for span in proper:
        name = _phrase_name(span)
        if (span.start, span.end) in terms or not name:
            continue
        entities.add(span.start, span.end, name)
        held = entities.heads.get(span.root.i)
        if held is None or len(span) > 1:
            entities.heads[span.root.i] = name
    for (start, end), name in terms.items():
        entities.heads.setdefault(doc[start:end].root.i, name)
    _add_symbols(entities, doc)
    return entities


def _proper_names(doc: Doc) -> Iterator[Span]:
    for entity in doc.ents:
        if entity.label_ not in _PROPER:
            continue
        start, end = entity.start, entity.end
        while start < end and (doc[start].tag_ in ("DT", "POS") or doc[start].is_punct):
            start += 1
        while start < end and (doc[end - 1].tag_ == "POS" or doc[end - 1].is_punct):
            end -= 1
        span = doc[start:end]
        if start < end and span.text[0].isupper() and not all(token.tag_ == "CD" for token in span):
            if end - start == 1 and (doc[start].is_sent_start or doc[start].pos_ not in ("PROPN", "NOUN")):
                continue  # a capital at the start of a sentence says nothing
            yield span


def _inside_name(term: Span, name: Span) -> bool:
    """ "Whitehead" in "Alfred Whitehead" is no comedo; "diabetes" in "Diabetes UK" is no disease either."""
    return (
        name.start <= term.start
        and term.end <= name.end
        and len(name) > len(term)
        and all(token.text[0].isupper() or token.is_stop or token.is_punct for token in name)
        and term.text[0].isupper()
    )


def _add_chunk(entities: Entities, chunk: Span, terms: dict[tuple[int, int], str]) -> None:
    """A noun phrase, cut to what it names."""
    doc, root = chunk.doc, chunk.root
    if root.pos_ in ("PRON", "DET") or root.tag_ in ("WP", "WDT", "EX", "PRP"):
        return
    start, end = chunk.start, root.i + 1
    for piece_start, piece_end in _split_possessive(doc, start, end, terms):
        _add_phrase(entities, doc[piece_start:piece_end], terms)


def _split_possessive(doc: Doc, start: int, end: int, terms: dict[tuple[int, int], str]) -> Iterator[tuple[int, int]]:
    for token in doc[start:end]:
        if token.tag_ != "POS":
            continue
        whole = any(s <= token.i < e for s, e in terms) or doc[end - 1].lower_ in _EPONYM_HEADS
        if not whole and start < token.i:
            yield start, token.i
            start = token.i + 1
    if start < end:
        yield start, end


def _add_phrase(entities: Entities, phrase: Span, terms: dict[tuple[int, int], str]) -> None:
    doc, end = phrase.doc, phrase.end
    head = doc[end - 1]
    start = _first_word(phrase, terms)
    term = next(((s, e) for s, e in terms if e == end and s >= phrase.start), None)
    if term is not None:
        start = min(start, term[0])
        entities.heads[head.i] = terms[term]
        if any(token.pos_ in ("NOUN", "PROPN") for token in doc[start : term[0]]) and end - start <= _MOST_WORDS:
            entities.add(start, end, _phrase_name(doc[start:end]))
        return
    if start >= end or _is_number(head):
        return
    words = doc[start:end]
    if all(_is_generic(token) for token in words if not token.is_punct):
        return
    proper = (
        len(words) > 1
        and all(token.text[0].isupper() or token.is_punct for token in words)
        and not (head.is_sent_start or (doc[start].is_sent_start and len(words) == 2))
    )
    compound = _compound_start(words)
    if not proper and singular(head.lower_) in HOLLOW:
        inner = doc[compound : end - 1]  # "rabies patients"
        if len(inner) and not all(_is_generic(token) for token in inner) and not _is_number(inner[-1]):
            entities.add(compound, end - 1, _phrase_name(inner))
        return
    if len([token for token in words if not token.is_punct]) > _MOST_WORDS:
        words = doc[compound:end]
    name = _phrase_name(words)
    if not name:
        return
    entities.add(words.start, end, name)
    entities.heads[head.i] = name
    if not proper and compound > words.start and not all(_is_generic(token) for token in doc[compound:end]):
        entities.add(compound, end, _phrase_name(doc[compound:end]))


def _first_word(phrase: Span, terms: dict[tuple[int, int], str]) -> int:
    """Past articles, possessives, numbers, adverbs and adjectives that say nothing of what a thing is."""
    doc = phrase.doc
    starts = {s for s, _ in terms}
    for token in phrase:
        if token.i in starts:
            return int(token.i)
        skipped = (
            token.is_punct
            or token.tag_
            in ("DT", "PDT", "PRP$", "WP$", "WDT", "POS", "CC", "RB", "RBR", "RBS", "IN", "SYM", "NFP", "JJR", "JJS")
            or token.lower_ in WEAK_MODIFIERS
            or (token.lower_ in MONTHS and token.ent_type_ == "DATE")
            or (_is_number(token) and not _joined(doc, token))
        )
        if not skipped:
            return int(token.i)
    return int(phrase.end)


def _joined(doc: Doc, token: Token) -> bool:
    """A number that a hyphen makes part of a word: ``5-hydroxytryptamine``."""
    return not token.whitespace_ and token.i + 1 < len(doc) and doc[token.i + 1].text in ("-", ",", "'")


def _is_number(token: Token) -> bool:
    if token.ent_type_ in _NUMERIC and (token.lower_ in MONTHS or singular(token.lower_) in GENERIC):
        return True
    return not any(c.isalpha() for c in token.text) or (token.like_num and token.text.islower())


def _is_generic(token: Token) -> bool:
    word = token.lower_
    return word in WEAK_MODIFIERS or singular(word) in GENERIC or word in MONTHS or _is_number(token)


def _compound_start(words: Span) -> int:
    """Where the nouns before the head begin: ``lead`` in "severe acute lead poisoning"."""
    start = words.end - 1
    while start > words.start:
        before = words.doc[start - 1]
        hyphen = before.text == "-" and not before.whitespace_
        if not (before.pos_ in ("NOUN", "PROPN") or hyphen or carries_case(before.text)):
            break
        start -= 1
    while words.doc[start].text == "-":
        start += 1
    # "dose-dependent", "lidocaine-induced": a hyphen binds leftwards too
    if start > words.start and words.doc[start - 1].text == "-":
        start = words.end - 1
    return int(start)


def _phrase_name(words: Span) -> str:
    """The name of a phrase: its text with the last word in the singular where it is a common noun."""
    name = canonical(words.text)
    head = words[-1]
    if head.tag_ == "NNS" or (head.pos_ == "NOUN" and head.text.islower()):
        before, _, last = name.rpartition(" ")
        stem, hyphen, tail = last.rpartition("-")
        last = f"{stem}{hyphen}{singular(tail)}"
        name = f"{before} {last}" if before else last
    return canonical(name)


def _add_symbols(entities: Entities, doc: Doc) -> None:
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
        if span is None or (span.root.ent_type_ in _NUMERIC and not digits):
            continue
        name = canonical(word)
        entities.add(span.start, span.end, name)
        if name:
            entities.heads.setdefault(span.root.i, name)
