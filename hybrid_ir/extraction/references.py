"""What the nouns and pronouns of a sentence stand for.

A pronoun stands for the subject before it, "the drug" for the drug named before, "treatment of
malaria" for malaria.
"""

from __future__ import annotations

from typing import NamedTuple

from hybrid_ir.extraction.entities import Entities
from hybrid_ir.extraction.parse import Token
from hybrid_ir.extraction.plurals import singular
from hybrid_ir.extraction.relations import join
from hybrid_ir.extraction.words import QUANTITIES, STANDS_FOR

SUBJECTS = ("nsubj", "nsubjpass", "csubj")
_LOOK_THROUGH = frozenset("of in for to with against by between from".split())


class Reference(NamedTuple):
    """What a noun stands for: an entity, and the generic noun it was reached through ("treatment of")."""

    name: str
    via: str = ""


class Context:
    """Entities, and the subject of the sentence before for its pronouns."""

    def __init__(self, entities: Entities, topic: str, people: frozenset[str]) -> None:
        self._people = people
        self.heads = entities.heads
        self.topic = topic
        self.subject = ""
        self.plural = False
        self._before = ""
        self._before_plural = False

    def next_sentence(self) -> None:
        if self.subject:
            self._before, self._before_plural = self.subject, self.plural

    def note_subject(self, token: Token, name: str) -> None:
        if not self.subject:
            self.subject = name
            self.plural = token.tag_ in ("NNS", "NNPS") or any(child.dep_ == "conj" for child in token.children)

    def antecedent(self, token: Token) -> str:
        """The subject before, where its number agrees, else the topic."""
        plural = token.lower_ in ("they", "these", "those", "them") or token.tag_ == "NNS"
        if token.lower_ in ("he", "she", "him", "her"):
            return self._before if self._before in self._people else self.topic
        if self._before and self._before_plural == plural:
            return self._before
        return "" if plural else self.topic

    def references(self, token: Token, depth: int = 0) -> list[Reference]:
        """What a noun or pronoun and the nouns coordinated with it stand for."""
        found: list[Reference] = []
        for noun in (token, *token.conjuncts) if token.dep_ != "conj" else (token,):
            found += self._one(noun, depth)
        return found

    def _one(self, token: Token, depth: int) -> list[Reference]:
        if self._repeats_topic(token):
            return [Reference(self.topic)]
        if token.i in self.heads:
            return [Reference(self.heads[token.i])]
        if token.tag_ in ("WDT", "WP") or (token.lower_ == "that" and token.pos_ in ("PRON", "SCONJ")):
            return self._relative(token, depth)
        if token.pos_ == "PRON" and token.lower_ in _PRONOUNS:
            name = self.antecedent(token)
            # An object "it" may be anything named since; only the topic is safe.
            return (
                [Reference(name)]
                if name and (token.dep_ in SUBJECTS or (token.lower_ == "it" and name == self.topic))
                else []
            )
        if depth < 2:
            through = self.through(token, depth)
            if through:
                return through
        if singular(token.lower_) in STANDS_FOR and token.dep_ in SUBJECTS and _only_pointed_at(token):
            name = self.antecedent(token)
            return [Reference(name)] if name else []
        return []

    def _repeats_topic(self, token: Token) -> bool:
        """ "The journal", in a text on the Journal of Mathematical Physics."""
        words = self.topic.split()
        return len(words) > 1 and token.lower_ in words and _only_pointed_at(token)

    def through(self, token: Token, depth: int = 0) -> list[Reference]:
        """ "Treatment of malaria" stands for malaria, by way of ``treatment of``."""
        word = singular(token.lower_)
        for child in token.children:
            if child.dep_ == "prep" and child.lower_ in _LOOK_THROUGH:
                via = "" if word in QUANTITIES else f"{word} {child.lower_}"
                return [
                    Reference(reference.name, join(via, reference.via))
                    for noun in child.children
                    if noun.dep_ == "pobj"
                    for reference in self.references(noun, depth + 1)
                ]
        return []

    def _relative(self, token: Token, depth: int) -> list[Reference]:
        clause = token
        while clause.dep_ not in ("relcl", "ROOT"):
            clause = clause.head
        if clause.dep_ != "relcl" or depth > 2:
            return []
        return self._one(clause.head, depth + 1)


_PRONOUNS = frozenset("it they he she this these those them him".split())


def _only_pointed_at(noun: Token) -> bool:
    """The, this or these and nothing else before the noun."""
    before = list(noun.lefts)
    return len(before) == 1 and before[0].lower_ in ("the", "this", "these")
