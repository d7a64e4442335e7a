# ruff: noqa: E501 (XML is written in its own lines)
import json
from typing import Any

from hybrid_ir.records import ErrorRecord

XML = """<?xml version="1.0"?><!DOCTYPE collection SYSTEM "BioC.dtd"><collection><source>PMC</source><document><id>12</id>
<infon key="license">CC</infon>
<passage><infon key="section_type">TITLE</infon><infon key="type">front</infon><infon key="article-id_pmc">12</infon>
<infon key="article-id_pmid">34</infon><infon key="article-id_doi">10.1/x</infon><infon key="year">2020</infon>
<offset>0</offset><text>The title</text></passage>
<passage><infon key="section_type">ABSTRACT</infon><infon key="type">abstract</infon><offset>9000</offset><text>Short.</text>
<annotation id="1"><text>Short</text></annotation></passage>
<passage><infon key="section_type">METHODS</infon><infon key="type">title_1</infon><offset>1</offset><text>Methods</text></passage>
<passage><infon key="section_type">METHODS</infon><infon key="type">title_2</infon><offset>1</offset><text>Dose</text></passage>
<passage><infon key="section_type">METHODS</infon><infon key="type">paragraph</infon><offset>1</offset>
<sentence><offset>1</offset><text>One.</text></sentence><sentence><offset>2</offset><text>Two.</text></sentence></passage>
<passage><infon key="section_type">TABLE</infon><infon key="type">table</infon><offset>1</offset><text>a\tb</text></passage>
<passage><infon key="section_type">FIG</infon><infon key="type">fig_caption</infon><offset>1</offset><text>A map.</text></passage>
<passage><infon key="section_type">REF</infon><infon key="type">ref</infon><infon key="pub-id_pmid">99</infon><offset>1</offset>
<text>Somebody 1999</text></passage>
</document><document><passage><text>x</text></passage></document></collection>"""


def test_bioc_xml(read_file: Any) -> None:
    document, error = read_file("a.xml", XML)
    assert (document.id, document.pmid, document.title, document.year) == ("PMC12", "34", "The title", 2020)
    assert document.references == ("pmid:99",)
    assert [(s.titles, s.kind, document.text[s.start : s.end]) for s in document.sections] == [
        (("Abstract",), "abstract", "Short."),
        (("Methods", "Dose"), "text", "One. Two."),
        ((), "table", "a | b"),
        ((), "caption", "A map."),
    ]
    assert isinstance(error, ErrorRecord)
    assert "Record 2" in error.reason
    assert "without an id" in error.reason


def passages(identity: object) -> dict[str, Any]:
    return {
        "id": identity,
        "infons": {},
        "passages": [
            {"infons": {"type": "title"}, "offset": 0, "text": "T"},
            {"infons": {"type": "abstract"}, "offset": 2, "text": "A.", "annotations": []},
        ],
    }


def test_bioc_json_collections_lists_and_lines(read_file: Any) -> None:
    one, two = passages("1"), passages(2)
    for name, content in {
        "collection.json": json.dumps({"source": "x", "documents": [one, two]}, indent=1),
        "list.json": json.dumps([{"documents": [one]}, {"documents": [two]}]),
        "pubtator3.json": json.dumps({"PubTator3": [one, two]}),
        "lines.json": json.dumps(one) + "\n" + json.dumps(two),
    }.items():
        records = read_file(name, content)
        assert [(d.id, d.pmid, d.title, d.text) for d in records] == [("1", "1", "T", "A."), ("2", "2", "T", "A.")], (
            name
        )


def test_bioc_json_without_text_or_id(read_file: Any) -> None:
    no_id, no_text, odd = read_file(
        "a.jsonl",
        "\n".join(json.dumps(i) for i in [passages(None), {"id": "1", "passages": []}, {"id": "2", "passages": [3]}]),
    )
    assert "Line 1" in no_id.reason
    assert "without an id" in no_id.reason
    assert "no text" in no_text.reason
    assert isinstance(odd, ErrorRecord)


def test_pubtator(read_file: Any) -> None:
    first, second, third = read_file(
        "a.PubTator.txt",
        "12|t|A title with | in it\n12|a|Some text.\n12\t0\t7\tA title\tDisease\tD1\n12\tCID\tD1\tD2\n\n"
        "13|t|Only a title\n13|a|\n\nD14|t|T\r\nD14|a|β.\r\n",
    )
    assert (first.id, first.title, first.text, first.locator) == ("12", "A title with | in it", "Some text.", "line 1")
    assert [s.kind for s in first.sections] == ["abstract"]
    assert (second.text, second.pmid) == ("Only a title", "13")
    assert (third.id, third.text, third.pmid) == ("D14", "β.", None)


def test_pubtator_bad_lines(read_file: Any) -> None:
    records = read_file("a.txt", b"1|t|T\n1|a|Text.\nnonsense\n\n2|t|caf\xe9\n3|t|T\n3|a|Three.\n")
    assert [r.id for r in records if not isinstance(r, ErrorRecord)] == ["1", "3"]
    assert [r.reason.split(" of ")[0] for r in records if isinstance(r, ErrorRecord)] == ["Line 3", "Line 5"]
