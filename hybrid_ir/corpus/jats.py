"""PMC full text in JATS XML: sections under their parents' titles, tables by rows, captions."""

from __future__ import annotations

from collections.abc import Iterator
from typing import BinaryIO

from hybrid_ir.corpus.assembly import TextBuilder, bare_doi, one_line, reference_ids
from hybrid_ir.corpus.jats_table import rows
from hybrid_ir.corpus.source import file_id
from hybrid_ir.corpus.xml_text import Element, child, children, descendants, flatten, name, parse_elements, release
from hybrid_ir.records import Document, SectionKind, SourceFile
from hybrid_ir.settings import ReaderSettings

_TABLES = frozenset({"table-wrap"})
_FIGURES = frozenset({"fig", "supplementary-material", "media", "chem-struct-wrap"})
_GROUPS = frozenset({"fig-group", "table-wrap-group"})
_FLOATS = _TABLES | _FIGURES | _GROUPS
_SECTIONS = frozenset({"sec", "boxed-text", "app", "glossary", "app-group"})
_NOT_TEXT = frozenset({"title", "label", "sec-meta", "object-id", "kwd-group", "ref-list", "fn-group", "permissions"})
_CAPTION_IN_TITLE = 150
"""Characters of a table's caption that stand in its heading path, so that every chunk of a long table has them."""

_HREF = "{http://www.w3.org/1999/xlink}href"

Titles = tuple[str, ...]


def read_jats(source: SourceFile, stream: BinaryIO, settings: ReaderSettings) -> Iterator[Document]:
    """One document an ``article``, also inside a ``pmc-articleset``; its id is the PMC id where it has one."""
    for position, article in enumerate(parse_elements(stream, ["article"]), start=1):
        alone = article.getparent() is None
        yield _document(article, source.path, "" if alone else f"record {position}", position)
        release(article)


def _document(article: Element, path: str, locator: str, position: int) -> Document:
    meta = child(article, "front", "article-meta")
    ids = _ids(meta)
    text = TextBuilder()
    if meta is not None:
        for abstract in children(meta, "abstract", "trans-abstract"):
            heading = one_line(flatten(child(abstract, "title"))) or "Abstract"
            _add_section(abstract, (heading,), "abstract", text)
    body = child(article, "body")
    if body is not None:
        _add_section(body, (), "text", text)
    back = child(article, "back")
    if back is not None:
        for part in children(back, "app-group", "app", "glossary"):
            _add_section(part, _deeper((), part), "text", text)
    for group in children(article, "floats-group", "floats-wrap"):
        for item in _floats(group):
            _add_float(item, (), text)
    pmcid, pmid, doi = ids.get("pmc"), ids.get("pmid"), bare_doi(ids.get("doi"))
    own = file_id(path) + (f":{position}" if locator else "")
    title = child(meta, "title-group", "article-title")
    return Document(
        id=pmcid or pmid or doi or own,
        title=one_line(flatten(title, skip=("xref", "fn"))),
        text=text.text,
        sections=text.sections,
        source=path,
        locator=locator,
        pmid=pmid,
        doi=doi,
        year=_year(meta),
        references=_references(article),
    )


def _ids(meta: Element | None) -> dict[str, str]:
    found: dict[str, str] = {}
    for element in children(meta, "article-id") if meta is not None else ():
        kind, value = element.get("pub-id-type", ""), flatten(element)
        if kind in ("pmc", "pmcid") and value:
            found["pmc"] = value if value.upper().startswith("PMC") else f"PMC{value}"
        elif kind in ("pmid", "doi") and value:
            found[kind] = value
    return found


def _year(meta: Element | None) -> int | None:
    """The first year it was published in, in print or online."""
    dates = children(meta, "pub-date") if meta is not None else ()
    stated = [flatten(child(date, "year")) for date in dates]
    return min((int(year) for year in stated if year.isascii() and year.isdigit()), default=None)


def _references(article: Element) -> tuple[str, ...]:
    found: list[str] = []
    for reference in descendants(article, "ref"):
        for item in descendants(reference, "pub-id", "ext-link"):
            kind = item.get("pub-id-type")
            if kind == "pmid":
                found += reference_ids(pmids=[flatten(item)])
            elif kind == "doi" or name(item) == "ext-link":
                found += reference_ids(dois=[item.get(_HREF) or flatten(item)])
    return tuple(dict.fromkeys(found))


def _deeper(titles: Titles, section: Element) -> Titles:
    heading = child(section, "title")
    if heading is None:
        heading = child(section, "caption", "title")
    text = one_line(flatten(heading))
    if not text and name(section) == "glossary":
        text = "Abbreviations"
    return (*titles, text) if text else titles


def _add_section(section: Element, titles: Titles, kind: SectionKind, text: TextBuilder) -> None:
    """A section's own prose in one piece, then its tables and figures, then the sections below it."""
    prose: list[str] = []
    floats: list[Element] = []

    def flush() -> None:
        text.add("\n\n".join(prose), titles, kind)
        for item in floats:
            _add_float(item, titles, text)
        prose.clear()
        floats.clear()

    for part in children(section):
        tag = name(part)
        if part.get("content-type") == "pull-quote":
            continue  # repeats a sentence of the prose
        if tag in _SECTIONS:
            flush()
            _add_section(part, _deeper(titles, part), kind, text)
        elif tag in _FLOATS:
            floats.extend(_floats_of(part))
        elif tag not in _NOT_TEXT:
            boxes = list(descendants(part, *_SECTIONS))
            # A box has its title in its caption; it stands in the heading path already.
            prose.append(flatten(part, skip=_FLOATS | _SECTIONS | ({"title"} if tag == "caption" else set())))
            floats.extend(_floats(part))
            if boxes:
                flush()
            for box in boxes:
                _add_section(box, _deeper(titles, box), kind, text)
    flush()


def _floats(element: Element) -> list[Element]:
    """Tables and figures anywhere below an element, but not those within another or in a box."""
    found: list[Element] = []
    for part in children(element):
        if name(part) in _FLOATS:
            found.extend(_floats_of(part))
        elif name(part) not in _SECTIONS:
            found.extend(_floats(part))
    return found


def _floats_of(element: Element) -> list[Element]:
    """The element itself, or for a group: its members, after the group's own caption."""
    return [element, *_floats(element)] if name(element) in _GROUPS else [element]


def _add_float(element: Element, titles: Titles, text: TextBuilder) -> None:
    label = one_line(flatten(child(element, "label")))
    caption = flatten(child(element, "caption"))
    heading = " ".join(part for part in (label.rstrip(".") + "." if label else "", caption) if part)
    if name(element) not in _TABLES:
        if caption:
            text.add(heading, (*titles, label.rstrip(".")), "caption")
        return
    lines = [heading] if heading else []
    for table in descendants(element, "table"):
        lines += [" | ".join(cells) for cells in rows(table)]
    foot = child(element, "table-wrap-foot")
    if foot is not None:
        lines += [text_of_note for note in children(foot) if (text_of_note := _note(note))]
    text.add("\n".join(lines), (*titles, _table_title(label, caption)), "table")


def _note(note: Element) -> str:
    """A table's footnote on one line, its mark in front: ``a P < 0.05.``."""
    blocks = [note] if name(note) == "p" else children(note)
    return " ".join(part for block in blocks if (part := flatten(block).replace("\n", " ")))


def _table_title(label: str, caption: str) -> str:
    first = one_line(caption.partition("\n")[0])
    if len(first) > _CAPTION_IN_TITLE:
        first = first[:_CAPTION_IN_TITLE].rpartition(" ")[0] + " …"
    return ": ".join(part for part in (label.rstrip("."), first.rstrip(".")) if part) or "Table"
