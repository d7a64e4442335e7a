"""The words of a relation: ``carries``, ``does not cause``, ``is transmitted by``, ``may be resistant to``."""

from __future__ import annotations

from hybrid_ir.extraction.parse import Token

_HEDGES = frozenset("may might could".split())
_WEAKENERS = frozenset("hardly barely scarcely rarely seldom".split())
_IRREGULAR = {"be": "is", "have": "has", "do": "does", "go": "goes"}
MOST_WORDS = 6


def verb_phrase(verb: Token, *, passive: bool, negated: bool, hedged: bool) -> str:
    """The verb in the present: tense says nothing that a graph could use, negation and doubt do."""
    lemma = verb.lemma_.lower()
    weakened = next((child.lower_ for child in verb.children if child.lower_ in _WEAKENERS), "")
    words = _plain_phrase(verb, lemma, passive=passive, negated=negated, hedged=hedged)
    particle = next((child.lower_ for child in verb.children if child.dep_ == "prt"), "")
    return join(weakened, words, particle)


def _plain_phrase(verb: Token, lemma: str, *, passive: bool, negated: bool, hedged: bool) -> str:
    negation = " not" if negated else ""
    if passive:
        return f"may{negation} be {verb.lower_}" if hedged else f"is{negation} {verb.lower_}"
    if hedged:
        return f"may{negation} {lemma}"
    if negated:
        return "is not" if lemma == "be" else f"does not {lemma}"
    return third_person(lemma)


def third_person(lemma: str) -> str:
    """carry -> carries."""
    if lemma in _IRREGULAR:
        return _IRREGULAR[lemma]
    if lemma.endswith("y") and lemma[-2:-1] not in "aeiou":
        return f"{lemma[:-1]}ies"
    if lemma.endswith(("s", "sh", "ch", "x", "z", "o")):
        return f"{lemma}es"
    return f"{lemma}s"


def is_negated(verb: Token) -> bool:
    """By ``not``, ``never``, ``no X``, or a governing verb that fails or denies."""
    if any(child.dep_ == "neg" or child.lower_ in ("never", "neither") for child in verb.children):
        return True
    if any(child.lower_ == "longer" and any(w.lower_ == "no" for w in child.children) for child in verb.children):
        return True
    for child in verb.children:
        if child.dep_ in ("nsubj", "nsubjpass", "dobj", "attr") and any(
            word.dep_ in ("det", "neg", "preconj") and word.lower_ in ("no", "neither") for word in child.children
        ):
            return True
    if verb.dep_ == "xcomp":
        return verb.head.lemma_ in ("fail", "refuse", "cease") or is_negated(verb.head)
    return False


def is_hedged(verb: Token) -> bool:
    if any(child.dep_ == "aux" and child.lower_ in _HEDGES for child in verb.children):
        return True
    return verb.dep_ == "xcomp" and is_hedged(verb.head)


def is_passive(verb: Token) -> bool:
    if any(child.dep_ in ("auxpass", "nsubjpass") for child in verb.children):
        return True
    if verb.tag_ != "VBN" or any(child.dep_ in ("nsubj", "aux") for child in verb.children):
        return False
    if verb.dep_ == "conj":
        return is_passive(verb.head) if verb.head.pos_ in ("VERB", "AUX") else False
    return verb.dep_ in ("acl", "advcl", "ROOT", "relcl")


def join(*parts: str) -> str:
    """One relation of its parts, at most six words, the last ones kept: they carry the preposition."""
    words = " ".join(part for part in parts if part).split()
    if len(words) > MOST_WORDS:
        words = words[: MOST_WORDS - 2] + words[-2:]
    return " ".join(words)
