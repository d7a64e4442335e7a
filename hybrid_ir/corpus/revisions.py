"""Of several records with one id, the one that counts."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import PurePosixPath

from hybrid_ir.corpus.assembly import read_error
from hybrid_ir.records import Deletion, Document, ErrorRecord

_NUMBERS = re.compile(r"\d+")


def resolve(records: Iterable[Document | Deletion]) -> tuple[list[Document], list[ErrorRecord]]:
    """One document an id, in the order of ids, whatever the order of ``records``.

    PubMed (``revision`` > 0): the highest (revision, file name, position in the file) counts, as
    NLM numbers its files in order; a deletion that comes last removes the document.  Other
    documents: equal content is folded, and of different content the first by (file, position)
    counts and each other becomes an error record that names both.
    """
    by_id: dict[str, list[Document | Deletion]] = {}
    for record in records:
        by_id.setdefault(record.id, []).append(record)
    kept: list[Document] = []
    errors: list[ErrorRecord] = []
    for identity in sorted(by_id):
        group = by_id[identity]
        revised = [record for record in group if isinstance(record, Deletion) or record.revision > 0]
        plain = sorted((r for r in group if isinstance(r, Document) and r.revision == 0), key=_place)
        winner: Document | Deletion | None = max(revised, key=_recency) if revised else None
        if isinstance(winner, Deletion):
            continue
        if winner is None:
            winner = plain[0]
        kept.append(winner)
        for other in plain:
            if _content(other) != _content(winner):
                errors.append(
                    read_error(
                        identity,
                        other.source,
                        f"Document id {identity!r} is used twice with different content: {_where(winner)} is kept, "
                        f"{_where(other)} is left out; give it an id of its own.",
                    )
                )
    return kept, errors


def _content(document: Document) -> tuple[str, str]:
    return document.title, document.text


def _position(locator: str) -> tuple[int, ...]:
    return tuple(int(number) for number in _NUMBERS.findall(locator))


def _place(document: Document) -> tuple[str, tuple[int, ...], str, str, str]:
    return document.source, _position(document.locator), document.locator, *_content(document)


def _recency(record: Document | Deletion) -> tuple[int, str, str, bool, tuple[int, ...], str]:
    """A deletion stands at the end of its file, after all documents."""
    file = PurePosixPath(record.source).name
    if isinstance(record, Deletion):
        return record.revision, file, record.source, True, (), ""
    return record.revision, file, record.source, False, _position(record.locator), record.text


def _where(document: Document) -> str:
    return f"{document.source}, {document.locator}" if document.locator else document.source
