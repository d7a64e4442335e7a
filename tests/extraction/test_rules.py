import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from hybrid_ir.errors import BadInput
from hybrid_ir.extraction.load import load
from hybrid_ir.extraction.names import canonical
from hybrid_ir.extraction.parse import load_pipeline
from hybrid_ir.extraction.rules import RuleExtractor
from hybrid_ir.extraction.vocabulary import key_of
from hybrid_ir.records import Chunk, Extraction
from hybrid_ir.settings import RuleExtractorSettings

DATA = Path(os.environ.get("HYBRID_IR_DATA", Path(__file__).parents[2] / "../shared/data"))


@pytest.fixture(scope="session")
def extractor() -> RuleExtractor:
    return RuleExtractor(RuleExtractorSettings())


def chunk(text: str, title: str = "", position: int = 0) -> Chunk:
    return Chunk(
        id=f"d#{position}",
        document_id="d",
        position=position,
        title=title,
        text=text,
        start=0,
        end=len(text),
        source="f",
    )


def facts(extractor: RuleExtractor, text: str, title: str = "") -> set[tuple[str, str, str]]:
    result = extractor.extract([chunk(text, title)])[0]
    assert isinstance(result, Extraction), result
    return {(t.head, t.relation, t.tail) for t in result.triples}


def mentions(extractor: RuleExtractor, text: str, title: str = "") -> tuple[str, ...]:
    result = extractor.extract([chunk(text, title)])[0]
    assert isinstance(result, Extraction), result
    return result.mentions


@pytest.mark.parametrize(
    ("text", "fact"),
    [
        ("Bats, foxes and raccoons carry rabies virus.", ("raccoon", "carries", "rabies virus")),
        ("Rabies is transmitted by the bites of infected animals.", ("rabies", "is transmitted by", "bite")),
        ("Fluconazole is a potent inhibitor of CYP2C9.", ("fluconazole", "is inhibitor of", "CYP2C9")),
        ("Quinine is used for the treatment of malaria.", ("quinine", "is used for treatment of", "malaria")),
        ("Metformin does not cause hypoglycaemia.", ("metformin", "does not cause", "hypoglycemia")),
        ("Venlafaxine hardly inhibits CYP2D6.", ("venlafaxine", "hardly inhibits", "CYP2D6")),
        ("Antibiotics such as amoxicillin may cause rash.", ("amoxicillin", "is a", "antibiotic")),
        ("Antibiotics such as amoxicillin may cause rash.", ("antibiotic", "may cause", "rash")),
        ("Lidocaine-induced asystole was reported.", ("lidocaine", "induces", "asystole")),
        (
            "Iodide transport defect (ITD) is rare.",
            ("iodide transport defect", "is also called", "ITD"),
        ),
        ("The allele that carriers of HLA-B*57:01 have is common.", ("carrier", "of", "HLA-B*57:01")),
        ("Rifampicin induces CYP3A4 and lowers warfarin levels.", ("rifampin", "induces", "CYP3A4")),
        ("Ticks, which transmit Borrelia burgdorferi, live in forests.", ("tick", "transmits", "borrelia burgdorferi")),
        ("Carl Rogers developed person-centered therapy.", ("carl rogers", "develops", "person-centered therapy")),
    ],
)
def test_a_sentence_gives_the_fact(extractor: RuleExtractor, text: str, fact: tuple[str, str, str]) -> None:
    assert fact in facts(extractor, text)


@pytest.mark.parametrize("text", ["Metformin does not cause hypoglycaemia.", "Metformin never causes hypoglycaemia."])
def test_a_negated_fact_is_never_asserted(extractor: RuleExtractor, text: str) -> None:
    assert not {f for f in facts(extractor, text) if f[1] == "causes"}


def test_a_pronoun_stands_for_the_subject_before(extractor: RuleExtractor) -> None:
    found = facts(extractor, "Fluconazole is an antifungal drug. It inhibits CYP2C9.")
    assert ("fluconazole", "inhibits", "CYP2C9") in found


def test_a_note_that_leaves_its_subject_out_speaks_of_its_title(extractor: RuleExtractor) -> None:
    assert ("rabies", "causes", "paralysis") in facts(extractor, "Causes paralysis.", title="Rabies")


def test_the_title_is_a_mention_of_every_chunk(extractor: RuleExtractor) -> None:
    assert "lead poisoning" in mentions(extractor, "Succimer helps.", title="Lead poisoning")
    assert "journal of physics" in mentions(extractor, "It is published monthly.", title="Journal of Physics")


def test_long_phrases_also_give_their_head_compound(extractor: RuleExtractor) -> None:
    assert {"lead poisoning", "acute lead poisoning"} <= set(
        mentions(extractor, "The child had severe acute lead poisoning.")
    )


def test_two_modifiers_name_two_things(extractor: RuleExtractor) -> None:
    assert {"pleural effusion", "pericardial effusion"} <= set(
        mentions(extractor, "The scan showed pleural and pericardial effusions.")
    )


def test_plurals_and_synonyms_meet_under_one_name(extractor: RuleExtractor) -> None:
    assert "bat" in mentions(extractor, "Most bats sleep by day.")
    brand, generic = extractor.mentions(["Does Tylenol harm the liver?", "Is paracetamol harmful to the liver?"])
    assert {"acetaminophen", "liver"} <= set(brand) & set(generic)
    assert "myocardial infarction" in mentions(extractor, "He survived two heart attacks.")


def test_entry_terms_that_mean_less_than_their_heading_keep_their_name(extractor: RuleExtractor) -> None:
    names = mentions(extractor, "MODY is rare. Estrogen replacement therapy helped.")
    assert "MODY" in names
    assert "estrogen replacement therapy" in names
    assert "estradiol" not in names


@pytest.mark.parametrize("word", ["others", "can", "may", "left", "right", "water", "patient", "mild", "frequent"])
def test_ordinary_words_are_no_terms(extractor: RuleExtractor, word: str) -> None:
    assert extractor._vocabulary.name(word) is None


def test_empty_words_are_no_mentions(extractor: RuleExtractor) -> None:
    text = "In this study the results of 40 patients (p < 0.05, 12%) in 1963 were compared. It was a good thing."
    assert mentions(extractor, text) == ()


def test_names_in_general_text(extractor: RuleExtractor) -> None:
    names = mentions(extractor, "Jan Solovej left the University of Copenhagen in 1997 for Oslo.")
    assert {"jan solovej", "university of copenhagen", "copenhagen", "oslo"} <= set(names)
    assert "1997" not in names


def test_a_question_names_its_entities_in_order(extractor: RuleExtractor) -> None:
    question = "Which drug that inhibits CYP2C9 increases the effect of warfarin in patients with malaria?"
    assert extractor.mentions([question, "What is it?"]) == [("CYP2C9", "warfarin", "malaria"), ()]


@pytest.mark.parametrize(
    "text",
    [
        "",
        " \n",
        "\x00\x01\x02",
        "a" * 40_000,
        "🦇" * 500,
        "狂犬病由病毒引起。",
        "داء الكلب",
        "(" * 3000,
        "A, " * 3000,
        "\ud800 rabies",
    ],
)
def test_garbage_gives_an_extraction(extractor: RuleExtractor, text: str) -> None:
    assert isinstance(extractor.extract([chunk(text, title=text[:50])])[0], Extraction)
    assert len(extractor.mentions([text])) == 1


def test_a_text_too_long_costs_itself_alone(extractor: RuleExtractor) -> None:
    long, short = extractor.extract([chunk("rabies " * 20_000), chunk("Bats carry rabies.")])
    assert isinstance(long, str)
    assert "max_chars" in long
    assert isinstance(short, Extraction)
    assert short.triples


def test_a_failing_chunk_costs_itself_alone(extractor: RuleExtractor, monkeypatch: pytest.MonkeyPatch) -> None:
    find = extractor._vocabulary.find

    def fail_on_foxes(text: str) -> object:
        if "foxes" in text:
            raise RuntimeError("boom")
        return find(text)

    monkeypatch.setattr(extractor._vocabulary, "find", fail_on_foxes)
    bad, good = extractor.extract([chunk("Red foxes run."), chunk("Bats carry rabies.")])
    assert isinstance(bad, str)
    assert "boom" in bad
    assert isinstance(good, Extraction)


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.text(max_size=200), st.text(max_size=30))
def test_any_text_gives_clean_names_and_the_same_twice(extractor: RuleExtractor, text: str, title: str) -> None:
    first, second = extractor.extract([chunk(text, title), chunk(text, title)])
    assert isinstance(first, Extraction)
    assert first == second
    assert len(set(first.mentions)) == len(first.mentions)
    assert all(canonical(name) == name != "" for name in first.mentions)
    for triple in first.triples:
        assert triple.head in first.mentions
        assert triple.tail in first.mentions
        assert triple.head != triple.tail
        assert triple.relation == triple.relation.lower()
    assert len(set(first.triples)) == len(first.triples)


def test_batches_do_not_change_the_result(extractor: RuleExtractor) -> None:
    chunks = [
        chunk("Bats carry rabies.", "Rabies"),
        chunk("It is deadly.", "Rabies"),
        chunk("Ticks bite.", "Lyme disease"),
    ]
    assert extractor.extract(chunks) == [extractor.extract([c])[0] for c in chunks]


def test_the_fingerprint_names_what_the_output_depends_on(extractor: RuleExtractor) -> None:
    fingerprint = extractor.fingerprint
    assert {"kind", "rules", "pipeline", "spacy", "diseases", "drugs", "phenotypes"} == set(fingerprint)
    assert all(any(c.isdigit() for c in value) for key, value in fingerprint.items() if key != "kind")
    meta = load_pipeline(RuleExtractorSettings().spacy_package).meta
    assert fingerprint["pipeline"] == f"{meta['lang']}_{meta['name']} {meta['version']}"


def test_the_fingerprint_is_read_without_loading_a_model() -> None:
    program = (
        "import sys; from hybrid_ir.extraction.load import load; from hybrid_ir.settings import RuleExtractorSettings\n"
        "assert load(RuleExtractorSettings()).fingerprint['pipeline'] and 'spacy' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", program], check=True)


def test_settings_that_cannot_be_met_say_so() -> None:
    with pytest.raises(BadInput, match="astrology"):
        load(RuleExtractorSettings(vocabularies=("astrology",)))
    with pytest.raises(BadInput, match="no_such_pipeline"):
        load(RuleExtractorSettings(vocabularies=(), spacy_package="no_such_pipeline"))


@pytest.mark.data
@pytest.mark.slow
def test_mentions_cover_the_gold_mentions_of_bc5cdr(extractor: RuleExtractor) -> None:
    path = DATA / "bc5cdr" / "docs.jsonl"
    if not path.exists():
        pytest.skip(f"{path} is missing: set HYBRID_IR_DATA")
    gold = covered = 0
    with path.open(encoding="utf-8") as lines:
        documents = [json.loads(line) for _, line in zip(range(80), lines, strict=False)]
    results = extractor.extract([chunk(d["abstract"], d["title"]) for d in documents])
    for document, result in zip(documents, results, strict=True):
        assert isinstance(result, Extraction)
        keys = {key_of(name) for name in result.mentions}
        for text in {entity[2] for entity in document["entities"]}:
            gold += 1
            covered += key_of(text) in keys or extractor._vocabulary.name(text) in result.mentions
    assert covered / gold > 0.78
