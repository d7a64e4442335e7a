import unicodedata

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from hybrid_ir.extraction.names import canonical
from hybrid_ir.extraction.plurals import singular


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("Rabies virus", "rabies  virus"),
        ("the rabies virus", "Rabies virus."),
        ("µ-opioid receptor", "μ-opioid receptor"),  # micro sign, Greek mu
        ("COVID–19", "COVID-19"),
        ("non‑small cell lung cancer", "Non-small cell lung cancer"),
        ("Parkinson’s disease", "parkinson's disease"),
        ("e\u0301pilepsie", "épilepsie"),
        ('"Bell\'s palsy"', "Bell's palsy"),
        ("(rabies)", "rabies"),
        ("His brother", "brother"),
        ("zero\u200bwidth", "zerowidth"),
    ],
)
def test_what_means_the_same_is_one_name(one: str, other: str) -> None:
    assert canonical(one) == canonical(other) != ""


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("CAT", "cat"),
        ("10⁵ cells", "105 cells"),
        ("IL-2", "IL-6"),
        ("α-tocopherol", "a-tocopherol"),
        ("CO₂", "CO2"),
        ("CD4+", "CD4"),
        ("Fe²⁺", "Fe³⁺"),
        ("résumé", "resume"),
        ("vitamin A", "vitamin"),
        ("5-HT2A", "5-HT2B"),
        ("TNF-α", "TNF"),
    ],
)
def test_what_differs_in_meaning_stays_apart(one: str, other: str) -> None:
    assert canonical(one) != canonical(other)


@pytest.mark.parametrize("name", ["IL-2Rα", "CAT", "CYP2C9", "NaCl", "pH", "HLA-B*57:01", "CD4+", "mRNA", "TNF-α"])
def test_case_that_carries_meaning_stays(name: str) -> None:
    assert canonical(name) == name
    assert canonical(f"the {name} level") == f"{name} level"


@pytest.mark.parametrize(
    "name", ["", "  ", "...", "—", "42", "3.5", "10 %", "1-2", "it", "They", "the", "this", "(", "\x00", "\ud800"]
)
def test_what_names_nothing_is_empty(name: str) -> None:
    assert canonical(name) == ""


@pytest.mark.parametrize("name", ["狂犬病", "бешенство", "داء الكلب", "रेबीज", "ℓ", "ß-blocker", "🦇"])
def test_scripts_are_kept(name: str) -> None:
    assert canonical(name) == name


def test_proper_names_fold_to_lower_case() -> None:
    assert canonical("Klippel-Trenaunay syndrome") == "klippel-trenaunay syndrome"
    assert canonical("Carl Rogers") == "carl rogers"
    assert canonical("O'Brien") == "o'brien"


@given(st.text(max_size=40))
@example("İ")
@example("a 's")
@example("the a (this)")
def test_idempotent_and_normal(name: str) -> None:
    once = canonical(name)
    assert canonical(once) == once
    assert unicodedata.normalize("NFC", once) == once
    assert once == " ".join(once.split())


@pytest.mark.parametrize(
    "word",
    """diabetes rabies scabies pancreatitis series species herpes measles ascites sepsis analysis virus abscess
    bias pancreas genetics pharmacokinetics lupus pus lens caries""".split(),
)
def test_words_that_only_look_plural(word: str) -> None:
    assert singular(word) == word


@pytest.mark.parametrize(
    ("plural", "one"),
    [
        ("bats", "bat"),
        ("antibodies", "antibody"),
        ("antibiotics", "antibiotic"),
        ("metastases", "metastasis"),
        ("diagnoses", "diagnosis"),
        ("kinases", "kinase"),
        ("diseases", "disease"),
        ("viruses", "virus"),
        ("foxes", "fox"),
        ("abscesses", "abscess"),
        ("carcinomas", "carcinoma"),
        ("mice", "mouse"),
        ("bacteria", "bacterium"),
        ("responses", "response"),
        ("hypotheses", "hypothesis"),
        ("arthritides", "arthritis"),
        ("doses", "dose"),
        ("causes", "cause"),
        ("areas", "area"),
    ],
)
def test_plurals(plural: str, one: str) -> None:
    assert singular(plural) == one


@given(st.text(alphabet="aceiosty", max_size=10))
def test_no_word_is_lost(word: str) -> None:
    assert bool(singular(word)) == bool(word)
