import json
from typing import Any

import pytest

from hybrid_ir.records import Document, ErrorRecord
from hybrid_ir.settings import ReaderSettings


def lines(*items: Any) -> str:
    return "\n".join(json.dumps(item) for item in items)


@pytest.mark.parametrize(
    ("item", "identity", "title", "text"),
    [
        ({"id": "a", "title": "T", "text": "X"}, "a", "T", "X"),
        ({"_id": "b", "title": "T", "text": "X"}, "b", "T", "X"),  # BEIR
        ({"pmid": 12, "title": "T", "abstract": "X"}, "12", "T", "X"),
        ({"PMID": "12", "text": "X"}, "12", "", "X"),
        ({"id": 3.0, "content": "X"}, "3", "", "X"),
        ({"id": "c", "title": "T", "content": "X", "contents": "T. X"}, "c", "T", "X"),  # MedRAG
        ({"id": "d", "contents": "X"}, "d", "", "X"),
        ({"id": "e", "text": ["One.", "Two."]}, "e", "", "One.\n\nTwo."),
        ({"id": "f", "text": "", "content": "X", "title": None}, "f", "", "X"),
        ({"id": "", "text": "X"}, "corpus/a:1", "", "X"),
        ({"text": "X", "title": " a\n b "}, "corpus/a:1", "a b", "X"),
    ],
)
def test_usual_fields(read_file: Any, item: dict[str, Any], identity: str, title: str, text: str) -> None:
    (document,) = read_file("a.jsonl", lines(item))
    assert isinstance(document, Document), document
    assert (document.id, document.title, document.text) == (identity, title, text)
    assert document.locator == "line 1"


def test_abstract_beside_a_full_text_is_kept(read_file: Any) -> None:
    (document,) = read_file("a.jsonl", lines({"id": "1", "abstract": "Short.", "text": "Long."}))
    assert [(s.titles, s.kind, document.text[s.start : s.end]) for s in document.sections] == [
        (("Abstract",), "abstract", "Short."),
        ((), "text", "Long."),
    ]
    (document,) = read_file("b.jsonl", lines({"id": "1", "abstract": "Short.", "text": "Short. Long."}))
    assert document.text == "Short. Long."


def test_facts(read_file: Any) -> None:
    item = {"id": "x", "text": "X", "pmid": 77, "doi": "https://doi.org/10.1000/ABC", "year": "2019"}
    (document,) = read_file("a.jsonl", lines(item))
    assert (document.pmid, document.doi, document.year) == ("77", "10.1000/abc", 2019)
    (document,) = read_file("b.jsonl", lines({"id": "x", "text": "X", "pmid": "none", "doi": 5, "year": True}))
    assert (document.pmid, document.doi, document.year) == (None, None, None)


def test_field_map(read_file: Any) -> None:
    settings = ReaderSettings(fields={"id": "uid", "text": "body", "title": "name", "year": "when"})
    item = {"uid": 9, "id": "no", "body": "X", "text": "no", "name": "T", "when": 1999}
    good, bad = read_file("a.jsonl", lines(item, {"uid": 10, "text": "no"}), settings)
    assert (good.id, good.title, good.text, good.year) == ("9", "T", "X", 1999)
    assert isinstance(bad, ErrorRecord)
    assert bad.subject == "10"
    assert "Line 2 of" in bad.reason
    assert 'field "body" is missing' in bad.reason
    assert "build.reader.fields" in bad.reason
    (empty,) = read_file("b.jsonl", lines({"uid": 11, "body": ""}), settings)
    assert 'field "body" is empty' in empty.reason


def test_array_single_object_and_concatenated_objects(read_file: Any) -> None:
    array = json.dumps([{"id": "1", "text": "X"}, {"text": "Y"}], indent=2)
    assert [(d.id, d.locator) for d in read_file("a.json", array)] == [("1", "record 1"), ("corpus/a:2", "record 2")]
    assert [(d.id, d.locator) for d in read_file("b.json", json.dumps({"text": "Y"}, indent=2))] == [("corpus/b", "")]
    pretty = json.dumps({"id": "1", "text": "X"}, indent=1) + "\n" + json.dumps({"id": "2", "text": "X"}, indent=1)
    assert [d.id for d in read_file("c.json", pretty)] == ["1", "2"]
    assert read_file("d.json", "[ ]") == []


def test_a_broken_array_keeps_what_came_before(read_file: Any) -> None:
    first, error = read_file("a.json", '[{"id": "1", "text": "X"},\n{"id": "2", "text": ]')
    assert first.id == "1"
    assert "line 2 is not valid JSON" in error.reason
    assert "after record 1" in error.reason
    first, error = read_file("b.json", '[{"id": "1", "text": "X"}')
    assert first.id == "1"
    assert "not closed" in error.reason


def test_blank_lines_and_missing_last_newline(read_file: Any) -> None:
    records = read_file("a.jsonl", '\n{"id": "1", "text": "X"}\n\n{"id": "2", "text": "Y"}')
    assert [(d.id, d.locator) for d in records] == [("1", "line 2"), ("2", "line 4")]
