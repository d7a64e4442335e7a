"""Plain text and Markdown.  Offsets count in the file's own characters, so a citation leads back to it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import BinaryIO

from hybrid_ir.corpus.assembly import clean, one_line
from hybrid_ir.corpus.source import Unreadable, decode, ending, file_id, is_utf16, read_all, stem
from hybrid_ir.records import Document, Section, SectionKind, SourceFile
from hybrid_ir.settings import ReaderSettings

MARKDOWN_ENDINGS = (".md", ".markdown", ".mkd")

_HEADING = re.compile(r" {0,3}(#{1,6})(?:[ \t]|$)")
_UNDERLINE = re.compile(r" {0,3}(=+|-{2,})[ \t]*")
_FENCE = re.compile(r" {0,3}(```|~~~)")
_FRONT_MATTER = re.compile(r"\A---[ \t]*\n(?:(?!---).*\n){0,200}?---[ \t]*\n")
_FRONT_TITLE = re.compile(r"""^title:[ \t]*["']?(.+?)["']?[ \t]*$""", re.MULTILINE)
_TITLE_CHARS = 120
"""A longer first line is text, not a title."""


def read_plain(source: SourceFile, stream: BinaryIO, settings: ReaderSettings) -> Iterator[Document]:
    """The file as one document; the text is the whole file with line ends unified.

    Raises:
        Unreadable: it is binary, not UTF-8 or UTF-16, or far over ``max_document_chars``.
    """
    data = read_all(stream, 4 * settings.max_document_chars + 4)
    if b"\0" in data and not is_utf16(data):
        line = data.count(b"\n", 0, data.index(b"\0")) + 1
        raise Unreadable(f"line {line} holds a NUL byte, so it is no text file (or UTF-16 without its mark)")
    text = clean(decode(data))
    title, sections = (_markdown if ending(source.path) in MARKDOWN_ENDINGS else _plain)(text)
    yield Document(
        id=one_line(file_id(source.path)),
        title=one_line(title) or one_line(stem(source.path).replace("_", " ")),
        text=text,
        sections=tuple(sections),
        source=source.path,
    )


def _section(
    text: str, start: int, end: int, titles: tuple[str, ...] = (), kind: SectionKind = "text"
) -> list[Section]:
    """``text[start:end]`` without the blanks around it; no section where nothing is left."""
    body = text[start:end]
    start += len(body) - len(body.lstrip())
    end -= len(body) - len(body.rstrip())
    return [Section(titles=titles, kind=kind, start=start, end=end)] if start < end else []


def _plain(text: str) -> tuple[str, list[Section]]:
    """A short first line that a blank line sets apart and no full stop ends is the title."""
    first, _, rest = text.lstrip().partition("\n")
    second = rest.partition("\n")[0]
    first = first.strip()
    if first and len(first) <= _TITLE_CHARS and first[-1] not in ".,;:!" and not second.strip() and rest.strip():
        return first, _section(text, len(text) - len(rest), len(text))
    return "", _section(text, 0, len(text))


def _markdown(text: str) -> tuple[str, list[Section]]:
    """Headings become section titles, nested; the first, if it opens the file at level 1, is the title."""
    sections: list[Section] = []
    stack: list[tuple[int, str]] = []
    title = ""
    at = 0
    if front := _FRONT_MATTER.match(text):
        stated = _FRONT_TITLE.search(front.group())
        title, at = (stated.group(1) if stated else ""), front.end()
    start, kind, fenced = at, "text", ""
    previous = (at, "")  # start and text of the line before, where it can be a heading above an underline

    def close(end: int) -> None:
        titles = tuple(heading for _, heading in stack if heading)
        sections.extend(_section(text, start, end, titles, "table" if kind == "table" else "text"))

    def open_heading(level: int, words: str) -> None:
        nonlocal title
        if level == 1 and not sections and not stack and not title:
            title = words
            return
        while stack and stack[-1][0] >= level:
            stack.pop()
        stack.append((level, one_line(words)))

    while at < len(text):
        stop = text.find("\n", at)
        stop = len(text) if stop < 0 else stop
        line = text[at:stop]
        after = min(stop + 1, len(text))
        fence = _FENCE.match(line)
        if fence and fenced in ("", fence.group(1)):
            fenced = "" if fenced else fence.group(1)
        heading = None if fenced else _HEADING.match(line)
        underline = None if fenced or not previous[1] else _UNDERLINE.fullmatch(line)
        row = not fenced and line.lstrip().startswith("|")
        previous_start, previous_line = previous
        previous = (at, "" if heading or row or fenced else line.strip())
        if heading or underline:
            close(at if heading else previous_start)
            if heading:
                open_heading(len(heading.group(1)), line[heading.end() :].strip().rstrip("#").strip())
            elif underline:
                open_heading(1 if "=" in underline.group(1) else 2, previous_line)
                previous = (at, "")
            start, kind = after, "text"
        elif row != (kind == "table"):
            close(at)
            start, kind = at, "table" if row else "text"
        at = after
    close(len(text))
    return title, sections
