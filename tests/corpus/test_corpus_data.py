"""The readers on real files; the folder is named by HYBRID_IR_DATA."""

import os
from pathlib import Path

import pytest

from hybrid_ir.corpus.chunker import chunk
from hybrid_ir.corpus.discover import discover
from hybrid_ir.corpus.formats import read
from hybrid_ir.corpus.revisions import resolve
from hybrid_ir.records import Chunk, Document, ErrorRecord
from hybrid_ir.settings import ChunkerSettings, ReaderSettings

DATA = Path(os.environ.get("HYBRID_IR_DATA", Path(__file__).parents[3] / "shared" / "data"))

pytestmark = [
    pytest.mark.data,
    pytest.mark.skipif(not DATA.is_dir(), reason=f"no real data at {DATA}; set HYBRID_IR_DATA"),
]


def load(*paths: str) -> tuple[list[Document], list[Chunk]]:
    """Documents and chunks of a corpus that must be read without any error."""
    records = [r for file in discover([str(DATA / path) for path in paths]) for r in read(file, ReaderSettings())]
    assert [r for r in records if isinstance(r, ErrorRecord)] == []
    documents, errors = resolve(r for r in records if not isinstance(r, ErrorRecord))
    assert errors == []
    chunks = [piece for document in documents for piece in chunk(document, ChunkerSettings())]
    texts = {document.id: document.text for document in documents}
    assert all(piece.text == texts[piece.document_id][piece.start : piece.end] for piece in chunks)
    assert len({piece.id for piece in chunks}) == len(chunks)
    return documents, chunks


@pytest.mark.parametrize(
    ("path", "count"),
    [
        ("pubmedqa/corpus.jsonl", 1000),
        ("hipporag_musique/musique_train_corpus.json", 1890),
        ("pubmed_xml/*.xml", 5),
        ("pmc_fulltext/pdf", 5),
    ],
)
def test_whole_sets_are_read(path: str, count: int) -> None:
    documents, chunks = load(path)
    assert len(documents) == count
    assert {piece.document_id for piece in chunks} == {document.id for document in documents}


def test_one_set_in_two_formats_is_the_same_documents() -> None:
    both, _ = load("bc5cdr/*.PubTator.txt", "bc5cdr/docs.jsonl")
    assert len(both) == 1500


def test_full_text() -> None:
    documents, chunks = load("pmc_fulltext/xml")
    assert len(documents) == 100
    assert all(document.id.startswith("PMC") for document in documents)
    assert {piece.kind for piece in chunks} == {"text", "abstract", "table", "caption"}
    article = next(document for document in documents if document.id == "PMC4706934")
    assert "Gender (male/female) | 13/8 | 44/19 | 0.500" in article.text
    sections = {piece.section for piece in chunks if piece.document_id == article.id}
    assert "2. Materials and Methods > 2.6. Statistical Analysis" in sections
    assert "Table 1: Clinical characteristics of patients" in sections
    assert "pmid:18674694" in article.references


def test_the_pdf_says_what_the_xml_says() -> None:
    """Most words of the PDF's pages stand in the XML of the same article."""
    pages, _ = load("pmc_fulltext/pdf/PMC4736231.pdf")
    article, _ = load("pmc_fulltext/xml/PMC4736231.xml")
    known = set(article[0].text.casefold().split())
    body = [word for word in pages[0].text.casefold().split() if word.isalpha()]
    assert sum(word in known for word in body) / len(body) > 0.75
