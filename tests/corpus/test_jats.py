# ruff: noqa: E501 (XML is written in its own lines)
from typing import Any

import pytest
from lxml import etree

from hybrid_ir.corpus.jats_table import rows
from hybrid_ir.records import Document

HEAD = """<!DOCTYPE article PUBLIC "-//NLM//DTD JATS//EN" "JATS-archivearticle1.dtd">
<article xmlns:xlink="http://www.w3.org/1999/xlink"><front><article-meta>
<article-id pub-id-type="pmid">123</article-id><article-id pub-id-type="pmc">4567</article-id>
<article-id pub-id-type="doi">10.1000/Own</article-id>
<title-group><article-title>Zika in <italic>Aedes</italic><xref ref-type="fn">*</xref></article-title></title-group>
<pub-date pub-type="epub"><year>2015</year></pub-date><pub-date pub-type="ppub"><year>2016</year></pub-date>
"""


def article(body: str = "", abstract: str = "", back: str = "", tail: str = "") -> str:
    return f"{HEAD}{abstract}</article-meta></front><body>{body}</body><back>{back}</back>{tail}</article>"


def read(read_file: Any, **parts: str) -> Document:
    (document,) = read_file("a.nxml", article(**parts))
    assert isinstance(document, Document), document
    return document


def sections(document: Document) -> list[tuple[str, str, str]]:
    return [(" > ".join(s.titles), s.kind, document.text[s.start : s.end]) for s in document.sections]


def test_front_matter(read_file: Any) -> None:
    document = read(read_file, body="<p>X.</p>")
    assert (document.id, document.pmid, document.doi, document.year) == ("PMC4567", "123", "10.1000/own", 2015)
    assert document.title == "Zika in Aedes"


def test_nested_sections_keep_their_parents_titles(read_file: Any) -> None:
    document = read(
        read_file,
        abstract="<abstract><sec><title>Aim</title><p>Why.</p></sec></abstract><abstract><title>Summary</title><p>S.</p></abstract>",
        body="""<p>Opening.</p><sec><label>2</label><title>Methods</title><p>All.</p><sec><title>Dose</title><p>One.</p>
        <p>Two.</p></sec><sec><p>Nameless.</p></sec></sec>""",
    )
    assert sections(document) == [
        ("Abstract > Aim", "abstract", "Why."),
        ("Summary", "abstract", "S."),
        ("", "text", "Opening."),
        ("Methods", "text", "All."),
        ("Methods > Dose", "text", "One.\n\nTwo."),
        ("Methods", "text", "Nameless."),
    ]


TABLE = """<table-wrap><label>Table 1.</label><caption><title>Doses</title><p>By group.</p></caption><table>
<thead><tr><th rowspan="2">Drug<sup>a</sup></th><th colspan="2">mg</th></tr><tr><th>low</th><th>high</th></tr></thead>
<tbody><tr><td rowspan="2">A</td><td>1</td><td>2 <break/>(x|y)</td></tr><tr><td>3</td><td/></tr>
<tr><td colspan="3">Group</td></tr><tr><td/><td/><td/></tr></tbody></table>
<table-wrap-foot><fn><p><sup>a</sup>Oral.</p></fn></table-wrap-foot></table-wrap>"""


def test_tables_are_rows_with_label_caption_and_notes(read_file: Any) -> None:
    document = read(read_file, body=f"<sec><title>Results</title><p>See {TABLE} below.</p></sec>")
    assert sections(document) == [
        ("Results", "text", "See below."),
        (
            "Results > Table 1: Doses",
            "table",
            "Table 1. Doses\nBy group.\nDrug [a] | mg | mg\nDrug [a] | low | high\nA | 1 | 2 (x¦y)\nA | 3\nGroup\na Oral.",
        ),
    ]


@pytest.mark.parametrize(
    ("table", "expected"),
    [
        ("<tr><td rowspan='9'>a</td><td>b</td></tr><tr><td>c</td></tr>", [["a", "b"], ["a", "c"]]),
        ("<tr><td>a</td><td rowspan='2'>b</td></tr><tr><td>c</td></tr>", [["a", "b"], ["c", "b"]]),
        ("<tr><td rowspan='x' colspan='-3'>a</td></tr>", [["a"]]),
        ("<tbody><tr><td rowspan='5'>a</td></tr></tbody><tbody><tr><td>b</td></tr></tbody>", [["a"], ["b"]]),
        ("<tr><td/></tr>", []),
        ("<tr><td colspan='999999999999'>a</td><td>b</td></tr>", [["a", "b"]]),
    ],
)
def test_spans(table: str, expected: list[list[str]]) -> None:
    assert rows(etree.fromstring(f"<table>{table}</table>")) == expected


def test_captions_in_place_in_groups_and_in_floats_group(read_file: Any) -> None:
    figure = "<fig><label>Fig. 1</label><caption><p>A map.</p></caption><graphic/></fig>"
    document = read(
        read_file,
        body=f"<sec><title>R</title>{figure}<p>Text.</p><fig><label>Fig. 2</label></fig></sec>",
        tail="<floats-group><fig-group><caption><p>Both.</p></caption><fig><label>F3</label><caption><p>Three.</p></caption>"
        f"</fig></fig-group>{TABLE}</floats-group>",
    )
    assert [(title, kind) for title, kind, _ in sections(document)] == [
        ("R", "text"),
        ("R > Fig. 1", "caption"),
        ("", "caption"),
        ("F3", "caption"),
        ("Table 1: Doses", "table"),
    ]
    assert sections(document)[1][2] == "Fig. 1. A map."


def test_reference_marks_are_not_glued_to_words(read_file: Any) -> None:
    document = read(
        read_file,
        body="<p>Aspirin<sup><xref ref-type='bibr'>12</xref>,<xref ref-type='bibr'>13</xref></sup> and ibuprofen"
        "<xref ref-type='bibr'>14</xref> help [<xref ref-type='bibr'>15</xref>] (<xref ref-type='fig'>Fig. 1</xref>); "
        "x<sup>n</sup>, 5 × 10<sup>−3</sup> M.</p>",
    )
    assert document.text == "Aspirin [12,13] and ibuprofen [14] help [15] (Fig. 1); xn, 5 × 10^−3 M."


def test_lists_boxes_formulas_and_definitions(read_file: Any) -> None:
    document = read(
        read_file,
        body="""<sec><title>S</title><p>Three:<list><list-item><p>one</p></list-item><list-item><p>two</p></list-item></list></p>
        <p>Then <inline-formula><alternatives><tex-math>\\documentclass{x}\\begin{document}$$a$$\\end{document}</tex-math>
        <mml:math xmlns:mml="m"><mml:mfrac><mml:mi>a</mml:mi><mml:msup><mml:mi>b</mml:mi><mml:mn>2</mml:mn></mml:msup></mml:mfrac>
        </mml:math></alternatives></inline-formula> and <tex-math>\\documentclass{x}\\begin{document}$$c$$\\end{document}</tex-math>.</p>
        <boxed-text><caption><title>Box 1</title></caption><p>Boxed.</p></boxed-text>
        <boxed-text content-type="pull-quote"><p>Three</p></boxed-text></sec>""",
        back="""<glossary><def-list><def-item><term>ZIKV:</term><def><p>Zika virus</p></def></def-item></def-list></glossary>
        <ack><p>Thanks.</p></ack><app-group><app><title>Appendix A</title><p>More.</p></app></app-group>""",
    )
    assert sections(document) == [
        ("S", "text", "Three:\none\ntwo\n\nThen (a)/(b^2) and c."),
        ("S > Box 1", "text", "Boxed."),
        ("Abbreviations", "text", "ZIKV: Zika virus"),
        ("Appendix A", "text", "More."),
    ]


def test_references(read_file: Any) -> None:
    document = read(
        read_file,
        body="<p>X.</p>",
        back="""<ref-list><ref><element-citation><pub-id pub-id-type="pmid">9</pub-id><pub-id pub-id-type="doi">10.1000/A</pub-id>
        <pub-id pub-id-type="other">x</pub-id></element-citation></ref><ref><mixed-citation>
        <ext-link ext-link-type="uri" xlink:href="http://dx.doi.org/doi:10.1000/B.">doi</ext-link>
        <ext-link ext-link-type="uri" xlink:href="http://example.org">home</ext-link></mixed-citation></ref></ref-list>""",
    )
    assert document.references == ("pmid:9", "doi:10.1000/a", "doi:10.1000/b")


def test_article_sets_and_ids_without_a_pmc_id(read_file: Any) -> None:
    bare = "<article><front><article-meta>{}</article-meta></front><body><p>X.</p></body></article>"
    ids = ['<article-id pub-id-type="pmcid">PMC1</article-id>', '<article-id pub-id-type="pmid">2</article-id>', ""]
    records = read_file("set.xml", f"<pmc-articleset>{''.join(bare.format(i) for i in ids)}</pmc-articleset>")
    assert [(d.id, d.locator) for d in records] == [
        ("PMC1", "record 1"),
        ("2", "record 2"),
        ("corpus/set:3", "record 3"),
    ]
    assert read_file("b.nxml", bare.format(""))[0].id == "corpus/b"


def test_an_article_without_body_keeps_its_abstract_and_without_both_is_an_error(read_file: Any) -> None:
    assert read(read_file, abstract="<abstract><p>Only this.</p></abstract>").text == "Only this."
    (error,) = read_file("b.nxml", article())
    assert "has no text" in error.reason
