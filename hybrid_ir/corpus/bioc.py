"""BioC, in XML and in JSON: documents as passages with an info of what each is."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, BinaryIO

from hybrid_ir.corpus.assembly import TextBuilder, bare_doi, one_line, read_error, reference_ids
from hybrid_ir.corpus.xml_text import Element, child, children, parse_elements, release
from hybrid_ir.records import Document, ErrorRecord, SectionKind, SourceFile
from hybrid_ir.settings import ReaderSettings

Passage = tuple[Mapping[str, str], str]
"""(infons, text)"""

_SECTION_TITLES = {
    "ABSTRACT": "Abstract",
    "INTRO": "Introduction",
    "METHODS": "Methods",
    "RESULTS": "Results",
    "DISCUSS": "Discussion",
    "CONCL": "Conclusions",
    "CASE": "Case report",
    "APPENDIX": "Appendix",
    "ABBR": "Abbreviations",
}
_LEFT_OUT = frozenset({"REF", "ACK_FUND", "AUTH_CONT", "COMP_INT", "KEYWORD", "REVIEW_INFO"})


def read_bioc(source: SourceFile, stream: BinaryIO, settings: ReaderSettings) -> Iterator[Document | ErrorRecord]:
    """One document a ``document`` element.

    Passage offsets count in a text that is not in the file, so the text is put together anew.
    """
    for position, element in enumerate(parse_elements(stream, ["document"]), start=1):
        passages: list[Passage] = [(_infons(part), _passage_text(part)) for part in children(element, "passage")]
        identity = _own_text(child(element, "id"))
        where = f"Record {position} of {source.path}"
        yield _document(identity, _infons(element), passages, source.path, f"record {position}", where)
        release(element)


def bioc_documents(item: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """The BioC documents in a JSON object: itself, those of a collection, or none."""
    if isinstance(item.get("passages"), list):
        yield dict(item)
    for key in ("documents", "PubTator3"):
        held = item.get(key)
        if isinstance(held, list):
            for part in held:
                if isinstance(part, dict) and isinstance(part.get("passages"), list):
                    yield part


def document_from_json(item: Mapping[str, Any], path: str, locator: str, where: str) -> Document | ErrorRecord:
    """A BioC document in JSON; ``where`` opens the sentence of an error."""
    passages: list[Passage] = []
    for part in item["passages"]:
        if isinstance(part, dict):
            text = part.get("text") or " ".join(
                str(sentence.get("text") or "")
                for sentence in part.get("sentences") or ()
                if isinstance(sentence, dict)
            )
            passages.append((_strings(part.get("infons")), str(text)))
    identity = item.get("id")
    name = str(identity) if isinstance(identity, str | int) else ""
    return _document(name, _strings(item.get("infons")), passages, path, locator, where)


def _document(
    identity: str, infons: Mapping[str, str], passages: list[Passage], path: str, locator: str, where: str
) -> Document | ErrorRecord:
    identity = one_line(identity)
    if not identity:
        return read_error(path, path, f"{where} is a BioC document without an id.")
    facts = {key: value for info, _ in reversed(passages) for key, value in info.items()} | dict(infons)
    title = ""
    headings: list[str] = []
    section = ""
    references: list[str] = []
    text = TextBuilder()
    for info, passage in passages:
        section_type, kind = info.get("section_type", "").upper(), info.get("type", "").lower()
        if section_type == "REF" or kind == "ref":
            references += reference_ids([info.get("pub-id_pmid")], [info.get("pub-id_doi")])
        if section_type in _LEFT_OUT or kind == "ref":
            continue
        if not title and (section_type == "TITLE" or kind in ("title", "front")):
            title = one_line(passage)
            continue
        if section_type != section:
            section, headings = section_type, []
        if kind.startswith(("title_", "abstract_title")) or kind == "title":
            level = int(kind[-1]) if kind[-1].isdigit() else 1
            headings = [*headings[: level - 1], one_line(passage)]
            continue
        usual = _SECTION_TITLES.get(section_type)
        titles = headings or ([usual] if usual else [])
        shown = _kind(section_type, kind)
        text.add(passage.replace("\t", " | ") if shown == "table" else passage, titles, shown)
    if not text.sections:
        text.add(title)
    pmcid = facts.get("article-id_pmc", "")
    pmcid = f"PMC{pmcid}" if pmcid.isdigit() else pmcid
    pmid = facts.get("article-id_pmid") or (identity if identity.isdigit() and not pmcid else None)
    year = facts.get("year", "")
    return Document(
        id=pmcid or identity,
        title=title,
        text=text.text,
        sections=text.sections,
        source=path,
        locator=locator,
        pmid=pmid,
        doi=bare_doi(facts.get("article-id_doi")),
        year=int(year) if year.isascii() and year.isdigit() and len(year) == 4 else None,
        references=tuple(dict.fromkeys(references)),
    )


def _kind(section_type: str, kind: str) -> SectionKind:
    if "caption" in kind or section_type == "FIG":
        return "caption"
    if section_type == "TABLE" or kind == "table":
        return "table"
    return "abstract" if section_type == "ABSTRACT" or kind == "abstract" else "text"


def _strings(infons: Any) -> dict[str, str]:
    return {str(key): str(value) for key, value in infons.items()} if isinstance(infons, dict) else {}


def _infons(element: Element) -> dict[str, str]:
    return {infon.get("key", ""): _own_text(infon) for infon in children(element, "infon")}


def _passage_text(passage: Element) -> str:
    text = child(passage, "text")
    if text is not None:
        return _own_text(text)
    return " ".join(_own_text(child(sentence, "text")) for sentence in children(passage, "sentence"))


def _own_text(element: Element | None) -> str:
    return "" if element is None else "".join(map(str, element.itertext())).strip()
