"""Files of a JSON value a line, tidy or not."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hybrid_ir.errors import BadInput, NotFound
from hybrid_ir.evaluation import json_lines

WORDS = st.text(st.characters(exclude_categories=["Cs"]), max_size=9)


@given(st.lists(st.dictionaries(WORDS, WORDS, max_size=3), max_size=6))
def test_any_text_comes_back_whatever_separators_it_holds(tmp_path_factory, rows):
    file = tmp_path_factory.mktemp("lines") / "f.jsonl"
    text = "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)
    file.write_bytes(text.encode())
    assert [row for _, row in json_lines.read(file)] == rows


def test_a_line_that_cannot_be_read_costs_itself(tmp_path):
    file = tmp_path / "f.jsonl"
    file.write_bytes(b'\xef\xbb\xbf{"a": 1}\n\n{"b": "\xe9"}\nnonsense\n' + b"[" * 100_000 + b'\n{"c": "\xe2\x80\xa8"}')
    found = dict(json_lines.read(file))
    assert (found[1], found[6]) == ({"a": 1}, {"c": "\u2028"})
    assert ["not UTF-8" in str(found[3]), "not valid JSON" in str(found[4])] == [True, True]
    assert isinstance(found[5], ValueError)


def test_what_is_no_file_is_said(tmp_path):
    with pytest.raises(NotFound):
        list(json_lines.read(tmp_path / "absent"))
    with pytest.raises(BadInput, match="cannot be read"):
        list(json_lines.read(tmp_path))
