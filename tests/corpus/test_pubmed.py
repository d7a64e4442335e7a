# ruff: noqa: E501 (XML is written in its own lines)
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from hybrid_ir.records import Deletion, Document, ErrorRecord


def article(pmid: str = "1", inner: str = "", data: str = "", version: str = "1") -> str:
    return (
        f'<PubmedArticle><MedlineCitation><PMID Version="{version}">{pmid}</PMID><Article><Journal><JournalIssue>'
        f"<PubDate><Year>2018</Year></PubDate></JournalIssue></Journal>{inner}</Article></MedlineCitation>"
        f"<PubmedData>{data}</PubmedData></PubmedArticle>"
    )


def articles(*records: str, doctype: str = "") -> str:
    return f"<?xml version='1.0'?>\n{doctype}<PubmedArticleSet>{''.join(records)}</PubmedArticleSet>"


def abstract(text: str) -> str:
    return f"<ArticleTitle>T</ArticleTitle><Abstract><AbstractText>{text}</AbstractText></Abstract>"


def text_of(read_file: Any, inner: str, doctype: str = "") -> str:
    (document,) = read_file("a.xml", articles(article(inner=abstract(inner)), doctype=doctype))
    assert isinstance(document, Document), document
    return document.text


@pytest.mark.parametrize(
    ("inner", "text"),
    [
        ("CO<sub>2</sub> and <i>S. aureus</i>were", "CO2 and S. aureuswere"),
        ("the <i>BRCA1</i> gene", "the BRCA1 gene"),
        ("(<i>P</i> = 0.05)", "(P = 0.05)"),
        ("10<sup>6</sup> cells, 10<sup>-9</sup> M", "10^6 cells, 10^-9 M"),
        ("Ca<sup>2+</sup> at km·h<sup>-1</sup>", "Ca2+ at km·h-1"),
        ("fast-acting β\n\t\t<sub>2</sub>-agonist", "fast-acting β2-agonist"),
        ("a\n   wrapped\n line", "a wrapped line"),
        ("x<!-- not this --> y<?nor this?>", "x y"),
        ("p &lt; 0.05 &amp; µg IL-2Rα", "p < 0.05 & µg IL-2Rα"),
        (
            'max <mml:math xmlns:mml="http://www.w3.org/1998/Math/MathML"><mml:msub><mml:mrow><mml:mover>'
            "<mml:mi>V</mml:mi>"
            "<mml:mo>.</mml:mo></mml:mover><mml:mi>O</mml:mi></mml:mrow><mml:mn>2</mml:mn></mml:msub></mml:math> uptake",
            "max V\u0307O_2 uptake",
        ),
    ],
)
def test_inline_tags(read_file: Any, inner: str, text: str) -> None:
    assert text_of(read_file, inner) == text


def test_labelled_parts_are_sections(read_file: Any) -> None:
    inner = (
        "<ArticleTitle>A <i>title</i></ArticleTitle><Abstract><AbstractText Label='AIM'>Why.</AbstractText>"
        "<AbstractText Label='RESULTS'>What.</AbstractText><AbstractText/>"
        "<CopyrightInformation>C</CopyrightInformation></Abstract>"
    )
    (document,) = read_file("a.xml", articles(article("77", inner)))
    assert (document.id, document.pmid, document.title, document.year) == ("77", "77", "A title", 2018)
    assert document.locator == "record 1, PMID 77"
    assert [(s.titles, s.kind, document.text[s.start : s.end]) for s in document.sections] == [
        (("AIM",), "abstract", "Why."),
        (("RESULTS",), "abstract", "What."),
    ]


def test_no_abstract_keeps_the_title_as_text(read_file: Any) -> None:
    (document,) = read_file("a.xml", articles(article(inner="<ArticleTitle>Only a title.</ArticleTitle>")))
    assert document.text == document.title == "Only a title."


def test_nothing_at_all_is_an_error_and_the_next_is_read(read_file: Any) -> None:
    first, second, third = read_file(
        "a.xml", articles(article("1"), "<PubmedArticle><x/></PubmedArticle>", article("3", abstract("X")))
    )
    assert isinstance(first, ErrorRecord)
    assert (first.subject, "no text" in first.reason) == ("1", True)
    assert "Record 2 of" in second.reason
    assert "no PMID" in second.reason
    assert third.id == "3"


def test_references_and_doi(read_file: Any) -> None:
    data = (
        "<ArticleIdList><ArticleId IdType='doi'>10.1000/OWN</ArticleId></ArticleIdList><ReferenceList><Reference>"
        "<ArticleIdList><ArticleId IdType='pubmed'>5</ArticleId><ArticleId IdType='doi'>10.1000/Five</ArticleId>"
        "</ArticleIdList></Reference></ReferenceList>"
    )
    (document,) = read_file("a.xml", articles(article("1", abstract("X"), data)))
    assert document.doi == "10.1000/own"
    assert document.references == ("pmid:5", "doi:10.1000/five")
    cited = article("1", abstract("X")).replace(
        "</MedlineCitation>",
        "<CommentsCorrectionsList><CommentsCorrections RefType='Cites'><PMID>9</PMID></CommentsCorrections>"
        "</CommentsCorrectionsList></MedlineCitation>",
    )
    assert read_file("b.xml", articles(cited))[0].references == ("pmid:9",)


def test_versions_and_deletions(read_file: Any) -> None:
    deleted = "<DeleteCitation><PMID Version='1'>8</PMID><PMID>9</PMID></DeleteCitation>"
    first, *rest = read_file("a.xml", articles(article("1", abstract("X"), version="3"), deleted))
    assert first.revision == 3
    assert [(r.id, r.revision) for r in rest if isinstance(r, Deletion)] == [("8", 1), ("9", 1)]


def test_book(read_file: Any) -> None:
    book = (
        "<PubmedBookArticle><BookDocument><PMID Version='1'>20301295</PMID><ArticleIdList>"
        "<ArticleId IdType='bookaccession'>NBK1</ArticleId></ArticleIdList><Book><BookTitle>GeneReviews</BookTitle><PubDate><Year>1993</Year></PubDate></Book>"
        "<ArticleTitle>Alport</ArticleTitle><Abstract><AbstractText>X.</AbstractText></Abstract></BookDocument>"
        "</PubmedBookArticle>"
    )
    (document,) = read_file("a.xml", articles(book))
    assert (document.id, document.title, document.text, document.year) == ("20301295", "Alport", "X.", 1993)


def test_a_break_in_the_xml_keeps_what_came_before(read_file: Any) -> None:
    first, error = read_file("a.xml", articles(article("1", abstract("X"))).replace("</PubmedArticleSet>", "<oops"))
    assert first.id == "1"
    assert "not well-formed XML" in error.reason


def test_entities_are_neither_expanded_nor_fetched(read_file: Any, tmp_path: Any) -> None:
    secret = tmp_path / "secret.txt"
    secret.write_text("SECRET")
    doctype = f'<!DOCTYPE PubmedArticleSet [<!ENTITY x SYSTEM "{secret.as_uri()}">]>'
    assert "SECRET" not in text_of(read_file, "before &x; after", doctype)
    assert "expanded" not in text_of(read_file, "a &x; b", '<!DOCTYPE PubmedArticleSet [<!ENTITY x "expanded">]>')
    laughs = "".join(f'<!ENTITY l{n} "{f"&l{n - 1};" * 10}">' for n in range(1, 10))
    doctype = f'<!DOCTYPE PubmedArticleSet [<!ENTITY l0 "lol">{laughs}]>'
    (error,) = read_file("laughs.xml", articles(article(inner=abstract("a &l9; b")), doctype=doctype))
    assert isinstance(error, ErrorRecord)
    assert "amplification" in error.reason


def test_a_dtd_is_not_fetched_and_its_known_names_are_read(read_file: Any, tmp_path: Any) -> None:
    dtd = tmp_path / "corpus" / "x.dtd"
    dtd.parent.mkdir()
    dtd.write_text('<!ENTITY beta "FETCHED">')
    doctype = '<!DOCTYPE PubmedArticleSet PUBLIC "-//NLM//DTD" "x.dtd">'
    assert text_of(read_file, "&beta;-blocker", doctype) == "β-blocker"


_MEASURE = """
import resource, sys
from hybrid_ir.corpus.formats import read
from hybrid_ir.records import SourceFile
from hybrid_ir.settings import ReaderSettings

def peak():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss

source = SourceFile(path=sys.argv[1], size=0)
next(read(source, ReaderSettings()))
before = peak()
assert sum(1 for _ in read(source, ReaderSettings())) == 2000
print(peak() - before)
"""


def test_a_large_file_is_read_in_little_memory(tmp_path: Path) -> None:
    path = tmp_path / "big.xml"
    path.write_text(articles(*[article(str(n), abstract("word " * 2000)) for n in range(2000)]))
    assert path.stat().st_size > 20_000_000
    ran = subprocess.run([sys.executable, "-c", _MEASURE, str(path)], capture_output=True, text=True, check=True)
    assert int(ran.stdout) < 10_000  # KiB
