"""OpenIE by rules on a CPU: no download, no language model, the same answer every time."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import cached_property
from importlib import metadata

from hybrid_ir.extraction import term_lists
from hybrid_ir.extraction import vocabulary as vocabularies
from hybrid_ir.extraction.aliases import find_aliases
from hybrid_ir.extraction.entities import find_entities
from hybrid_ir.extraction.names import canonical
from hybrid_ir.extraction.parse import Doc, Parser, pipeline_version
from hybrid_ir.extraction.plurals import singular
from hybrid_ir.extraction.proper import NO_TOPIC, Topic
from hybrid_ir.extraction.triples import Fact, find_triples
from hybrid_ir.extraction.words import GENERIC, NOT_IN_QUESTIONS
from hybrid_ir.records import Chunk, Extraction, Triple
from hybrid_ir.settings import RuleExtractorSettings

RULES_VERSION = "2"
"""Raise it whenever the rules' output changes: cached extractions of older rules are then not used."""

_TITLE_WORDS = 8
_DISAMBIGUATION = re.compile(r"\s*\([^()]*\)\s*$")
_PLACE = re.compile(r"^([A-Z][^,]*), [A-Z]\w+(?: [A-Z]\w+)*$")
"""A text on "Memphis, Tennessee" calls it Memphis."""


class RuleExtractor:
    """An ``Extractor``: dependency parse, medical vocabularies, and the rules of this package."""

    def __init__(self, settings: RuleExtractorSettings) -> None:
        """Parser and vocabularies are loaded when first used: a job asks for the fingerprint alone."""
        vocabularies.check(settings.vocabularies)
        self._settings = settings
        self._pipeline_version = pipeline_version(settings.spacy_package)

    @cached_property
    def _vocabulary(self) -> vocabularies.Vocabulary:
        return vocabularies.load(self._settings.vocabularies)

    @cached_property
    def _parser(self) -> Parser:
        return Parser(self._settings.spacy_package)

    @property
    def fingerprint(self) -> dict[str, str]:
        return {
            "kind": self._settings.kind,
            "rules": RULES_VERSION,
            "pipeline": self._pipeline_version,
            "spacy": metadata.version("spacy"),
            **term_lists.versions(self._settings.vocabularies),
        }

    def extract(self, chunks: Sequence[Chunk]) -> list[Extraction | str]:
        titles = list(dict.fromkeys(chunk.title for chunk in chunks))
        docs = self._parser.parse([*(chunk.text for chunk in chunks), *titles])
        title_docs = dict(zip(titles, docs[len(chunks) :], strict=True))
        results: list[Extraction | str] = []
        for chunk, doc in zip(chunks, docs, strict=False):
            if isinstance(doc, str):
                results.append(doc)
                continue
            try:
                results.append(self._extract_one(chunk, doc, title_docs[chunk.title]))
            except Exception as error:  # a parse that the rules did not foresee costs this chunk alone
                results.append(f"The rules failed on this chunk: {type(error).__name__}: {error}")
        return results

    def mentions(self, texts: Sequence[str]) -> list[tuple[str, ...]]:
        """In order of appearance; a text that cannot be parsed names nothing."""
        found = []
        for doc in self._parser.parse(texts):
            names = () if isinstance(doc, str) else find_entities(doc, self._vocabulary).names()
            found.append(tuple(name for name in names if not _only_generic(name)))
        return found

    def _extract_one(self, chunk: Chunk, doc: Doc, title: Doc | str) -> Extraction:
        topic, title_names, title_facts = self._read_title(title)
        entities = find_entities(doc, self._vocabulary, topic)
        facts: list[Fact] = title_facts if chunk.position == 0 else []
        facts += find_aliases(doc, entities, self._vocabulary)
        facts += find_triples(doc, entities, topic.name)
        facts = list(dict.fromkeys(_clean(facts)))
        names = [*title_names, *entities.names(), *(name for head, _, tail in facts for name in (head, tail))]
        return Extraction(
            chunk_id=chunk.id,
            mentions=tuple(dict.fromkeys(names)),
            triples=tuple(Triple(chunk_id=chunk.id, head=h, relation=r, tail=t) for h, r, t in facts),
        )

    def _read_title(self, doc: Doc | str) -> tuple[Topic, tuple[str, ...], list[Fact]]:
        """(topic, names, triples) of a title; a sentence as title has no topic."""
        if isinstance(doc, str) or not len(doc):
            return NO_TOPIC, (), []
        says_something = any(token.tag_ in ("VBZ", "VBP", "VBD", "MD") or token.dep_ == "acl" for token in doc)
        if len(doc) <= _TITLE_WORDS and not says_something:
            text = _PLACE.sub(r"\1", _DISAMBIGUATION.sub("", doc.text).strip())
            name = self._vocabulary.name(text) or self._singular_title(text, canonical(text))
            if name and name not in GENERIC:
                topic = Topic(text, name)
                full = canonical(doc.text) if _PLACE.match(doc.text) else name
                return topic, (name, full, *find_entities(doc, self._vocabulary, topic).names()), []
        entities = find_entities(doc, self._vocabulary)
        return NO_TOPIC, entities.names(), list(find_triples(doc, entities, ""))

    def _singular_title(self, title: str, name: str) -> str:
        """ "Bats" is about the bat; The Wrights are a name."""
        if name != title.lower() or (" " in name and title.rpartition(" ")[2].istitle()):
            return name
        one = vocabularies.singular_name(name)
        return one if one.rpartition(" ")[2] in self._parser.nouns else name


def _clean(facts: Sequence[Fact]) -> Iterator[Fact]:
    for head, relation, tail in facts:
        head, tail, relation = canonical(head), canonical(tail), " ".join(relation.lower().split())
        if head and tail and relation and head != tail:
            yield head, relation, tail


def _only_generic(name: str) -> bool:
    words = [singular(word) for word in name.split()]
    return all(word in GENERIC or word in NOT_IN_QUESTIONS for word in words)
