import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hybrid_ir.text import sentence_spans


def sentences(text: str) -> list[str]:
    return [text[start:end] for start, end in sentence_spans(text)]


@pytest.mark.parametrize(
    "text",
    [
        "Drugs that prolong QT, e.g. Haloperidol, were stopped.",
        "One kinase, i.e. JAK2, was mutated.",
        "Aspirin vs. Placebo was compared.",
        "See Fig. 2 and Figs. 3A for details.",
        "Dr. Smith and Prof. Jones agreed.",
        "Reported by Smith et al. 2004 in rats.",
        "Reported by Smith et al. (2004) in rats.",
        "It took approx. 5 min in all.",
        "Colonies of S. aureus and E. coli grew.",
        "This was written by J. Smith and K. L. Jones.",
        "The effect was clear (p = 0.05) at 2.5 mg daily.",
        "Salmonella enterica subsp. enterica was found.",
        "Study No. 5 was closed.",
        "It ran from Jan. 1, 1999 on.",
        "1. Introduction of the method.",
        "He was given 5 mg i.v. twice.",
        "The U.S. Food and Drug Administration approved it.",
        "Tissue was lysed etc. and stored.",
    ],
)
def test_one_sentence_stays_whole(text: str) -> None:
    assert sentences(text) == [text]


@pytest.mark.parametrize(
    "parts",
    [
        ["Aspirin inhibits COX-1.", "It is an NSAID."],
        ["P was 0.05.", "The dose was 2.5 mg.", "No effect."],
        ["Is it safe?", "Yes!", "it is."],
        ["She had hepatitis B.", "The liver was enlarged."],
        ["β-blockers help.", "β-agonists do not."],
        ["Levels fell.", "mRNA was stable.", "p53 rose."],
        ["It worked (Fig. 2).", "(Data not shown.)", "Then it stopped."],
        ['He said "stop."', "We did."],
        ["It took 5 h.", "We waited."],
        ["患者服用阿司匹林。", "疼痛缓解。"],
    ],
)
def test_sentences_are_told_apart(parts: list[str]) -> None:
    assert sentences(" ".join(parts)) == parts


def test_chinese_needs_no_blank() -> None:
    assert sentences("患者服用阿司匹林。疼痛缓解！") == ["患者服用阿司匹林。", "疼痛缓解！"]


def test_blank_line_ends_a_sentence_and_a_line_end_does_not() -> None:
    assert sentences("  A heading\n \nThe text goes\non here. And\nends.\n") == [
        "A heading",
        "The text goes\non here.",
        "And\nends.",
    ]


def test_nothing_in_nothing() -> None:
    assert sentence_spans("") == []
    assert sentence_spans(" \n\t\n ") == []


_PIECES = st.sampled_from(
    [
        "The ",
        "cat",
        "S. ",
        "e.g. ",
        "3.5",
        ". ",
        ".",
        "?",
        "! ",
        "\n",
        "\n\n",
        " ",
        '"',
        ")",
        "β",
        "µg ",
        "。",
        "\u2003",
    ]
)


@given(st.one_of(st.text(), st.lists(_PIECES).map("".join)))
def test_spans_are_ordered_stripped_and_cover_all(text: str) -> None:
    spans = sentence_spans(text)
    at = 0
    for start, end in spans:
        assert at <= start < end <= len(text)
        assert text[at:start].strip() == ""
        assert text[start:end] == text[start:end].strip()
        at = end
    assert text[at:].strip() == ""


@pytest.mark.parametrize(
    "text",
    [("x" * 60 + ". ") * 20_000, "." * 1_000_000, "! " * 300_000, "a. " * 300_000, "\n" * 1_000_000, "x" * 3_000_000],
)
def test_a_megabyte_of_anything_is_quick(text: str) -> None:
    started = time.perf_counter()
    sentence_spans(text)
    assert time.perf_counter() - started < 5
