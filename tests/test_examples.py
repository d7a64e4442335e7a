"""The sample corpus and its questions keep the promises that examples/README.md makes."""

from __future__ import annotations

import json
import re
from collections import Counter
from itertools import pairwise
from pathlib import Path

from hybrid_ir.corpus.source import file_id

EXAMPLES = Path(__file__).parents[1] / "examples"
CORPUS = EXAMPLES / "corpus"

NOTES = {path.relative_to(CORPUS).as_posix(): path.read_text("utf-8") for path in sorted(CORPUS.rglob("*.md"))}
DOCUMENT_IDS = {file_id(str(CORPUS / name)): name for name in NOTES}
QUESTIONS = [json.loads(line) for line in (EXAMPLES / "questions.jsonl").read_text("utf-8").splitlines()]


def test_there_are_enough_notes_over_enough_topics() -> None:
    topics = Counter(name.split("/")[0] for name in NOTES)
    assert len(NOTES) >= 60
    assert len(topics) >= 10
    assert min(topics.values()) >= 5


def test_every_note_is_a_titled_short_text() -> None:
    for name, text in NOTES.items():
        assert re.match(r"# \S.*\n\n\S", text), name
        assert 80 <= len(text.split()) <= 300, name


def test_no_two_notes_get_the_same_document_id() -> None:
    assert len(DOCUMENT_IDS) == len(NOTES)


def test_the_readme_counts_right() -> None:
    readme = (EXAMPLES / "README.md").read_text("utf-8")
    assert f"{len(NOTES)} short medical notes" in readme
    assert f"{len(QUESTIONS)}\nquestions" in readme


def test_titles_are_unique() -> None:
    titles = Counter(text.splitlines()[0] for text in NOTES.values())
    assert [title for title, count in titles.items() if count > 1] == []


def test_no_note_gives_a_dose() -> None:
    dose = re.compile(r"\d\s*(?:mg|g|ml|IU|units)(?:/kg)?\b")
    assert [name for name, text in NOTES.items() if dose.search(text)] == []


def test_notes_carry_the_names_that_break_naive_tokenizers() -> None:
    everything = "\n".join(NOTES.values())
    for token in ("IL-6", "CYP2C9", "β-blocker", "HLA-B*57:01", "Na⁺/K⁺-ATPase", "µg", "CO₂", "m.1555A>G"):
        assert token in everything, token


def test_no_single_note_holds_the_whole_path_from_caves_to_the_nervous_system() -> None:
    steps = [
        r"\bcav(?:e|es|er|ers|ing)\b",
        r"\bbats?\b",
        r"\brabies\b",
        r"\bretrograde axonal transport\b",
        r"\bcentral nervous system\b",
    ]
    found = [{name for name, text in NOTES.items() if re.search(step, text, re.IGNORECASE)} for step in steps]
    assert all(found)
    assert all(first & second for first, second in pairwise(found)), "each step meets the next"
    for name in NOTES:
        assert sum(name in names for names in found) <= 2, name


def test_question_ids_are_unique() -> None:
    assert len(QUESTIONS) >= 25
    assert len({question["id"] for question in QUESTIONS}) == len(QUESTIONS)


def test_questions_are_of_the_promised_kinds() -> None:
    types = Counter(question["type"] for question in QUESTIONS)
    assert set(types) == {"open", "choice", "yesno"}
    assert types["choice"] >= 10
    assert types["yesno"] >= 5
    assert sum(question["hops"] >= 2 for question in QUESTIONS) >= 20


def test_gold_notes_exist_and_suffice_for_the_hops() -> None:
    for question in QUESTIONS:
        gold = question["gold"]
        assert gold, question["id"]
        assert len(set(gold)) == len(gold), question["id"]
        assert not set(gold) - DOCUMENT_IDS.keys(), question["id"]
        assert question["hops"] in (1, 2, 3), question["id"]
        assert len(gold) >= question["hops"], question["id"]


def test_open_answers_stand_in_a_gold_note_and_not_in_the_question() -> None:
    for question in QUESTIONS:
        if question["type"] != "open":
            continue
        assert "options" not in question, question["id"]
        accepted = [question["answer"], *question["aliases"]]
        assert any(
            answer in NOTES[DOCUMENT_IDS[document_id]] for answer in accepted for document_id in question["gold"]
        ), question["id"]
        assert not any(answer.casefold() in question["question"].casefold() for answer in accepted), question["id"]


def test_choice_answers_are_letters_of_distinct_options() -> None:
    for question in QUESTIONS:
        if question["type"] == "open":
            continue
        options = question["options"]
        assert list(options) == list("ABCDE"[: len(options)]), question["id"]
        assert len({text.casefold() for text in options.values()}) == len(options), question["id"]
        assert question["answer"] in options, question["id"]
        if question["type"] == "yesno":
            assert list(options.values()) in (["yes", "no"], ["yes", "no", "maybe"]), question["id"]
        else:
            assert len(options) >= 4, question["id"]


def test_no_letter_is_right_so_often_that_guessing_it_pays() -> None:
    for kind, limit in (("choice", 0.35), ("yesno", 0.6)):
        letters = Counter(question["answer"] for question in QUESTIONS if question["type"] == kind)
        assert max(letters.values()) <= limit * letters.total(), kind
