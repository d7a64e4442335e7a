"""Documents to chunks: whole sentences of one section, up to a size."""

from __future__ import annotations

import re
from collections.abc import Iterator

from hybrid_ir.records import Chunk, Document, Section
from hybrid_ir.settings import ChunkerSettings
from hybrid_ir.text import sentence_spans

_TINY = 200
"""Characters; a section below this is joined with its neighbour under the same parent."""

_LINE = re.compile(r"[^\n]*\S[^\n]*")

Span = tuple[int, int]


def chunk(document: Document, settings: ChunkerSettings) -> list[Chunk]:
    """The chunks of a document, in its order; ``chunk.text == document.text[chunk.start:chunk.end]``.

    A chunk is a run of whole sentences (of a table: rows) no longer than ``max_chars``; only a
    sentence that is longer by itself is cut, at a blank if it has one.  With ``overlap_chars``,
    a chunk begins with the last sentences of the one before, as far as they fit into that many
    characters.  Every character of every section that is not blank is in at least one chunk.

    The ``medrag`` preset has the sizes of MedRAG's textbooks (1000, 200) but not its cuts:
    its splitter cuts at paragraphs, then lines, then blanks, and so inside sentences.
    """
    max_chars, overlap_chars = settings.size()
    chunks: list[Chunk] = []
    for group in _groups(document, max_chars):
        units = [unit for section in group for unit in _units(document.text, section, max_chars)]
        for start, end in _pack(units, max_chars, overlap_chars):
            chunks.append(
                Chunk(
                    id=f"{document.id}#{len(chunks)}",
                    document_id=document.id,
                    position=len(chunks),
                    title=document.title,
                    section=_heading(group),
                    kind=group[0].kind,
                    text=document.text[start:end],
                    start=start,
                    end=end,
                    source=document.source,
                    locator=document.locator,
                    year=document.year,
                )
            )
    return chunks


def _groups(document: Document, max_chars: int) -> Iterator[list[Section]]:
    """Sections that are cut as one: parts of one section, and tiny neighbours under one parent."""
    group: list[Section] = []
    for section in document.sections:
        if group and not _joins(document.text, group, section, max_chars):
            yield group
            group = []
        group.append(section)
    if group:
        yield group


def _joins(text: str, group: list[Section], section: Section, max_chars: int) -> bool:
    last = group[-1]
    if section.kind != last.kind or section.kind in ("table", "caption") or text[last.end : section.start].strip():
        return False
    if all(section.titles == member.titles for member in group):
        return True
    together = section.end - group[0].start
    tiny = min(last.end - group[0].start, section.end - section.start) < _TINY
    return tiny and together <= max_chars and section.titles[:-1] == last.titles[:-1] and bool(section.titles)


def _heading(group: list[Section]) -> str:
    """``Parent > Own``; of joined sections ``Parent > One / Two``."""
    own = dict.fromkeys(section.titles[-1] for section in group if section.titles)
    return " > ".join([*group[0].titles[:-1], *([" / ".join(own)] if own else [])])


def _units(text: str, section: Section, max_chars: int) -> Iterator[Span]:
    """Sentences or rows, none longer than ``max_chars``."""
    body = text[section.start : section.end]
    if section.kind == "table":
        spans = [_stripped(body, *found.span()) for found in _LINE.finditer(body)]
    else:
        spans = sentence_spans(body)
    for start, end in spans:
        yield from _cut(text, section.start + start, section.start + end, max_chars)


def _stripped(text: str, start: int, end: int) -> Span:
    line = text[start:end]
    return start + len(line) - len(line.lstrip()), end - (len(line) - len(line.rstrip()))


def _cut(text: str, start: int, end: int, max_chars: int) -> Iterator[Span]:
    """Pieces of at most ``max_chars`` that begin and end with a character that is not blank."""
    while end - start > max_chars:
        at = start + max_chars
        if not text[at].isspace():
            while at > start and not text[at - 1].isspace():
                at -= 1
        if at == start:  # no blank anywhere in reach
            at = start + max_chars
        yield _stripped(text, start, at)
        start = at
        while start < end and text[start].isspace():
            start += 1
    if start < end:
        yield start, end


def _pack(units: list[Span], max_chars: int, overlap_chars: int) -> Iterator[Span]:
    """Consecutive units into spans, as many as fit."""
    first = 0
    while first < len(units):
        last = first
        while last + 1 < len(units) and units[last + 1][1] - units[first][0] <= max_chars:
            last += 1
        yield units[first][0], units[last][1]
        if last + 1 >= len(units):
            return
        following = last + 1
        while (
            following - 1 > first
            and units[last][1] - units[following - 1][0] <= overlap_chars
            and units[last + 1][1] - units[following - 1][0] <= max_chars
        ):
            following -= 1
        first = following
