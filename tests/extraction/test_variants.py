"""Spellings of one name meet; different names do not."""

import string

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hybrid_ir.extraction.names import canonical
from hybrid_ir.extraction.variants import alike, designators, key, may_be_same, opposed, same_case


@pytest.mark.parametrize(
    "spellings",
    [
        ("IL-2", "IL2", "il 2", "IL‐2"),
        ("TNF-α", "TNF alpha", "TNFα", "tnf-alpha"),
        ("β-blocker", "beta-blockers", "beta blocker", "betablockers"),
        ("haemoglobin", "hemoglobin"),
        ("oestrogen", "estrogen"),
        ("tumours", "tumor", "Tumour"),
        ("diarrhoea", "diarrhea"),
        ("leucocyte", "leukocytes"),
        ("sulphonamide", "sulfonamides"),
        ("type II diabetes", "type 2 diabetes", "Type-2 diabetes"),
        ("factor VIII", "factor 8"),
        ("Sjögren's syndrome", "Sjogren syndrome"),
        ("CO₂", "CO2"),
        ("Ca²⁺", "Ca2+"),
        ("SSRIs", "SSRI"),
        ("metastases", "metastasis"),
        ("X-ray", "x ray", "xrays"),
        ("vitamin B 12", "vitamin B12"),
        ("HLA-B*57:01", "HLA-B57:01"),
    ],
)
def test_spellings_of_one_name_meet(spellings):
    assert len({key(spelling) for spelling in spellings}) == 1


@pytest.mark.parametrize(
    "names",
    [
        ("IL-2", "IL-12", "IL-1 2", "IL-6"),
        ("CD4", "CD4+", "CD4-"),
        ("10⁵", "105"),
        ("1,25-dihydroxyvitamin D", "125-dihydroxyvitamin D"),
        ("ACLS", "ACL"),
        ("TNF-α", "TNF-β", "TNF"),
        ("factor V", "factor X"),
        ("hypokalaemia", "hyperkalaemia"),
        ("脳炎", "脳"),
        ("हिन्दी", "हिन्दू"),
    ],
)
def test_different_names_stay_apart(names):
    assert len({key(name) for name in names}) == len(names)


@given(st.text(max_size=40))
def test_a_key_is_a_key_of_the_canonical_name_or_of_nothing(text):
    folded = key(text)
    assert folded == key(text)
    assert "  " not in folded
    assert isinstance(designators(text), frozenset)
    assert may_be_same(text, text)
    name = canonical(text)
    assert key(f"  {name} ") == key(name)


@given(st.lists(st.text(string.ascii_lowercase, min_size=1, max_size=8), min_size=1, max_size=4), st.data())
def test_hyphens_and_spaces_never_matter_between_letters(words, data):
    joins = [data.draw(st.sampled_from(["-", " "])) for _ in words[1:]]
    other = words[0] + "".join(join + word for join, word in zip(joins, words[1:], strict=True))
    if not any(word in ("type", "factor", "class", "group", "phase", "stage", "grade", "nerve") for word in words):
        assert key(other) == key(" ".join(words))


def test_case_tells_apart_only_what_is_an_english_word():
    assert same_case("hiv", "HIV")
    assert same_case("RABIES", "rabies")
    assert not same_case("cat", "CAT")
    assert not same_case("CAT", "cat")
    assert same_case("Cat", "cat")


@pytest.mark.parametrize(
    ("mention", "entity"),
    [
        ("IL-2", "IL-6"),
        ("hepatitis B", "hepatitis C"),
        ("hepatitis B virus", "hepatitis virus"),
        ("type I collagen", "type II collagen"),
        ("TNF-α", "TNF-β"),
        ("vitamin K", "vitamin D"),
        ("B-cell lymphoma", "T-cell lymphoma"),
        ("severe hypokalaemia", "hyperkalemia"),
        ("tachycardia", "bradycardia"),
        ("H2 receptor agonists", "H2 receptor antagonist"),
        ("acute pancreatitis", "chronic pancreatitis"),
        ("Hodgkin lymphoma", "non-Hodgkin lymphoma"),
        ("adenosine triphosphate", "adenosine diphosphate"),
        ("PAH", "PAP"),
        ("CFCs", "COCs"),
        ("TPO antibody", "TSH receptor antibody"),
    ],
)
def test_siblings_and_contraries_are_not_the_same(mention, entity):
    assert not may_be_same(mention, entity)
    assert not may_be_same(entity, mention)


@pytest.mark.parametrize(
    ("mention", "entity"),
    [
        ("E. coli", "Escherichia coli"),
        ("(R)-warfarin", "warfarin"),
        ("L-DOPA", "dopa"),
        ("Parkinson's disease", "parkinson disease"),
        ("virus of rabies", "rabies virus"),
        ("type II diabetes", "diabetes of type 2"),
        ("hypertension", "arterial hypertension"),
        ("HIV", "HIV infection"),
        ("HIV infection", "infection"),
        ("NSAIDs", "NSAID use"),
        ("Which drug did the 65-year-old man take for his high blood pressure?", "blood pressure"),
    ],
)
def test_other_words_for_one_thing_may_be_the_same(mention, entity):
    assert may_be_same(mention, entity)


def test_contraries_need_the_same_stem():
    assert opposed("hypoglycaemia", "hyperglycemia")
    assert not opposed("hypoglycaemia", "hyperkalaemia")
    assert not opposed("hypothyroidism", "hypothyroidism and hyperthyroidism")


def test_alike_are_names_that_share_a_word_or_most_letters():
    assert alike("tobramicyn", "tobramycin")
    assert alike("viral hepatitis", "hepatitis of bats")
    assert alike("diabetic", "diabetes")
    assert not alike("cystitis", "gastritis")
    assert not alike("burkitt", "bupropion")
