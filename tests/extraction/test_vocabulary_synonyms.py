"""Synonyms of the vocabularies that the installed packages carry, and of small concepts made here."""

import pytest

from hybrid_ir.extraction import synonyms
from hybrid_ir.extraction.synonyms import ENTRY, EXACT, HEADING, Synonyms
from hybrid_ir.extraction.variants import key


def test_how_sure_a_synonym_is_depends_on_both_names():
    known = Synonyms([{"type2diabetes": True, "niddm": True, "mody": False, "ketosisresistantdiabetes": False}])
    assert known.of("type 2 diabetes") == {"niddm": EXACT, "mody": HEADING, "ketosisresistantdiabetes": HEADING}
    assert known.of("MODY") == {"type2diabetes": HEADING, "niddm": HEADING, "ketosisresistantdiabetes": ENTRY}
    assert known.of("rabies") == {}


def test_the_surest_of_several_concepts_counts():
    known = Synonyms([{"a": False, "b": False}, {"a": True, "b": True}])
    assert known.of("a") == {"b": EXACT}


@pytest.fixture(scope="module")
def known():
    return synonyms.load(("diseases", "drugs", "phenotypes"))


@pytest.mark.parametrize(
    ("name", "other", "sure"),
    [
        ("Tylenol", "acetaminophen", EXACT),
        ("adrenaline", "epinephrine", EXACT),
        ("xerostomia", "dry mouth", EXACT),
        ("heart attack", "myocardial infarction", EXACT),
        ("Hives", "urticaria", HEADING),
        ("MODY", "type 2 diabetes mellitus", HEADING),
        ("estrogen replacement therapy", "estradiol", HEADING),
    ],
)
def test_synonyms_of_the_vocabularies(known, name, other, sure):
    assert known.of(name)[key(other)] == sure
    assert known.of(other)[key(name)] == sure


def test_without_vocabularies_there_are_none():
    assert synonyms.load(()).of("adrenaline") == {}
