"""A graph that exists already, in the place of an extractor: a chunk's triples are looked up in a file."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from typing import Protocol

import pyarrow as pa

from hybrid_ir.extraction.graph_file import Entry, Fact, GraphFile, folded, read_graph
from hybrid_ir.extraction.name_finder import NameFinder
from hybrid_ir.extraction.specific import is_specific
from hybrid_ir.records import Chunk, Extraction, Triple
from hybrid_ir.settings import ImportedExtractorSettings

VERSION = "1"
"""Raise it whenever the same file would give other triples."""
KIND = "imported"


class Mentions(Protocol):
    """What the rules extractor is asked for here."""

    def mentions(self, texts: Sequence[str]) -> list[tuple[str, ...]]: ...


class ImportedExtractor:
    """See :class:`hybrid_ir.roles.Extractor`.

    Rows with a chunk id go to that chunk; rows with a document id, or the text of a whole document,
    to those of its chunks that name the triple's ends (the first chunk where none does).
    """

    def __init__(
        self,
        settings: ImportedExtractorSettings,
        names: pa.Array | None = None,
        fingerprint: dict[str, str] | None = None,
    ) -> None:
        """With ``names`` (an index's entities) and its ``fingerprint`` it answers for questions, without the file."""
        self._settings, self._names, self._fingerprint = settings, names, fingerprint

    @cached_property
    def fingerprint(self) -> dict[str, str]:
        if self._fingerprint is not None:
            return self._fingerprint
        columns = ",".join(f"{ours}={theirs}" for ours, theirs in sorted(self._settings.columns.items()))
        # The file is read here, so that the job learns of a bad one before it starts any worker.
        return {"kind": KIND, "version": VERSION, "columns": columns, "file": self._graph.sha256}

    def extract(self, chunks: Sequence[Chunk]) -> list[Extraction | str]:
        """``chunks`` must hold all of each document: which chunk a triple belongs to depends on the others.

        Where the file knows none of them, each is told so: ids that differ from the corpus' would
        otherwise make a graph without edges.
        """
        documents: dict[str, list[Chunk]] = defaultdict(list)
        for chunk in chunks:
            documents[chunk.document_id].append(chunk)
        entries: dict[str, list[Entry]] = {chunk.id: [] for chunk in chunks}
        known = False
        for pieces in documents.values():
            pieces = sorted(pieces, key=lambda piece: piece.position)
            for owner, by, key in self._held(pieces):
                known = True
                parts = _divided(by[key], pieces) if owner is None else [(owner, by[key])]
                for piece, part in parts:
                    entries[piece.id].append(part)
        if chunks and not known:
            return [self._stranger(chunk) for chunk in chunks]
        return [_extraction(chunk, entries[chunk.id]) for chunk in chunks]

    def strangers(self, chunks: Iterable[Sequence[Chunk]]) -> list[str]:
        """Ids and passages' texts that the file has triples for and a corpus does not hold, sorted.

        ``chunks``: the corpus by shards, all of a document's in one.
        """
        maps = (self._graph.chunks, self._graph.documents, self._graph.passages)
        left = {id(by): set(by) for by in maps}
        for shard in chunks:
            documents: dict[str, list[Chunk]] = defaultdict(list)
            for chunk in shard:
                documents[chunk.document_id].append(chunk)
            for pieces in documents.values():
                for _, by, key in self._held(sorted(pieces, key=lambda piece: piece.position)):
                    left[id(by)].discard(key)
        return [key for by in maps for key in sorted(left[id(by)])]

    def mentions(self, texts: Sequence[str]) -> list[tuple[str, ...]]:
        """Spans of each text that are names of the graph, what the rules find, or both (a setting).

        Of both, everyday words (``state``, ``relevant``) are left to the rules: in a large graph every word is a name.
        """
        by_name = self._finder.find(texts) if self._settings.mentions != "rules" else [()] * len(texts)
        by_rule = self._rules.mentions(texts) if self._settings.mentions != "names" else [()] * len(texts)
        if self._settings.mentions == "both":
            by_name = [
                tuple(name for name in names if is_specific(name, text))
                for names, text in zip(by_name, texts, strict=True)
            ]
        return [
            tuple(dict.fromkeys((*names, *(name for name in ruled if not _within(name, names)))))
            for names, ruled in zip(by_name, by_rule, strict=True)
        ]

    @cached_property
    def _graph(self) -> GraphFile:
        return read_graph(self._settings.path, self._settings.columns)

    @cached_property
    def _finder(self) -> NameFinder:
        return NameFinder(pa.array(sorted(self._graph.names())) if self._names is None else self._names)

    @cached_property
    def _rules(self) -> Mentions:
        from hybrid_ir.extraction.rules import RuleExtractor

        return RuleExtractor(self._settings.rules)

    def _held(self, pieces: Sequence[Chunk]) -> Iterator[tuple[Chunk | None, dict[str, Entry], str]]:
        """What the file has for one document, given by its chunks in order.

        (the chunk it is for, None: the document; one of the file's maps; the key there)
        """
        graph = self._graph
        asked: list[tuple[Chunk | None, dict[str, Entry], tuple[str, ...]]] = []
        for piece in pieces:
            asked.append((piece, graph.chunks, (piece.id,)))
            if len(pieces) > 1:
                asked.append((piece, graph.passages, _passages(piece.title, piece.text)))
        asked.append((None, graph.documents, (pieces[0].document_id,)))
        asked.append((None, graph.passages, _passages(pieces[0].title, " ".join(piece.text for piece in pieces))))
        for owner, by, keys in asked:
            if (key := next((key for key in keys if key in by), None)) is not None:
                yield owner, by, key

    def _stranger(self, chunk: Chunk) -> str:
        keys = [next(iter(by)) for by in (self._graph.chunks, self._graph.documents, self._graph.passages) if by]
        return (
            f"{self._settings.path} has no triples for document {chunk.document_id!r} nor for any other of its shard; "
            f"it has them for {keys[0][:80]!r}. Its ids, or its passages' texts, must be those of the corpus."
        )


def _within(name: str, names: Sequence[str]) -> bool:
    """Whether a name says nothing beside names found already."""
    words = set(name.lower().split())
    return any(words <= set(other.lower().split()) for other in names)


def _passages(title: str, text: str) -> tuple[str, str]:
    """The forms in which a file may hold a passage: with its title before it, or without."""
    return folded(f"{title} {text}"), folded(text)


def _divided(entry: Entry, pieces: Sequence[Chunk]) -> list[tuple[Chunk, Entry]]:
    """A document's entry as one for each of its chunks, by what each names."""
    if len(pieces) == 1:
        return [(pieces[0], entry)]
    texts = [folded(f"{piece.title if piece is pieces[0] else ''} {piece.text}") for piece in pieces]
    parts = [Entry() for _ in pieces]
    for name in entry.mentions:
        for place in _places([name], texts):
            parts[place].mentions[name] = None
    for fact in entry.triples:
        for place in _places([fact[0], fact[2]], texts):
            parts[place].triples[fact] = None
    return list(zip(pieces, parts, strict=True))


def _places(names: Sequence[str], texts: Sequence[str]) -> list[int]:
    """The texts that hold most of the names; the first text where none holds any."""
    wanted = [folded(name) for name in names]
    held = [sum(name in text for name in wanted) for text in texts]
    return [place for place, count in enumerate(held) if count == max(held)] if max(held) else [0]


def _extraction(chunk: Chunk, entries: Sequence[Entry]) -> Extraction:
    facts: dict[Fact, None] = {fact: None for entry in entries for fact in entry.triples}
    mentions = {name: None for entry in entries for name in entry.mentions}
    mentions |= {name: None for head, _, tail in facts for name in (head, tail)}
    return Extraction(
        chunk_id=chunk.id,
        mentions=tuple(mentions),
        triples=tuple(Triple(chunk_id=chunk.id, head=h, relation=r, tail=t) for h, r, t in facts),
    )
