"""Sections to the text of a document, and the checks every document passes."""

from __future__ import annotations

import re
from collections.abc import Iterable

from hybrid_ir.records import Document, ErrorRecord, Section, SectionKind

_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")
_SURROGATE = re.compile(r"[\ud800-\udfff]")


def clean(text: str) -> str:
    """``text`` with every control character but tab and newline made a blank: offsets stay."""
    return _CONTROL.sub(" ", text)


def one_line(text: str) -> str:
    """``text`` with runs of blanks made one blank; for titles."""
    return " ".join(clean(text).split())


class TextBuilder:
    """Collects sections in order; they lie in the text with a blank line between them."""

    def __init__(self) -> None:
        self._parts: list[str] = []
        self._length = 0
        self._sections: list[Section] = []

    def add(self, text: str, titles: Iterable[str] = (), kind: SectionKind = "text") -> None:
        """Append a section; a blank one is left out, and blank titles are."""
        text = clean(text).strip()
        if not text:
            return
        if self._parts:
            self._parts.append("\n\n")
            self._length += 2
        start = self._length
        self._parts.append(text)
        self._length += len(text)
        headings = tuple(heading for title in titles if (heading := one_line(title)))
        self._sections.append(Section(titles=headings, kind=kind, start=start, end=self._length))

    @property
    def text(self) -> str:
        return "".join(self._parts)

    @property
    def sections(self) -> tuple[Section, ...]:
        return tuple(self._sections)


def fault(document: Document, max_chars: int) -> str | None:
    """Why a document cannot be used, as a sentence; ``None`` when it can."""
    where = f" ({document.locator})" if document.locator else ""
    if not document.sections or not document.text.strip():
        return f"Document {document.id!r}{where} has no text."
    if len(document.text) > max_chars:
        return (
            f"Document {document.id!r}{where} has {len(document.text):,} characters, more than "
            f"reader.max_document_chars = {max_chars:,}; split it, or raise that setting."
        )
    for name, value in (("id", document.id), ("title", document.title), ("text", document.text)):
        if found := _SURROGATE.search(value):
            return (
                f"The {name} of document {document.id!r}{where} holds half a character (the lone surrogate "
                f"U+{ord(found.group()):04X} at offset {found.start()}); write the file again as valid Unicode."
            )
    return None


def read_error(subject: str, source: str, reason: str) -> ErrorRecord:
    """An error record of the reading stage; half characters in it are spelt out, so that it can be stored."""

    def storable(text: str) -> str:
        return text.encode("utf-8", "backslashreplace").decode("utf-8")

    return ErrorRecord(subject=storable(subject), source=storable(source), stage="read", reason=storable(reason))


def reference_ids(pmids: Iterable[str | None] = (), dois: Iterable[str | None] = ()) -> list[str]:
    """``pmid:…`` and ``doi:…`` as ``Document.references`` holds them; what is neither is left out."""
    found = [f"pmid:{pmid.strip()}" for pmid in pmids if pmid and pmid.strip().isdigit()]
    return found + [f"doi:{doi}" for raw in dois if (doi := bare_doi(raw))]


_DOI = re.compile(r"10\.\d{4,9}/\S+")


def bare_doi(raw: str | None) -> str | None:
    """``https://doi.org/10.1000/X`` -> ``10.1000/x``; ``None`` where there is no DOI."""
    found = _DOI.search(raw) if raw else None
    return found.group().rstrip(".,;").lower() if found else None
