"""PubMed / MEDLINE XML: citations, books, and the deletions of the update files."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import BinaryIO

from hybrid_ir.corpus.assembly import TextBuilder, bare_doi, one_line, read_error, reference_ids
from hybrid_ir.corpus.xml_text import Element, child, children, descendants, flatten, name, parse_elements, release
from hybrid_ir.records import Deletion, Document, ErrorRecord, SourceFile
from hybrid_ir.settings import ReaderSettings

_RECORDS = ("PubmedArticle", "PubmedBookArticle", "MedlineCitation", "DeleteCitation", "DeleteDocument")
_YEAR = re.compile(r"\b(1[5-9]|20)\d\d\b")


def read_pubmed(
    source: SourceFile, stream: BinaryIO, settings: ReaderSettings
) -> Iterator[Document | Deletion | ErrorRecord]:
    """One document a citation, with its PMID as id and the parts of its abstract as sections.

    A citation without an abstract keeps its title as text, so that it can be found.  The PMID's
    ``Version`` is the revision.
    """
    position = 0
    for element in parse_elements(stream, _RECORDS):
        parent = element.getparent()
        if parent is not None and name(parent) == "PubmedArticle":
            continue  # the MedlineCitation of an article that is not complete yet
        if name(element).startswith("Delete"):
            for pmid in children(element, "PMID"):
                if number := flatten(pmid):
                    yield Deletion(id=number, source=source.path, revision=_version(pmid))
        else:
            position += 1
            yield _document(element, source.path, position)
        release(element)


def _document(record: Element, path: str, position: int) -> Document | ErrorRecord:
    book = name(record) == "PubmedBookArticle"
    if book:
        citation = child(record, "BookDocument")
    else:
        citation = record if name(record) == "MedlineCitation" else child(record, "MedlineCitation")
    pmid = child(citation, "PMID")
    number = flatten(pmid)
    if citation is None or pmid is None or not number:
        return read_error(path, path, f"Record {position} of {path} has no PMID.")
    article = citation if book else child(citation, "Article")
    title = one_line(flatten(child(article, "ArticleTitle")) or flatten(child(article, "VernacularTitle")))
    if book and not title:
        title = one_line(flatten(child(citation, "Book", "BookTitle")))
    text = TextBuilder()
    abstract = child(article, "Abstract")
    if abstract is None:
        abstract = child(citation, "OtherAbstract")
    if abstract is not None:
        for part in children(abstract, "AbstractText"):
            text.add(flatten(part), [part.get("Label", "")], "abstract")
    if not text.sections:
        text.add(title)
    data = child(record, "PubmedBookData" if book else "PubmedData")
    return Document(
        id=number,
        title=title,
        text=text.text,
        sections=text.sections,
        source=path,
        locator=f"record {position}, PMID {number}",
        pmid=number,
        doi=_doi(article, data),
        year=_year(citation if book else article),
        references=_references(citation, data),
        revision=_version(pmid),
    )


def _version(pmid: Element) -> int:
    version = pmid.get("Version", "")
    return int(version) if version.isascii() and version.isdigit() else 1


def _doi(article: Element | None, data: Element | None) -> str | None:
    ids = [*children(article, "ELocationID")] if article is not None else []
    listed = child(data, "ArticleIdList")
    if listed is None:
        listed = child(article, "ArticleIdList")
    ids += [] if listed is None else [*children(listed, "ArticleId")]
    for element in ids:
        kind = element.get("EIdType") or element.get("IdType")
        if kind == "doi" and element.get("ValidYN") != "N" and (doi := bare_doi(flatten(element))):
            return doi
    return None


def _year(article: Element | None) -> int | None:
    for path in (("Journal", "JournalIssue", "PubDate"), ("ArticleDate",), ("Book", "PubDate")):
        date = child(article, *path)
        if date is not None:
            stated = _YEAR.search(flatten(child(date, "Year")) or flatten(child(date, "MedlineDate")))
            if stated:
                return int(stated.group())
    return None


def _references(citation: Element, data: Element | None) -> tuple[str, ...]:
    found: list[str] = []
    comments = child(citation, "CommentsCorrectionsList")
    if comments is not None:
        found += reference_ids(pmids=[flatten(child(item, "PMID")) for item in children(comments)])
    for holder in (data, citation):
        for reference in descendants(holder, "Reference") if holder is not None else ():
            for item in descendants(reference, "ArticleId"):
                kind, value = item.get("IdType"), flatten(item)
                found += reference_ids(pmids=[value] if kind == "pubmed" else [], dois=[value] if kind == "doi" else [])
    return tuple(dict.fromkeys(found))
