"""What a model says of a passage, held against the passage: names as it writes them, in the graph's form.

A language model changes case, number and hyphens, repeats its example, and invents.  A name is
looked for in the title and the text by its words; what is found is called as the passage calls it,
in the form that the rules would give it.
"""

from __future__ import annotations

from collections.abc import Sequence

from hybrid_ir.extraction.llm_reply import Fact, Found, Unreadable
from hybrid_ir.extraction.names import canonical
from hybrid_ir.extraction.plurals import singular
from hybrid_ir.extraction.vocabulary import Vocabulary, singular_name, tokens
from hybrid_ir.extraction.words import GENERIC, NOT_IN_QUESTIONS, WEAK_MODIFIERS
from hybrid_ir.records import Chunk, Extraction, Triple

VERSION = "1"
"""Raise it whenever the same reply would give other names."""

_TITLE_END = "\n\n"


class Passage:
    """A chunk, to look names up in."""

    def __init__(self, chunk: Chunk, vocabulary: Vocabulary) -> None:
        self._chunk_id = chunk.id
        self._vocabulary = vocabulary
        self._text = f"{chunk.title}{_TITLE_END}{chunk.text}"
        self._tokens = [(word, singular(word), start, end) for word, start, end in tokens(self._text)]
        self._places: dict[str, list[int]] = {}
        for place, (_, stem, _, _) in enumerate(self._tokens):
            self._places.setdefault(stem, []).append(place)

    def find(self, name: str) -> tuple[int, int] | None:
        """Where the passage first writes a name, as offsets into title and text; None where it does not."""
        words = [word for word, _, _ in tokens(name)]
        if not words:
            return None
        for first in self._places.get(singular(words[0]), ()):
            here = self._tokens[first : first + len(words)]
            middle = [token[0] for token in here[:-1]] == words[:-1]
            if middle and here[-1][1] == singular(words[-1]) and len(here) == len(words):
                start, end = here[0][2], here[-1][3]
                if _TITLE_END not in self._text[start:end]:
                    return start, end
        return None

    def name(self, written: str) -> str:
        """The graph's name of what a model wrote; empty where it names nothing worth a node."""
        place = self.find(written)
        text = written if place is None else self._text[slice(*place)]
        name = self._vocabulary.name(text) or canonical(text)
        if name == canonical(text) and text[-1:].islower() and text.rpartition(" ")[2].islower():
            stem, hyphen, last = name.rpartition("-")
            name = f"{stem}{hyphen}{singular_name(last)}"
        words = [singular(word) for word in name.split()]
        return "" if all(w in GENERIC or w in NOT_IN_QUESTIONS or w in WEAK_MODIFIERS for w in words) else name

    def grounded(self, found: Found) -> Found:
        """Without entities that the passage does not name, and without triples of which it names neither end.

        Raises Unreadable where nothing of a reply that says something is left.
        """
        entities = tuple(name for name in found.entities if self.find(name))
        triples = tuple(fact for fact in found.triples if self.find(fact[0]) or self.find(fact[2]))
        for kept, said, what in (
            (entities, found.entities, "entities"),
            (triples, found.triples, "triples"),
        ):
            if said and not kept:
                raise Unreadable(f"none of its {len(said)} {what} is about the passage, the first being {said[0]!r}.")
        return Found(entities, triples, found.whole)

    def extraction(self, entities: Sequence[str], triples: Sequence[Fact]) -> Extraction:
        """Mentions in order of appearance, then what only a triple names."""
        facts: dict[Fact, None] = {}
        for head, relation, tail in triples:
            head, tail = self.name(head), self.name(tail)
            relation = " ".join(relation.replace("_", " ").lower().split())
            if head and tail and relation and head != tail:
                facts[(head, relation, tail)] = None
        places: dict[str, tuple[int, int]] = {}
        last = (len(self._text), 0)
        for written in (*entities, *(name for head, _, tail in triples for name in (head, tail))):
            place = self.find(written)
            # The longer first where two begin at one place, as the rules have it.
            if place is not None and (name := self.name(written)):
                places[name] = min(places.get(name, last), (place[0], -place[1]))
        ordered = sorted(places, key=lambda name: places[name])
        ends = (name for head, _, tail in facts for name in (head, tail))
        return Extraction(
            chunk_id=self._chunk_id,
            mentions=tuple(dict.fromkeys((*ordered, *ends))),
            triples=tuple(Triple(chunk_id=self._chunk_id, head=h, relation=r, tail=t) for h, r, t in facts),
        )
