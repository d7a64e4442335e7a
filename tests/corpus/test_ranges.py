"""A file read in ranges gives the records of the file read whole, whatever the ranges' size."""

import gzip
import json
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from hybrid_ir.corpus.formats import read
from hybrid_ir.corpus.ranges import look
from hybrid_ir.records import Document, SourceFile
from hybrid_ir.settings import ReaderSettings

SMALL = ReaderSettings(max_document_chars=60)
"""A line of JSON may then have a megabyte, one of PubTator 1264 bytes."""

texts = st.text("aé漢😀 .|\t", min_size=1, max_size=70)
ends = st.sampled_from(["\n", "\r\n"])
json_lines = st.one_of(
    st.builds(lambda i, t: json.dumps({"id": i, "text": t}, ensure_ascii=False), st.sampled_from("xyz"), texts),
    st.builds(lambda t: json.dumps({"text": t}, ensure_ascii=False), texts),  # its id is made of its line's number
    st.sampled_from(["", "  ", "{oops", "[1]", "\udcff"]),
)
pubtator_lines = st.one_of(
    st.builds(
        lambda i, part, t: f"{i}|{part}|{t}", st.sampled_from(["1", "2", " ", "33"]), st.sampled_from("ta"), texts
    ),
    st.sampled_from(["", "1\t0\t3\tabc\tDisease", "nonsense", "\udcff", "9|t|" + "x" * 1300]),
)
FIRST = {"a.jsonl": '{"id": "0", "text": "First é."}', "a.PubTator": "0|t|First é."}


@settings(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.one_of(
        st.tuples(st.just("a.jsonl"), st.lists(st.tuples(json_lines, ends), max_size=12)),
        st.tuples(st.just("a.PubTator"), st.lists(st.tuples(pubtator_lines, ends), max_size=12)),
    ),
    st.integers(1, 400),
    st.booleans(),
    st.booleans(),
)
def test_ranges_of_any_size_hold_what_the_whole_file_holds(tmp_path: Path, content, size, mark, newline_at_the_end):
    name, lines = content
    text = "".join(line + end for line, end in [(FIRST[name], "\n"), *lines])
    text = text if newline_at_the_end else text.rstrip("\r\n")
    data = (b"\xef\xbb\xbf" if mark else b"") + text.encode("utf-8", "surrogateescape")
    path = tmp_path / name
    path.write_bytes(data)
    file = SourceFile(path=str(path), size=len(data))
    _, ranges = look(file, SMALL, size)
    assert ranges[0].start == 0
    if len(ranges) > 1:
        assert all(one.end == two.start for one, two in pairwise(ranges))
        assert ranges[-1].end == len(data)
    assert [record for part in ranges for record in read(part, SMALL)] == list(read(file, SMALL))


@pytest.mark.parametrize("name", ["a.jsonl", "a.PubTator"])
def test_ranges_are_of_the_size_that_was_asked_and_divide_the_work(tmp_path, name):
    path = tmp_path / name
    line = '{{"text": "Text {}."}}' if name == "a.jsonl" else "{0}|t|Text {0}.\n{0}|a|An abstract.\n"
    path.write_text("".join(line.format(number) + "\n" for number in range(2000)))
    file = SourceFile(path=str(path), size=path.stat().st_size)
    digest, ranges = look(file, ReaderSettings(), 4096)
    assert len(ranges) == -(-file.size // 4096)
    assert all(0 < part.bytes < 2 * 4096 for part in ranges)
    assert digest == look(file, ReaderSettings())[0]
    last = list(read(ranges[-1], ReaderSettings()))
    assert 0 < len(last) < 300
    assert last == list(read(file, ReaderSettings()))[-len(last) :]


def test_what_can_only_be_read_from_its_beginning_stays_whole(tmp_path):
    lines = b'{"id": "1", "text": "X"}\n' * 50
    for name, data in {
        "a.jsonl.gz": gzip.compress(lines, 0, mtime=0),
        "a.json": b"[" + lines.replace(b"\n", b",\n") + b'{"text": "Y"}]',
        "a.xml": b"<PubmedArticleSet>\n" + b"<PubmedArticle/>\n" * 50 + b"</PubmedArticleSet>",
        "a.txt": b"A line.\n" * 50,
        "a16.jsonl": lines.decode().encode("utf-16"),
        "one.jsonl": b'{"id": "1", "text": "' + b"x" * 500 + b'"}',
    }.items():
        (tmp_path / name).write_bytes(data)
        file = SourceFile(path=str(tmp_path / name), size=len(data))
        _, (whole,) = look(file, ReaderSettings(), 100)
        assert (whole.start, whole.end, whole.bytes) == (0, None, len(data))
        assert list(read(whole, ReaderSettings())) == list(read(file, ReaderSettings()))


def test_a_file_that_is_not_there_is_left_to_its_reader(tmp_path):
    said, (whole,) = look(SourceFile(path=str(tmp_path / "gone.jsonl"), size=0), ReaderSettings())
    assert said == "FileNotFoundError"
    (error,) = read(whole, ReaderSettings())
    assert not isinstance(error, Document)
    assert "cannot be opened" in error.reason


def test_a_file_that_is_named_by_its_address_is_divided_alike(tmp_path):
    path = tmp_path / "a.jsonl"
    path.write_text("".join(json.dumps({"text": f"Text {number}."}) + "\n" for number in range(300)))
    here, there = (SourceFile(path=name, size=path.stat().st_size) for name in (str(path), f"file://{path}"))
    one, two = (look(file, ReaderSettings(), 500) for file in (here, there))
    assert one[0] == two[0]
    assert [(part.start, part.end, part.first_line) for part in one[1]] == [
        (part.start, part.end, part.first_line) for part in two[1]
    ]
    assert [record for part in two[1] for record in read(part, ReaderSettings())] == list(read(there, ReaderSettings()))
