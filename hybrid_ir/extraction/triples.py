"""Triples from a dependency parse.

A verb links its subjects to its objects and to the objects of its prepositions; a noun links to
the noun that a preposition, a possessive or an apposition ties to it.  Subjects are inherited by
coordinated verbs, complements, participles and relative clauses.
"""

from __future__ import annotations

from collections.abc import Iterator

from hybrid_ir.extraction.entities import Entities
from hybrid_ir.extraction.names import canonical
from hybrid_ir.extraction.parse import Doc, Token
from hybrid_ir.extraction.plurals import singular
from hybrid_ir.extraction.references import SUBJECTS, Context, Reference
from hybrid_ir.extraction.relations import is_hedged, is_negated, is_passive, join, verb_phrase
from hybrid_ir.extraction.words import GENERIC

Fact = tuple[str, str, str]
"""Head, relation, tail."""

_OBJECTS = ("dobj", "attr", "oprd", "dative")
_NOUN_PREPOSITIONS = frozenset("of in for to with by from between against on at during through via".split())
_HYPHENED = {
    "associated": "is associated with",
    "related": "is related to",
    "dependent": "is required by",
    "induced": "induces",
    "mediated": "mediates",
    "borne": "carries",
    "transmitted": "transmits",
    "resistant": "does not respond to",
    "derived": "is source of",
    "caused": "causes",
    "linked": "is linked to",
}
_PLACES = frozenset(("GPE", "LOC"))
_REVERSED = frozenset(("resistant",))


def find_triples(doc: Doc, entities: Entities, topic: str) -> Iterator[Fact]:
    """All triples in order of appearance; ``topic`` is what the text as a whole is about, or empty."""
    people = frozenset(canonical(entity.text) for entity in doc.ents if entity.label_ == "PERSON")
    context = Context(entities, topic, people)
    for sentence in doc.sents:
        context.subject = ""
        for token in sentence:
            if token.pos_ in ("VERB", "AUX") and token.dep_ not in ("aux", "auxpass") and token.tag_ != "MD":
                yield from _verb_triples(token, context)
            elif token.dep_ == "prep" or token.text in ("including", "like"):
                yield from _noun_preposition(token, context)
            elif token.dep_ in ("poss", "appos"):
                yield from _tied_noun(token, context)
            if token.text == "-":
                yield from _hyphened(token, context)
        context.next_sentence()


def _verb_triples(verb: Token, context: Context) -> Iterator[Fact]:
    subjects = _subjects(verb, context, 0)
    if not subjects:
        return
    passive = is_passive(verb)
    phrase = verb_phrase(verb, passive=passive, negated=is_negated(verb), hedged=is_hedged(verb))
    for relation, target in _targets(verb, phrase, context):
        for subject in subjects:
            noun = subject.via.split(" ")[0]
            yield subject.name, join(noun, relation, target.via), target.name


def _subjects(verb: Token, context: Context, depth: int) -> list[Reference]:
    """The verb's own subjects, or those it inherits."""
    own = [child for child in verb.children if child.dep_ in SUBJECTS]
    if own:
        references = [reference for child in own for reference in context.references(child)]
        if references:
            context.note_subject(own[0], references[0].name)
        return references
    if depth > 4:
        return []
    if verb.dep_ == "acl" and verb.tag_ != "VB":  # not "the decision to publish"
        return context.references(verb.head)[:1]
    if verb.dep_ == "relcl" and any(child.dep_ == "nsubj" for child in verb.children):
        return context.references(verb.head)[:1]
    if verb.dep_ in ("conj", "xcomp") and verb.head.pos_ in ("VERB", "AUX"):
        return _subjects(verb.head, context, depth + 1)
    if verb.dep_ == "advcl" and verb.tag_ in ("VBG", "VBN") and verb.head.pos_ in ("VERB", "AUX"):
        return _subjects(verb.head, context, depth + 1)
    if verb.dep_ == "ROOT" and context.topic and verb.tag_ in ("VBZ", "VBN", "VBD") and _opens_sentence(verb):
        return [Reference(context.topic)]  # a note leaves its subject out: "Causes paralysis."
    return []


def _opens_sentence(verb: Token) -> bool:
    return all(token.pos_ in ("ADV", "AUX") for token in verb.doc[verb.sent.start : verb.i])


def _targets(verb: Token, phrase: str, context: Context) -> Iterator[tuple[str, Reference]]:
    """(relation, object) for each object of the verb and of its prepositions."""
    for child in verb.children:
        mistaken = child.i > verb.i and child.i in context.heads and child.dep_ in ("advmod", "appos", "npadvmod")
        if child.dep_ in _OBJECTS or mistaken:
            for reference in context.references(child):
                yield phrase, reference
            if child.dep_ == "attr" and child.i in context.heads and child.pos_ == "NOUN":
                yield from ((phrase, reference) for reference in context.through(child))  # "is inhibitor of"
        elif child.dep_ == "acomp":
            yield from _prepositions(child, join(phrase, child.lower_), context)
        elif child.dep_ == "prep" or child.dep_ == "agent":
            yield from _preposition(child, phrase, context)
        elif child.dep_ == "prt":
            yield from _prepositions(child, phrase, context)


def _prepositions(token: Token, phrase: str, context: Context) -> Iterator[tuple[str, Reference]]:
    for child in token.children:
        if child.dep_ == "prep":
            yield from _preposition(child, phrase, context)


def _preposition(preposition: Token, phrase: str, context: Context) -> Iterator[tuple[str, Reference]]:
    relation = join(phrase, preposition.lower_)
    for child in preposition.children:
        if child.dep_ == "pobj":
            for reference in context.references(child):
                yield relation, reference
        elif child.dep_ == "pcomp" and child.pos_ == "VERB":  # "used for treating malaria"
            for target in child.children:
                if target.dep_ == "dobj":
                    for reference in context.references(target):
                        yield join(relation, child.lower_), reference
        elif child.dep_ == "prep":  # "from within"
            yield from _preposition(child, relation, context)


def _noun_preposition(preposition: Token, context: Context) -> Iterator[Fact]:
    noun = preposition.head
    if noun.pos_ not in ("NOUN", "PROPN"):
        return
    targets = [
        reference for child in preposition.children if child.dep_ == "pobj" for reference in context.references(child)
    ]
    word = preposition.lower_
    if word in ("including", "like") or _is_such_as(preposition):
        for source in context.references(noun)[:1]:
            for target in targets:
                yield target.name, "is a", source.name
    elif noun.i in context.heads and word in _NOUN_PREPOSITIONS:
        for target in targets:
            yield context.heads[noun.i], join(word, target.via), target.name
    elif word in ("with", "by") and singular(noun.lower_) in GENERIC:
        for patient in context.through(noun):  # "treatment of malaria with artemisinin"
            if patient.via and all(patient.name != target.name for target in targets):
                for target in targets:
                    yield target.name, patient.via, patient.name


def _is_such_as(preposition: Token) -> bool:
    if preposition.lower_ != "as":
        return False
    return bool(preposition.i > 0 and preposition.doc[preposition.i - 1].lower_ == "such")


def _tied_noun(token: Token, context: Context) -> Iterator[Fact]:
    head = context.heads.get(token.head.i)
    if head is None:
        return
    if token.dep_ == "appos" and token.left_edge.i > 0 and token.doc[token.left_edge.i - 1].text == "(":
        return  # brackets hold figures, examples and abbreviations: see aliases
    if token.dep_ == "appos" and _in_list(token):
        return
    if token.tag_ == "PRP$":
        name = context.subject or context.antecedent(token)
        targets = [Reference(name)] if name else []
    else:
        targets = context.references(token)
    places = token.ent_type_ in _PLACES and token.head.ent_type_ in _PLACES
    relation = "of" if token.dep_ == "poss" else "is in" if places else "is"  # "Memphis, Tennessee"
    for target in targets:
        yield head, relation, target.name


def _in_list(token: Token) -> bool:
    """The parser takes the second of "coma, seizures and death" for an apposition; a colon opens a list too."""
    if any(child.dep_ in ("conj", "cc") for noun in (token, token.head) for child in noun.children):
        return True
    return any(word.text == ":" for word in token.doc[token.head.i : token.i])


def _hyphened(hyphen: Token, context: Context) -> Iterator[Fact]:
    """ "Lidocaine-induced asystole": lidocaine induces asystole."""
    doc = hyphen.doc
    if not 0 < hyphen.i < len(doc) - 1:
        return
    cause, word = doc[hyphen.i - 1], doc[hyphen.i + 1]
    relation = _HYPHENED.get(word.lower_)
    noun = word.head if word.head.pos_ in ("NOUN", "PROPN") else None
    name = context.heads.get(cause.i)
    if relation is None or noun is None or noun.i <= word.i or name is None:
        return
    effect = context.heads.get(noun.i, "").removeprefix(f"{name}-{word.lower_} ")
    if effect:
        yield (effect, relation, name) if word.lower_ in _REVERSED else (name, relation, effect)
