"""OpenIE against gold: which entities and relations of annotated abstracts an extractor finds, and why not the others.

Gold is BioRED's or BC5CDR's: mentions with ids, and relations between ids that a whole document
states.  A name counts for an id where it is, case, number and hyphens apart, one of the texts
that the annotators marked in this document, or what the vocabularies call it.  Gold marks few
types (chemicals and diseases; genes, variants, species and cell lines in BioRED), so precision of
entities is a lower bound: a rightly found organ counts as wrong.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from hybrid_ir.errors import BadInput
from hybrid_ir.evaluation import json_lines
from hybrid_ir.extraction.vocabulary import key_of
from hybrid_ir.records import Document, Extraction, Section
from hybrid_ir.text import sentence_spans

Pair = frozenset[str]
"""Two gold ids; relations count whatever their direction and type."""
Rename = Callable[[str], str | None]
"""What the vocabularies call a text, or None."""


@dataclass(frozen=True)
class GoldEntity:
    """One id of one document."""

    id: str
    type: str
    names: frozenset[str]
    spans: tuple[tuple[int, int], ...]
    """Offsets into title, a blank, and text."""


@dataclass(frozen=True)
class GoldDocument:
    """An annotated abstract."""

    id: str
    title: str
    text: str
    entities: tuple[GoldEntity, ...]
    relations: frozenset[Pair]

    def document(self) -> Document:
        """As a reader would give it."""
        whole = (Section(start=0, end=len(self.text)),)
        return Document(id=self.id, title=self.title, text=self.text, sections=whole, source="gold")


@dataclass
class Judged:
    """Counts, of one document or of many; ``+`` adds."""

    documents: int = 0
    gold_entities: Counter[str] = field(default_factory=Counter)
    """By type."""
    found: Counter[str] = field(default_factory=Counter)
    """Gold entities that a name stands for."""
    partly: Counter[str] = field(default_factory=Counter)
    """Those of the others with a name that is longer or shorter: "seizure" for "tonic seizure"."""
    names: int = 0
    right_names: int = 0
    near_names: int = 0
    """Longer or shorter than a gold one."""
    gold_relations: int = 0
    linked: int = 0
    """Gold relations with a triple between their ends, however it is worded."""
    linked_nearly: int = 0
    """With longer or shorter names for the ends as well; includes ``linked``."""
    triples: int = 0
    judged_triples: int = 0
    """Between two gold entities, so that gold can say whether they are related."""
    right_triples: int = 0
    missed: list[tuple[Pair, str]] = field(default_factory=list)
    """Gold relations that are not even nearly linked, and the kind of each (``KINDS``)."""

    def __add__(self, other: Judged) -> Judged:
        names = self.__dataclass_fields__
        return Judged(**{name: getattr(self, name) + getattr(other, name) for name in names})

    def share(self, part: str, whole: str) -> float:
        """One count over another; 0 where there is nothing."""
        top, bottom = (getattr(self, name) for name in (part, whole))
        top, bottom = (sum(n.values()) if isinstance(n, Counter) else n for n in (top, bottom))
        return top / bottom if bottom else 0.0


KINDS = (
    "an end is not named",
    "an end is named in part",
    "never in one sentence",
    "in one sentence, linked to others only",
    "in one sentence, no triple of either",
)
"""Why a gold relation has no triple; the first that holds."""


def read_gold(path: Path, split: str | None = None) -> list[GoldDocument]:
    """``docs.jsonl`` of BioRED or BC5CDR (``entities``: start, end, text, type, ids); ``split``: train, dev or test.

    Raises NotFound without the file, BadInput naming the line of a row that is not of its form.
    """
    documents = []
    for number, row in json_lines.read(path):
        try:
            if split is None or row["split"] == split:
                documents.append(_gold(row))
        except (ValueError, KeyError, TypeError, IndexError) as error:
            raise BadInput(f"{path}, line {number}: not an annotated document ({error!r}).") from error
    return documents


def judge(gold: GoldDocument, extractions: Iterable[Extraction], rename: Rename) -> Judged:
    """Hold the extractions of a document's chunks against its gold."""
    extractions = list(extractions)
    mentions = list(dict.fromkeys(name for one in extractions for name in one.mentions))
    triples = list(dict.fromkeys((t.head, t.relation, t.tail) for one in extractions for t in one.triples))
    keys = {entity.id: _keys(entity.names, rename) for entity in gold.entities}
    exact = {name: _meant(name, keys, _same) for name in mentions}
    near = {name: exact[name] | _meant(name, keys, _overlap) for name in mentions}
    named = {gold_id for ids in exact.values() for gold_id in ids}
    nearly = {gold_id for ids in near.values() for gold_id in ids}
    links, near_links = _links(triples, exact), _links(triples, near)
    judged = [pair for pair in (_pairs(t, exact) for t in triples) if pair]
    result = Judged(documents=1, names=len(mentions), triples=len(triples), gold_relations=len(gold.relations))
    result.gold_entities = Counter(entity.type for entity in gold.entities)
    result.found = Counter(entity.type for entity in gold.entities if entity.id in named)
    result.partly = Counter(entity.type for entity in gold.entities if entity.id in nearly - named)
    result.right_names = sum(bool(ids) for ids in exact.values())
    result.near_names = sum(bool(near[name]) and not exact[name] for name in mentions)
    result.linked = len(gold.relations & links)
    result.linked_nearly = len(gold.relations & near_links)
    result.judged_triples = len(judged)
    result.right_triples = sum(bool(pairs & gold.relations) for pairs in judged)
    sentences = _sentences(gold)
    ends = {gold_id for head, _, tail in triples for name in (head, tail) for gold_id in near.get(name, ())}
    missing = sorted(gold.relations - near_links, key=sorted)
    result.missed = [(pair, _kind(pair, named, nearly, sentences, ends)) for pair in missing]
    return result


def _kind(pair: Pair, named: set[str], nearly: set[str], sentences: list[set[str]], ends: set[str]) -> str:
    if not pair <= nearly:
        return KINDS[0]
    if not pair <= named:
        return KINDS[1]
    if not any(pair <= held for held in sentences):
        return KINDS[2]
    return KINDS[3] if pair & ends else KINDS[4]


def _gold(row: dict[str, Any]) -> GoldDocument:
    title, text = str(row["title"]), str(row["abstract"])
    found: dict[str, tuple[str, set[str], list[tuple[int, int]]]] = {}
    for start, end, name, kind, ids in row["entities"]:
        for gold_id in ids:
            _, names, spans = found.setdefault(gold_id, (kind, set(), []))
            names.add(name)
            spans.append((start, end))
    pairs = {frozenset((head, tail)) for _, head, tail, *_ in row["relations"] if head != tail}
    return GoldDocument(
        id=str(row["pmid"]),
        title=title,
        text=text,
        entities=tuple(GoldEntity(i, kind, frozenset(n), tuple(s)) for i, (kind, n, s) in found.items()),
        relations=frozenset(pair for pair in pairs if pair <= found.keys()),
    )


def _keys(names: Iterable[str], rename: Rename) -> frozenset[str]:
    called = [other for name in names for other in (name, rename(name)) if other]
    return frozenset(key for name in called if (key := key_of(name)))


def _meant(name: str, keys: dict[str, frozenset[str]], match: Callable[[str, str], bool]) -> set[str]:
    key = key_of(name)
    return {gold_id for gold_id, own in keys.items() if key and any(match(key, other) for other in own)}


def _same(key: str, other: str) -> bool:
    return key == other


def _overlap(key: str, other: str) -> bool:
    """Whether one's words stand in the other, in their order."""
    return f" {key} " in f" {other} " or f" {other} " in f" {key} "


def _pairs(triple: tuple[str, str, str], meant: dict[str, set[str]]) -> set[Pair]:
    heads, tails = meant.get(triple[0], set()), meant.get(triple[2], set())
    return {frozenset((head, tail)) for head in heads for tail in tails if head != tail}


def _links(triples: Sequence[tuple[str, str, str]], meant: dict[str, set[str]]) -> set[Pair]:
    return {pair for triple in triples for pair in _pairs(triple, meant)}


def _sentences(gold: GoldDocument) -> list[set[str]]:
    """The ids in each sentence, the title being one."""
    shift = len(gold.title) + 1
    spans = [(0, len(gold.title)), *((start + shift, end + shift) for start, end in sentence_spans(gold.text))]
    return [{e.id for e in gold.entities if any(start <= at < end for at, _ in e.spans)} for start, end in spans]
