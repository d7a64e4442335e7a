import pickle

import pytest

from hybrid_ir.errors import BadInput
from hybrid_ir.extraction import term_lists
from hybrid_ir.extraction.aliases import long_form
from hybrid_ir.extraction.relations import join, third_person
from hybrid_ir.extraction.vocabulary import Vocabulary, key_of


def test_longest_match_with_offsets_of_the_text() -> None:
    terms = Vocabulary({key_of("diabetes"): "", key_of("type 2 diabetes"): "t2d", key_of("Parkinson's disease"): ""})
    text = "In Type-2 diabetes, and in parkinson’s diseases."
    found = terms.find(text)
    assert [(text[t.start : t.end], t.name) for t in found] == [
        ("Type-2 diabetes", "t2d"),
        ("parkinson’s diseases", "parkinson's disease"),
    ]


def test_a_term_is_no_part_of_a_word() -> None:
    assert Vocabulary({"rash": ""}).find("rashly crash") == []


@pytest.mark.parametrize(
    ("short", "before", "long"),
    [
        ("ITD", "caused by an iodide transport defect", "iodide transport defect"),
        ("ACE", "the angiotensin-converting enzyme", "angiotensin-converting enzyme"),
        ("HIV", "human immunodeficiency virus", "human immunodeficiency virus"),
        ("XYZ", "iodide transport defect", ""),
        ("USA", "", ""),
    ],
)
def test_long_forms(short: str, before: str, long: str) -> None:
    assert long_form(short, before) == long


def test_foreign_classes_in_a_vocabulary_file_are_refused(tmp_path, monkeypatch) -> None:
    import bz2

    class Evil:
        def __reduce__(self):
            return (print, ("ran",))

    (tmp_path / "x.bz2").write_bytes(bz2.compress(pickle.dumps(Evil())))
    monkeypatch.setattr(term_lists, "_folder", lambda name: tmp_path)
    with pytest.raises(BadInput, match="not a readable vocabulary"):
        term_lists._unpickle("drugs", "x.bz2")


def test_words_of_relations() -> None:
    assert [third_person(verb) for verb in ("carry", "cause", "be", "have", "pass", "play")] == [
        "carries",
        "causes",
        "is",
        "has",
        "passes",
        "plays",
    ]
    assert join("a b", "", "c d e f g") == "a b c d f g"
