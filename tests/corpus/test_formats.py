"""What is wrong with a file is said in a sentence, and nothing bad ends the reading."""

import gzip
import json
import re
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from hybrid_ir.corpus.formats import read, sniff
from hybrid_ir.records import Document, ErrorRecord, SourceFile
from hybrid_ir.settings import ReaderSettings

LINES = b'{"id": "1", "text": "Aspirin helps."}\n{"id": "2", "text": "Ibuprofen too."}\n'
PUBMED = b"<?xml version='1.0'?><!DOCTYPE PubmedArticleSet PUBLIC 'x' 'http://192.0.2.1/x.dtd'><PubmedArticleSet/>"
JATS = b'<!DOCTYPE article [<!ENTITY a "b">]>\n<!-- > --><jats:article xmlns:jats="urn:x">'


@pytest.mark.parametrize(
    ("name", "head", "expected"),
    [
        ("a.jsonl", LINES, "jsonl"),
        ("a.jsonl.gz", gzip.compress(LINES, mtime=0), "jsonl"),
        ("a.json", LINES, "jsonl"),
        ("a", LINES, "jsonl"),
        ("a.json", b'[{"id": 1}]', "json"),
        ("a.json", b'{\n  "id": 1\n}', "json"),
        ("a.json", b"nonsense", "json"),
        ("a.txt", b"[1] A reference list", "plain"),
        ("a.md", b"[link](x)", "plain"),
        ("a.txt", b"Some text", "plain"),
        ("README", b"Some text", "plain"),
        ("a.txt", b"\xff\xfeA\0 \0", "plain"),
        ("a.xml", PUBMED, "pubmed"),
        ("a.XML.GZ", gzip.compress(PUBMED, mtime=0), "pubmed"),
        ("a.nxml", JATS, "jats"),
        ("a.xml", b"\xef\xbb\xbf<pmc-articleset><article/>", "jats"),
        ("a.xml", b"<!DOCTYPE collection SYSTEM 'BioC.dtd'><collection>", "bioc"),
        ("a.xml", b"<html><body>", None),
        ("a.txt", b"12|t|A title", "pubtator"),
        ("a.PubTator", b"12|t|A title", "pubtator"),
        ("a.bin", b"%PDF-1.7", "pdf"),
        ("a.csv", b"a,b\n1,2", None),
        ("a.zip", b"PK\x03\x04\0\0", None),
        ("a.txt", b"\x1f\x8bbroken", None),
    ],
)
def test_sniff(name: str, head: bytes, expected: str | None) -> None:
    assert sniff(name, head) == expected


Reading = Callable[..., list[Document | ErrorRecord]]


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("a.txt", b"", "is empty"),
        ("a.jsonl", b" \n\n", "is empty"),
        ("a.txt", b"caf\xe9 au lait\n", "line 1 is not UTF-8"),
        ("a.txt", b"one\ntwo\nthree \xff", "line 3 is not UTF-8"),
        ("a.txt", b"one\ntw\0o", "NUL"),
        ("a.txt", b"x" * 70_000 + b"\n\0", "line 2 holds a NUL byte"),
        ("a.csv", b"a,b\n1,2\n", "format is not known"),
        ("a.html", b"<html><body>x</body></html>", "format is not known"),
        ("a.xml", b"<html><body>x</body></html>", "format is not known"),
        ("a.jsonl", b"version https://git-lfs.github.com/spec/v1\noid sha256:ab\nsize 1\n", "git lfs pull"),
        ("a.json", b"nonsense", "line 1 is not valid JSON"),
        ("a.jsonl", b'{"id": "1"}\n', "none of the fields content, text"),
        ("a.jsonl", b'{"id": "1", "text": "  "}\n', "has no text"),
        ("a.jsonl", b'{"id": "1", "text": {"a": 1}}\n', 'field "text" is a JSON object'),
        ("a.jsonl", b'{"id": ["1"], "text": "x"}\n', 'field "id" is a JSON list'),
        ("a.jsonl", b'["x"]\n', "is a JSON list"),
        ("a.jsonl", b'{"id": "1", "text": "a\\ud800b"}\n', "U\\+D800 at offset 1"),
        ("a.jsonl", b'{"id": "\\udc00", "text": "ab"}\n', "The id of document"),
        ("a.jsonl", b'{"a":' * 100_000 + b"\n", "nested too deep"),
        ("a.jsonl", b'{"id": ' + b"9" * 5000 + b', "text": "x"}\n', "not valid JSON"),
        ("a.json", b"[" * 100_000, "is not valid JSON"),
        ("a.pdf", b"%PDF-1.4 broken", "broken PDF"),
        ("a.xml", b"<PubmedArticleSet><PubmedArticle>", "not well-formed XML"),
        ("a.gz", b"\x1f\x8bbroken", "gzip data is broken"),
    ],
)
def test_bad_content_is_one_error_that_names_the_file(read_file: Reading, name: str, content: bytes, said: str) -> None:
    (error,) = read_file(name, content)
    assert isinstance(error, ErrorRecord)
    assert error.stage == "read"
    assert name in error.reason
    assert name in error.source
    assert re.search(said, error.reason), error.reason
    assert error.reason.endswith(".")
    error.model_dump_json().encode()


def test_missing_file_and_folder_are_errors(tmp_path: Path) -> None:
    for path in (tmp_path / "gone.txt", tmp_path):
        (error,) = read(SourceFile(path=path.as_posix(), size=0), ReaderSettings())
        assert isinstance(error, ErrorRecord)
        assert "cannot be opened" in error.reason


def test_records_around_a_bad_line_are_kept(read_file: Reading) -> None:
    good = [b'{"id": "%d", "text": "Text %d."}' % (n, n) for n in range(5)]
    good[2] = b'{"id": "2", "text": '
    good[3] = b'{"id": "3", "text": "caf\xe9"}'
    records = read_file("a.jsonl", b"\n".join(good))
    assert [r.id for r in records if isinstance(r, Document)] == ["0", "1", "4"]
    errors = [r.reason for r in records if isinstance(r, ErrorRecord)]
    assert [reason.split(" is not ")[0].split(" of ")[0] for reason in errors] == ["Line 3", "Line 4"]


def test_truncated_gzip_keeps_what_came_before(read_file: Reading) -> None:
    lines = b"".join(
        json.dumps({"id": str(n), "text": f"Text {n} {'x' * 200}."}).encode() + b"\n" for n in range(20_000)
    )
    packed = gzip.compress(lines)
    records = read_file("a.jsonl.gz", packed[: len(packed) // 2])
    assert len(records) > 5_000
    *documents, error = records
    assert all(isinstance(record, Document) for record in documents[:-1])
    assert isinstance(error, ErrorRecord)
    assert "gzip data is broken or cut off" in error.reason


def test_gzip_needs_no_ending(read_file: Reading) -> None:
    assert [r.id for r in read_file("a.jsonl", gzip.compress(LINES)) if isinstance(r, Document)] == ["1", "2"]


def test_utf16_and_byte_order_marks(read_file: Reading) -> None:
    for encoding in ("utf-16", "utf-8-sig"):
        text = LINES.decode().replace("helps", "hélps")
        assert next(getattr(r, "text", r) for r in read_file("a.jsonl", text.encode(encoding))) == "Aspirin hélps."
        (plain,) = read_file("a.txt", "β-blockers\r\nhelp".encode(encoding))
        assert isinstance(plain, Document)
        assert plain.text == "β-blockers\nhelp"


def test_too_long_a_document_is_an_error_and_the_next_is_read(read_file: Reading) -> None:
    small = ReaderSettings(max_document_chars=100)
    content = b'{"id": "1", "text": "%s"}\n{"id": "2", "text": "ok"}\n' % (b"x" * 101)
    first, second = read_file("a.jsonl", content, small)
    assert isinstance(first, ErrorRecord)
    assert "101 characters" in first.reason
    assert isinstance(second, Document)
    huge = b'{"id": "1", "text": "%s"}\n{"id": "2", "text": "ok"}\n' % (b"x" * 3_000_000)
    first, second = read_file("b.jsonl", huge, small)
    assert isinstance(first, ErrorRecord)
    assert "longer than" in first.reason
    assert isinstance(second, Document)
    (plain,) = read_file("a.txt", "x" * 1000, small)
    assert isinstance(plain, ErrorRecord)


def test_a_failing_disk_is_not_the_files_fault(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(path: str) -> None:
        raise OSError(5, "Input/output error")

    monkeypatch.setattr("hybrid_ir.corpus.formats.open_bytes", fail)
    with pytest.raises(OSError, match="Input/output"):
        list(read(SourceFile(path="a.txt", size=1), ReaderSettings()))


def test_control_characters_become_blanks_of_the_same_length(read_file: Reading) -> None:
    (document,) = read_file("a.jsonl", rb'{"id": "1", "text": "a\u0000b\u0085c\td\r\ne"}')
    assert isinstance(document, Document)
    assert document.text == "a b c\td\ne"


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.sampled_from(["a.jsonl", "a.json", "a.txt", "a.md", "a.xml", "a.nxml", "a.PubTator", "a.pdf", "a.gz", "a"]),
    st.sampled_from(
        [b"", b"{", b"[{", b"<article>", b"<collection>", PUBMED[:-19], b"1|t|x\n", b"%PDF-1.4\n", b"\x1f\x8b\x08"]
    ),
    st.one_of(st.binary(max_size=80), st.text(max_size=40).map(lambda text: text.encode("utf-8", "surrogatepass"))),
)
def test_no_bytes_raise(read_file: Reading, name: str, start: bytes, rest: bytes) -> None:
    records = read_file(name, start + rest)
    assert records or start + rest
    for record in records:
        record.model_dump_json().encode("utf-8")


@settings(max_examples=100, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.text(min_size=1, max_size=200))
def test_any_text_is_found_again_at_its_offsets(read_file: Reading, text: str) -> None:
    records = read_file("a.jsonl", json.dumps({"id": "1", "text": text, "title": text}))
    assert len(records) == 1
    (record,) = records
    if isinstance(record, Document):
        (section,) = record.sections
        assert record.text[section.start : section.end] == record.text
        assert len(record.text) == len(
            "".join(
                " " if (ord(c) < 32 and c not in "\t\n") or 127 <= ord(c) < 160 else c for c in _unified(text)
            ).strip()
        )


def _unified(text: str) -> str:
    return text.replace("\r\n", "\n").replace("\r", "\n")
