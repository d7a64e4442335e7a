"""The entities that a parsed text names.

From four sources: terms of the vocabularies, noun phrases, proper names (spaCy's recogniser) and
symbols such as genes.  A noun phrase also gives its head compound ("chronic lead poisoning" ->
"lead poisoning"), so that passages meet on what they share.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from hybrid_ir.extraction.names import canonical
from hybrid_ir.extraction.parse import Doc, Span
from hybrid_ir.extraction.phrases import compound_start, is_generic, is_number, phrase_name
from hybrid_ir.extraction.plurals import singular
from hybrid_ir.extraction.proper import NO_TOPIC, Names, Topic, proper_names
from hybrid_ir.extraction.vocabulary import Vocabulary
from hybrid_ir.extraction.words import ANAPHORIC, GENERIC, HOLLOW, MONTHS, SEATED, WEAK_MODIFIERS

_MOST_WORDS = 6  # a longer noun phrase is a description; its head compound is the entity
_SKIPPED_TAGS = frozenset("DT PDT PRP$ WP$ WDT WP WRB POS CC RB RBR RBS IN SYM NFP JJR JJS".split())
_QUESTION_WORDS = frozenset("how what which whose".split())
_EPONYM_HEADS = frozenset("disease syndrome palsy sign lymphoma sarcoma tumor tumour chorea esophagus node".split())


@dataclass
class Entities:
    """What a text names."""

    found: list[tuple[int, int, str]] = field(default_factory=list)
    """(first token, number of tokens, name)."""
    heads: dict[int, str] = field(default_factory=dict)
    """The token that heads a noun phrase -> the name of the phrase."""

    def add(self, start: int, end: int, name: str) -> None:
        if len(name) > 1 or not name.isascii():  # "p", of p < 0.05
            self.found.append((start, end - start, name))

    def names(self) -> tuple[str, ...]:
        """In order of appearance, the longer first, each once."""
        return tuple(dict.fromkeys(name for _, _, name in sorted(self.found, key=lambda f: (f[0], -f[1]))))


def find_entities(doc: Doc, vocabulary: Vocabulary, topic: Topic = NO_TOPIC) -> Entities:
    """All entities of a parsed text; where it repeats its title, that is one name whatever words it has."""
    entities = Entities()
    proper = proper_names(doc, topic)
    terms: Names = {}
    for term in vocabulary.find(doc.text):
        span = doc.char_span(term.start, term.end)  # None: it ends within a word, as HLA-B does in HLA-B*57:01
        if span is not None and not any(_inside_name(span, doc[s:e]) for s, e in proper):
            terms[(span.start, span.end)] = term.name
            entities.add(span.start, span.end, term.name)
    for place in [place for place in proper if place in terms]:
        del proper[place]
    for chunk in doc.noun_chunks:
        _add_chunk(entities, chunk, {**proper, **terms}, proper)
    for (start, end), name in terms.items():
        entities.heads.setdefault(doc[start:end].root.i, name)
    for (start, end), name in proper.items():
        entities.add(start, end, name)
        # A name is one thing: none of its words is another's subject or object.
        entities.heads.update({token.i: name for token in doc[start:end] if token.pos_ in ("NOUN", "PROPN")})
        entities.heads[doc[start:end].root.i] = name
        _add_seat(entities, doc[start:end])
    return entities


def _inside_name(term: Span, name: Span) -> bool:
    """ "Whitehead" in "Alfred Whitehead" is no comedo; "diabetes" in "Diabetes UK" is no disease either."""
    return (
        name.start <= term.start
        and term.end <= name.end
        and len(name) > len(term)
        and all(token.text[0].isupper() or token.is_stop or token.is_punct for token in name)
        and term.text[0].isupper()
    )


def _add_seat(entities: Entities, name: Span) -> None:
    """Copenhagen, in "University of Copenhagen"."""
    if len(name) < 3 or name[0].lower_ not in SEATED:
        return
    for token in name[1:-1]:
        if token.lower_ in ("of", "at"):
            rest = name.doc[token.i + 1 : name.end]
            start = next((t.i for t in rest if t.tag_ != "DT"), rest.end)
            entities.add(start, rest.end, canonical(name.doc[start : rest.end].text))
            return


def _add_chunk(entities: Entities, chunk: Span, names: Names, proper: Names) -> None:
    """A noun phrase, cut to what it names."""
    doc, root = chunk.doc, chunk.root
    if root.pos_ in ("PRON", "DET") or root.tag_ in ("WP", "WDT", "EX", "PRP"):
        return
    start, end = chunk.start, root.i + 1
    if any(s <= root.i < e - 1 or (s <= start and root.i < e) for s, e in proper):
        return  # a part of a proper name
    for piece_start, piece_end in _split_possessive(doc, start, end, names):
        _add_phrase(entities, doc[piece_start:piece_end], names)


def _split_possessive(doc: Doc, start: int, end: int, names: Names) -> Iterator[tuple[int, int]]:
    for token in doc[start:end]:
        if token.tag_ not in ("POS", "VBZ"):  # a verb inside a noun phrase: the parser took it for a noun
            continue
        whole = token.tag_ == "POS" and any(s <= token.i < e for s, e in names)
        whole = whole or (token.tag_ == "POS" and doc[end - 1].lower_ in _EPONYM_HEADS)
        if not whole and start < token.i:
            yield start, token.i
            start = token.i + 1
    if start < end:
        yield start, end


def _add_phrase(entities: Entities, phrase: Span, names: Names) -> None:
    doc, end = phrase.doc, phrase.end
    head = doc[end - 1]
    start = _first_word(phrase, names)
    if start >= end or is_number(head):
        return
    known = min((s for s, e in names if e == end and s >= phrase.start), default=None)
    if known is not None:
        _add_known(entities, doc[min(start, known) : end], known, names)
        return
    words = doc[start:end]
    content = [token for token in words if not token.is_punct]
    if all(is_generic(token) for token in content) or (len(content) == 1 and singular(head.lower_) in ANAPHORIC):
        return
    proper = (
        len(words) > 1
        and all(token.text[0].isupper() or token.is_punct for token in words)
        and not (head.is_sent_start or (doc[start].is_sent_start and len(words) == 2))
    )
    compound = compound_start(words)
    if not proper and singular(head.lower_) in GENERIC:
        _add_modifiers(entities, doc[compound : end - 1])  # "rabies patients", "antidepressant effect"
        if singular(head.lower_) in HOLLOW:
            return
    if len(content) > _MOST_WORDS:
        words = doc[compound:end]
    elif not proper:
        words = _add_first_of_two(entities, words)
    name = phrase_name(words)
    if not name:
        return
    entities.add(words.start, end, name)
    entities.heads[head.i] = name
    alone = end - compound == 1 and singular(head.lower_) in ANAPHORIC
    if not (proper or alone) and compound > words.start and not all(is_generic(t) for t in doc[compound:end]):
        entities.add(compound, end, phrase_name(doc[compound:end]))


def _add_known(entities: Entities, words: Span, known: int, names: Names) -> None:
    """A phrase that ends in a known name: "acute lymphoblastic leukemia", "psychologist Carl Rogers"."""
    doc, end = words.doc, words.end
    name = names[(known, end)]
    entities.heads[doc[end - 1].i] = name
    if words.start == known or len(words) > _MOST_WORDS:
        return
    capitals = all(token.text[0].isupper() for token in words)
    if doc[known].text[0].isupper() and not doc[known].is_sent_start and not capitals:
        return  # "psychologist Carl Rogers"
    words = _add_first_of_two(entities, words)
    full = phrase_name(words)
    if full and words.start < known:
        entities.add(words.start, end, full)
        if end - known == 1 or capitals:  # "urothelial cancer" is more than cancer
            entities.heads[doc[end - 1].i] = full


def _add_modifiers(entities: Entities, words: Span) -> None:
    if len(words.text) > 1 and not all(is_generic(token) for token in words) and not is_number(words[-1]):
        entities.add(words.start, words.end, phrase_name(words))


def _add_first_of_two(entities: Entities, words: Span) -> Span:
    """ "Pleural and pericardial effusion" names two things; returns the second."""
    for token in words[1:-1]:
        if token.tag_ == "CC" and token.i - words.start <= 3 and not words.doc[token.i - 1].is_punct:
            head = words[-1]
            first = canonical(f"{words.doc[words.start : token.i].text} {singular(head.lower_)}")
            entities.add(words.start, words.end, first)
            return words.doc[token.i + 1 : words.end]
    return words


def _first_word(phrase: Span, names: Names) -> int:
    """Past articles, possessives, numbers, adverbs and adjectives that say nothing of what a thing is."""
    doc = phrase.doc
    starts = {s for s, _ in names}
    for token in phrase:
        if token.i in starts:
            return int(token.i)
        joined = not token.whitespace_ and token.i + 1 < len(doc) and doc[token.i + 1].text in ("-", ",", "'")
        empty = (
            token.tag_ in _SKIPPED_TAGS
            or token.lower_ in WEAK_MODIFIERS
            or token.lower_ in _QUESTION_WORDS
            or (token.lower_ in MONTHS and token.ent_type_ == "DATE")
            or is_number(token)
        )
        if not token.is_punct and (joined or not empty):
            return int(token.i)
    return int(phrase.end)
