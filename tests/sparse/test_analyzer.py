"""Medical names survive, their spellings meet, and no text in any script is too much."""

import unicodedata

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from hybrid_ir.sparse.analyzer import LONGEST_TERM, STOP_WORDS, terms


@pytest.mark.parametrize(
    ("text", "whole", "parts"),
    [
        ("IL-2", "il2", ["il", "2"]),
        ("β-blocker", "betablocker", ["beta", "blocker"]),
        ("CYP2D6", "cyp2d6", []),
        ("COVID-19", "covid19", ["covid", "19"]),
        ("TNF-α", "tnfalpha", ["tnf", "alpha"]),
        ("p53", "p53", []),
        ("5-HT2A", "5ht2a", ["5", "ht2a"]),
        ("Ca2+", "ca2+", ["ca2"]),
        ("1,25-dihydroxyvitamin", "1,25dihydroxyvitamin", ["1,25", "dihydroxyvitamin"]),
        ("anti-TNF-α", "antitnfalpha", ["antitnf", "tnfalpha", "anti", "tnf", "alpha"]),
        ("HLA-B*15:02", "hlab*15:02", ["hlab", "b15", "15-02", "hla", "b", "15", "02"]),
        ("p.V600E", "p.v600e", ["p", "v600e"]),
    ],
)
def test_a_name_gives_its_whole_and_its_parts(text, whole, parts):
    assert terms(text) == [whole, *parts]
    assert terms(f"The {text}, of which.") == [whole, *parts]


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("IL-2", "IL2"),
        ("IL-2", "il‑2"),
        ("β-blocker", "beta-blockers"),
        ("β-blocker", "β–blocker"),
        ("COVID-19", "covid"),
        ("TNF-α", "TNFα"),
        ("TNF-α", "TNF-alpha"),
        ("TNF-α", "tnfalpha"),
        ("IL-1β", "IL-1 beta"),
        ("α1-antitrypsin", "alpha-1-antitrypsin"),
        ("Ca2+", "Ca(2+)"),
        ("Ca2+", "Ca²⁺"),
        ("CO₂", "CO(2)"),
        ("5 µg", "5 μg"),
        ("5 µg", "5 ug"),
        ("1,000,000 cells", "1000000 cell"),
        ("Sjögren’s", "Sjogren"),
        ("ﬁbrosis", "fibrosis"),
        ("viruses", "virus"),
        ("diagnoses", "diagnosis"),
        ("biopsies", "biopsy"),
        ("blood–brain barrier", "blood-brain barriers"),
    ],
)
def test_spellings_of_one_thing_meet(one, other):
    assert set(terms(one)) & set(terms(other)) - {"2", "1", "5"}
    if not any(c.isdigit() for c in one):
        assert set(terms(other)) <= set(terms(one)) or set(terms(one)) <= set(terms(other))


@pytest.mark.parametrize(
    ("one", "other"),
    [("IL-2", "IL-6"), ("CYP2D6", "CYP2C9"), ("AIDS", "aid"), ("10-20", "1020"), ("Ca2+", "calcium"), ("p53", "p 5 3")],
)
def test_different_things_do_not(one, other):
    assert not set(terms(one)[:1]) & set(terms(other))


def test_plain_words():
    assert terms("The patients were given diseases, doses and causes.") == [
        "patient",
        "given",
        "disease",
        "dose",
        "cause",
    ]
    assert terms("What is it, and why?") == []
    assert terms("vitamin A and hepatitis A. A man") == ["vitamin", "a", "hepatitis", "a", "man"]
    assert terms("e.g. state-of-the-art") == ["stateoftheart", "state", "art"]


def test_other_scripts():
    assert terms("新冠病毒") == ["新冠", "冠病", "病毒"]
    assert terms("肺") == ["肺"]
    assert set(terms("COVID-19新冠")) == {"covid19", "covid", "19", "新冠"}
    assert len(terms("التهاب الكبد")) == 2
    assert terms("हिन्दी भाषा") == ["हिन्दी", "भाषा"]
    assert terms("καρδιά") == ["καρδια"]
    assert terms("Müller-Gang") == ["mullergang", "muller", "gang"]


def test_what_is_no_word():
    for text in ("", "  \n", "-+-", "'''", "....", "\ud800", "x" * (LONGEST_TERM + 1), "\u0301" * 10):
        assert terms(text) == []
    assert len(terms("a-b" * 10_000)) < 50_000


@given(st.text())
@example("I-N")
@example("w-as o-n-e")
def test_any_text(text):
    found = terms(text)
    assert found == terms(text)
    assert all(term and len(term) <= LONGEST_TERM for term in found)
    # Only a capital A within a sentence may be what is else left out.
    assert not set(found) & (STOP_WORDS - {"a"})


@given(st.text(st.sampled_from("abIL-2β .,'+()α1µ’éA"), max_size=30))
def test_composed_and_decomposed_text_is_one(text):
    assert terms(unicodedata.normalize("NFC", text)) == terms(unicodedata.normalize("NFD", text))


@given(st.lists(st.sampled_from(["IL-2", "β-blocker", "COVID-19", "liver", "the", "5-HT2A"]), max_size=8))
def test_words_do_not_depend_on_their_neighbours(words):
    assert terms(" ".join(words)) == [term for word in words for term in terms(word)]
