"""Offline: ``SourceFile -> Document -> Chunk -> Extraction``, an ``ErrorRecord`` for what could not be used."""

from __future__ import annotations

from typing import Literal

from hybrid_ir.records.record import Record

SectionKind = Literal["text", "abstract", "table", "caption"]


class SourceFile(Record):
    """One file of the corpus, as the user named it."""

    path: str
    size: int
    """Bytes."""


class Section(Record):
    """A stretch ``Document.text[start:end]`` under one heading path."""

    titles: tuple[str, ...] = ()
    """Headings from the outermost to this section's own; empty where there is none."""
    kind: SectionKind = "text"
    start: int
    end: int


class Document(Record):
    """One document as its reader understood it.

    Sections lie in order, do not overlap, and cover all text that is to be indexed.
    """

    id: str
    title: str = ""
    text: str
    sections: tuple[Section, ...]
    source: str
    """The file it came from."""
    locator: str = ""
    """Where in the file: ``line 3``, ``PMID 29768149``, ``record 7``, ``page 2``; empty for a whole file."""
    pmid: str | None = None
    doi: str | None = None
    year: int | None = None
    references: tuple[str, ...] = ()
    """What it cites, as ``pmid:123`` and ``doi:10.1000/x`` (a DOI in lower case)."""
    revision: int = 0
    """Of several documents with one id the highest revision counts; see ``corpus.revisions``."""


class Deletion(Record):
    """A corpus file says that a document (a PMID, say) no longer exists."""

    id: str
    source: str
    revision: int = 0


class Chunk(Record):
    """A passage of a document: what is extracted from, embedded, retrieved and cited."""

    id: str
    """``<document id>#<position>``: the same document gives the same ids in every build."""
    document_id: str
    position: int
    title: str
    section: str = ""
    """The heading path, joined by `` > ``."""
    kind: SectionKind = "text"
    text: str
    start: int
    end: int
    """Offsets into the document's text as its reader produced it: ``text == document.text[start:end]``."""
    source: str
    locator: str = ""
    year: int | None = None


class Triple(Record):
    """A statement of a chunk: head, relation and tail as surface forms."""

    chunk_id: str
    head: str
    relation: str
    tail: str


class Mention(Record):
    """An entity that a chunk names, whether or not a triple holds it."""

    chunk_id: str
    name: str


class Extraction(Record):
    """What an extractor found in one chunk."""

    chunk_id: str
    mentions: tuple[str, ...] = ()
    triples: tuple[Triple, ...] = ()


class ErrorRecord(Record):
    """Something that could not be used, and why; it never ends a job and is never silent."""

    subject: str
    """The document id, chunk id or source file."""
    source: str
    """The file."""
    stage: Literal["read", "chunk", "extract", "encode"]
    reason: str
    """A sentence for a person; it names the line or field where there is one."""
