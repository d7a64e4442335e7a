"""PubTator text: ``pmid|t|title`` and ``pmid|a|abstract``; annotations are not read."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import BinaryIO

from hybrid_ir.corpus.assembly import TextBuilder, one_line, read_error
from hybrid_ir.corpus.source import numbered_lines
from hybrid_ir.records import Document, ErrorRecord, SourceFile
from hybrid_ir.settings import ReaderSettings

LINE = re.compile(r"([^|\t]{1,64})\|([ta])\|(.*)", re.DOTALL)


def read_pubtator(
    source: SourceFile, stream: BinaryIO, settings: ReaderSettings, first_line: int = 1
) -> Iterator[Document | ErrorRecord]:
    """One document an id; a line that is neither text nor annotation costs nothing but itself."""
    path = source.path
    current, started, parts = "", 0, {"t": "", "a": ""}
    most = longest_line(settings)
    for number, raw in numbered_lines(stream, most, first_line):
        where = f"Line {number} of {path}"
        if raw is None:
            yield read_error(current or path, path, f"{where} is longer than {most:,} bytes.")
            continue
        try:
            line = raw.decode("utf-8-sig" if number == 1 else "utf-8").rstrip("\r\n")
        except UnicodeDecodeError as error:
            yield read_error(current or path, path, f"{where} is not UTF-8 (byte {error.start + 1} of the line).")
            continue
        stated = LINE.fullmatch(line)
        if stated:
            identity, part, text = one_line(stated.group(1)), stated.group(2), stated.group(3)
            if identity != current or (part == "t" and parts["t"]):
                if current:
                    yield _document(current, parts, path, started)
                current, started, parts = identity, number, {"t": "", "a": ""}
            parts[part] = f"{parts[part]} {text}".strip()
        elif line.strip() and "\t" not in line:
            yield read_error(
                current or path, path, f"{where} is no PubTator line; expected `id|t|…`, `id|a|…` or an annotation."
            )
    if current:
        yield _document(current, parts, path, started)


def longest_line(settings: ReaderSettings) -> int:
    """Bytes; a line of so many is not read."""
    return 4 * settings.max_document_chars + 1024


def next_record(stream: BinaryIO, settings: ReaderSettings) -> tuple[int, int] | None:
    """(bytes, lines) from here, the start of a line, to one that surely begins a document.

    That is the first one with another id than a line before it; None where there is none.
    """
    seen, at = "", 0
    for number, raw in numbered_lines(stream, longest_line(settings)):
        if raw is None or not raw.endswith(b"\n"):
            return None  # it is cut off here: how long it is, is not known
        try:
            stated = LINE.fullmatch(raw.decode().rstrip("\r\n"))
        except UnicodeDecodeError:
            stated = None  # no line of any document
        identity = one_line(stated.group(1)) if stated else ""
        if seen and identity and identity != seen:
            return at, number - 1
        seen, at = identity or seen, at + len(raw)
    return None


def _document(identity: str, parts: dict[str, str], path: str, line: int) -> Document:
    title = one_line(parts["t"])
    text = TextBuilder()
    text.add(parts["a"], kind="abstract")
    if not text.sections:
        text.add(title)
    return Document(
        id=identity,
        title=title,
        text=text.text,
        sections=text.sections,
        source=path,
        locator=f"line {line}",
        pmid=identity if identity.isascii() and identity.isdigit() else None,
    )
