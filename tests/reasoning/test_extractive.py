"""The extractive reasoner on a handful of notes, with a small encoder and extractor of its own."""

from __future__ import annotations

import asyncio
import time
import zlib
from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hybrid_ir.reasoning.decompose import MAX_QUERY_CHARS
from hybrid_ir.reasoning.extractive import ExtractiveReasoner
from hybrid_ir.reasoning.focus import asked_noun, focus_of
from hybrid_ir.reasoning.loop import answer
from hybrid_ir.reasoning.sentences import MAX_SENTENCES, Reader, gathered, sentences_of
from hybrid_ir.reasoning.spans import surface
from hybrid_ir.reasoning.words import content_words, stem
from hybrid_ir.records import (
    Answer,
    Chunk,
    Evidence,
    Extraction,
    LoopState,
    PathHit,
    Question,
    Retrieval,
    Round,
    SubAnswer,
    SubQuestion,
)
from hybrid_ir.roles import Query, Vectors
from hybrid_ir.settings import LoopSettings

NOTES = {
    "Cave exploration": "Cavers crawl through narrow passages. Cavers often meet bats and may be bitten.",
    "Bats": "Bats are flying mammals. Bats are the natural reservoir of rabies virus in the Americas.",
    "Rabies virus": "Rabies virus enters nerves. The motor protein dynein carries rabies virus to the spinal cord.",
    "Gout": "Gout is an arthritis caused by urate crystals. Allopurinol prevents attacks of gout.",
    "Allopurinol": "Allopurinol inhibits the enzyme xanthine oxidase. Allopurinol does not relieve an acute attack.",
    "Colchicine": "Colchicine relieves an acute attack of gout. Colchicine binds tubulin.",
    "Doxycycline": "Antacids hinder the absorption of doxycycline. Doxycycline treats Lyme disease.",
}
ENTITIES = (
    "rabies virus",
    "motor protein",
    "xanthine oxidase",
    "urate crystals",
    "spinal cord",
    "acute attack",
    "lyme disease",
    "allopurinol",
    "colchicine",
    "doxycycline",
    "tubulin",
    "antacids",
    "dynein",
    "enzyme",
    "cavers",
    "bats",
    "gout",
)


class WordEncoder:
    """Bags of stemmed words, hashed to 512 places; a real encoder, if a small one."""

    fingerprint = {"kind": "bag of words"}  # noqa: RUF012 (a constant of the test)
    dimension = 512

    def __init__(self) -> None:
        self.encoded = 0

    def _encode(self, texts: Sequence[str]) -> Vectors:
        self.encoded += len(texts)
        vectors = np.zeros((len(texts), self.dimension), np.float32)
        for row, text in enumerate(texts):
            for word in content_words(text):
                vectors[row, zlib.crc32(word.encode()) % self.dimension] += 1.0
        return vectors

    def encode_queries(self, texts: Sequence[str]) -> Vectors:
        return self._encode(texts)

    def encode_passages(self, titles: Sequence[str], texts: Sequence[str]) -> Vectors:
        return self._encode([f"{title} {text}" for title, text in zip(titles, texts, strict=True)])


class WordExtractor:
    """Finds the names of a short list."""

    fingerprint = {"kind": "list"}  # noqa: RUF012 (a constant of the test)

    def extract(self, chunks: Sequence[Chunk]) -> list[Extraction | str]:
        return [Extraction(chunk_id=c.id, mentions=self.mentions([c.text])[0]) for c in chunks]

    def mentions(self, texts: Sequence[str]) -> list[tuple[str, ...]]:
        return [tuple(name for name in ENTITIES if name in text.casefold()) for text in texts]


def chunk(title: str, text: str) -> Chunk:
    return Chunk(
        id=f"{title}#0", document_id=title, position=0, title=title, text=text, start=0, end=len(text), source="notes"
    )


CHUNKS = [chunk(title, text) for title, text in NOTES.items()]


def found(chunks: Sequence[Chunk], query: str = "q") -> Retrieval:
    return Retrieval(
        query=query,
        evidence=tuple(
            Evidence(chunk=c, score=1.0 / rank, paths={"dense": PathHit(rank=rank, score=1.0)})
            for rank, c in enumerate(chunks, start=1)
        ),
    )


class DenseRetriever:
    """Brute force over the notes."""

    def __init__(self, encoder: WordEncoder) -> None:
        self._encoder = encoder
        self._vectors = encoder.encode_passages([c.title for c in CHUNKS], [c.text for c in CHUNKS])

    async def retrieve(
        self, query: Query, k: int, paths: Sequence[str] | None = None, timeout_s: float | None = None
    ) -> Retrieval:
        scores = self._vectors @ self._encoder.encode_queries([query.text])[0]
        order = [int(index) for index in np.argsort(-scores, kind="stable")[:k] if scores[index] > 0]
        return found([CHUNKS[index] for index in order], query.text)


def ask(text: str, options: dict[str, str] | None = None, rounds: int = 3, top_k: int = 2, width: int = 3) -> Answer:
    encoder = WordEncoder()
    reasoner = ExtractiveReasoner(encoder, WordExtractor())
    question = Question(text=text, options=options or {})
    loop = LoopSettings(rounds=rounds, top_k=top_k, sub_questions=width)
    return asyncio.run(answer(question, DenseRetriever(encoder), reasoner, loop, build_id="b"))


CHAIN = "Which motor protein carries the virus whose natural reservoir are the animals that cavers meet?"


def test_open_question_over_a_chain() -> None:
    given_answer = ask(CHAIN)
    assert given_answer.short.casefold() == "dynein"
    assert given_answer.enough_evidence
    assert given_answer.reasoner == "extractive"
    assert "Rabies virus#0" in {cited.id for cited in given_answer.citations}


def test_every_statement_is_a_quotation() -> None:
    given_answer = ask(CHAIN)
    texts = {c.id: c.text for c in CHUNKS}
    statements = [
        *given_answer.statements,
        *(s for r in given_answer.rounds for a in r.sub_answers for s in a.statements),
    ]
    assert statements
    for statement in statements:
        assert all(statement.text in texts[chunk_id] for chunk_id in statement.citations)


def test_later_rounds_follow_bridges_that_the_question_does_not_name() -> None:
    question = "Which enzyme is inhibited by what prevents gout?"
    one, *later = ask(question, top_k=1, width=1).rounds
    assert [item.chunk.title for item in one.sub_answers[0].retrieval.evidence] == ["Gout"]
    bridge = later[0].sub_answers[0]
    assert bridge.sub_question.reason == "bridge: allopurinol"
    assert bridge.sub_question.entities == ("allopurinol",)
    assert bridge.sub_question.text == f"allopurinol: {question}"
    assert [item.chunk.title for item in bridge.retrieval.evidence] == ["Allopurinol"]
    assert later[0].missing == "what the corpus says about allopurinol"


def test_the_right_option_wins_whatever_its_letter() -> None:
    texts = ["Tubulin", "Xanthine oxidase", "Dynein", "Urate crystals"]
    for shift in range(4):
        options = {letter: texts[(shift + at) % 4] for at, letter in enumerate("ABCD")}
        given_answer = ask("Which enzyme does the drug that prevents attacks of gout inhibit?", options)
        assert given_answer.choice is not None
        assert options[given_answer.choice] == "Xanthine oxidase"
        assert given_answer.short == "Xanthine oxidase"


def test_an_inverted_question_takes_the_least_supported_option() -> None:
    options = {"A": "Allopurinol", "B": "Colchicine", "C": "Doxycycline"}
    assert ask("All of these are used for attacks of gout EXCEPT which?", options).choice == "C"


@pytest.mark.parametrize(
    ("text", "word"),
    [
        ("Does colchicine relieve an acute attack of gout?", "yes"),
        ("Does allopurinol relieve an acute attack?", "no"),
        ("Is the absorption of doxycycline better with antacids?", "no"),
    ],
)
def test_yes_or_no(text: str, word: str) -> None:
    assert ask(text, {"A": "yes", "B": "no"}).choice == ("A" if word == "yes" else "B")
    assert ask(text).short == word


@pytest.mark.parametrize(
    ("abstract", "verdict"),
    [
        ("Zinc was given to 80 patients. Colds were significantly shorter with zinc (p < 0.01).", "yes"),
        ("Zinc was given to 80 patients. There was no significant difference between zinc and placebo.", "no"),
        ("Zinc was given to 80 patients. Colds did not differ between the groups.", "no"),
        ("Zinc was given for colds. Whether zinc shortens colds remains unclear.", "maybe"),
    ],
)
def test_yes_or_no_from_the_results_of_a_study(abstract: str, verdict: str) -> None:
    reasoner = ExtractiveReasoner(WordEncoder(), WordExtractor())
    question = Question(text="Does zinc shorten colds in patients?", options={"A": "yes", "B": "no", "C": "maybe"})
    sub = SubAnswer(sub_question=SubQuestion(text="q"), retrieval=found([chunk("", abstract)]), statements=())
    state = LoopState(question=question, rounds=(Round(number=1, sub_answers=(sub,)),))
    assert asyncio.run(reasoner.conclude(state)).short == verdict


@pytest.mark.parametrize(
    ("question", "right"),
    [
        ("Which drug relieves an acute attack?", "B"),
        ("Which drug does not relieve an acute attack?", "A"),
        ("All of these relieve an acute attack EXCEPT which?", "A"),
    ],
)
def test_a_sentence_that_denies_an_option_speaks_against_it(question: str, right: str) -> None:
    """One note on both drugs: the words alone do not tell them apart."""
    reasoner = ExtractiveReasoner(WordEncoder(), WordExtractor())
    note = chunk("Gout", "Allopurinol does not relieve an acute attack. Colchicine does relieve an acute attack.")
    sub = SubAnswer(sub_question=SubQuestion(text="q"), retrieval=found([note]), statements=())
    asked = Question(text=question, options={"A": "Allopurinol", "B": "Colchicine"})
    state = LoopState(question=asked, rounds=(Round(number=1, sub_answers=(sub,)),))
    assert asyncio.run(reasoner.conclude(state)).choice == right


def test_a_verdict_needs_what_is_asked_in_one_sentence() -> None:
    """The corpus speaks of colchicine and never of pregnancy: a yes or no on both together would be made up."""
    assert ask("Does colchicine relieve an acute attack of gout?").enough_evidence
    unknown = ask("Is colchicine safe in pregnancy?")
    assert (unknown.short, unknown.enough_evidence) == ("", False)


def test_nothing_in_the_corpus_is_not_enough_evidence() -> None:
    for text in ("Which painter lived in Delft?", "Which gene is mutated in cystic fibrosis?"):
        given_answer = ask(text)
        assert (given_answer.short, given_answer.statements, given_answer.enough_evidence) == ("", (), False)


def test_a_sub_answer_below_the_floor_is_empty() -> None:
    reasoner = ExtractiveReasoner(WordEncoder(), WordExtractor())
    state = LoopState(question=Question(text="q"))

    def sub_answer(text: str) -> int:
        return len(asyncio.run(reasoner.answer(state, SubQuestion(text=text), found(CHUNKS))).statements)

    assert sub_answer("painters of the Dutch golden age") == 0
    assert 1 <= sub_answer("What does allopurinol inhibit?") <= 3
    assert asyncio.run(reasoner.answer(state, SubQuestion(text="gout"), found([]))).statements == ()


def first_round(question: Question, limit: int) -> tuple[SubQuestion, ...]:
    reasoner = ExtractiveReasoner(WordEncoder(), WordExtractor())
    return asyncio.run(reasoner.decompose(LoopState(question=question), limit)).sub_questions


def test_round_one_asks_the_question_its_clauses_and_all_options() -> None:
    options = {"A": "Dynein", "B": "Tubulin", "C": "Allopurinol", "D": "Antacids"}
    whole, clause, about_options = first_round(Question(text=CHAIN, options=options), 3)
    assert whole.text == CHAIN
    assert clause.text == "What is the virus whose natural reservoir are the animals that cavers meet?"
    assert all(text in about_options.text for text in options.values())
    assert about_options.entities == ("allopurinol", "tubulin", "antacids", "dynein")
    assert [sub.text for sub in first_round(Question(text=CHAIN, options=options), 1)] == [CHAIN]


def test_a_long_vignette_is_asked_by_what_it_asks() -> None:
    filler = "He lives in a small town and works in an office with two colleagues who are well. " * 40
    whole = first_round(Question(text=filler + "He was bitten by bats. Which virus is it?"), 3)[0]
    assert whole.text.endswith("He was bitten by bats. Which virus is it?")
    assert len(whole.text) <= MAX_QUERY_CHARS


def test_focus() -> None:
    focus = focus_of(Question(text="A man has gout. Which enzyme does his drug inhibit? Choose one."))
    assert focus.need == "Which enzyme does his drug inhibit?"
    assert asked_noun(focus, ("enzyme",)) == "enzyme"
    assert not focus.polar
    assert focus_of(Question(text="Can bats carry rabies?")).polar
    assert focus_of(Question(text="Is it this?", options={"A": "gout", "B": "rabies"})).polar is False
    assert focus_of(Question(text="Rabies in bats: common?", options={"A": "Yes", "B": "No", "C": "Maybe"})).polar
    assert focus_of(Question(text="Which is NOT a drug?")).inverted


def test_surface_forms() -> None:
    assert surface("Half have small-cell lung cancer.", "small cell lung carcinoma") == "small-cell lung cancer"
    assert surface("The Duffy antigen is absent.", "duffy antigen") == "Duffy antigen"
    assert surface("Nothing here.", "neoplasm") == "neoplasm"


def test_no_sub_question_crowds_out_another() -> None:
    lists = [found(CHUNKS[:3]), found(CHUNKS[3:6])]
    answers = tuple(
        SubAnswer(sub_question=SubQuestion(text=str(i)), retrieval=item, statements=()) for i, item in enumerate(lists)
    )
    state = LoopState(question=Question(text="q"), rounds=(Round(number=1, sub_answers=answers),))
    assert [item.chunk.title for item in gathered(state)] == [
        CHUNKS[i].title for pair in ((0, 3), (1, 4), (2, 5)) for i in pair
    ]


def test_sentences_are_encoded_once() -> None:
    encoder = WordEncoder()
    reader = Reader(encoder, WordExtractor())
    sentences = sentences_of(found(CHUNKS).evidence)
    first = reader.vectors(sentences)
    assert encoder.encoded == len(sentences)
    assert np.array_equal(reader.vectors(sentences[::-1]), first[::-1])
    assert encoder.encoded == len(sentences)
    assert np.allclose(np.linalg.norm(first, axis=1), 1.0)


def test_the_same_question_gives_the_same_answer() -> None:
    assert ask(CHAIN).model_dump(exclude={"seconds", "rounds"}) == ask(CHAIN).model_dump(exclude={"seconds", "rounds"})


def test_work_is_bounded() -> None:
    """A 20,000-character question against chunks of many sentences."""
    encoder = WordEncoder()
    reasoner = ExtractiveReasoner(encoder, WordExtractor())
    question = Question(
        text="Bats bite and carry rabies virus to cavers, which is bad. " * 350, options={"A": "x", "B": "y"}
    )
    big = [
        chunk(f"T{i}", " ".join(f"Sentence {j} of {i} is about rabies virus." for j in range(60))) for i in range(40)
    ]
    sub = SubAnswer(sub_question=SubQuestion(text="q"), retrieval=found(big), statements=())
    state = LoopState(question=question, rounds=(Round(number=1, sub_answers=(sub,)),))
    start = time.perf_counter()
    asyncio.run(reasoner.decompose(state, 3))
    asyncio.run(reasoner.conclude(state))
    assert encoder.encoded < MAX_SENTENCES + 200
    assert time.perf_counter() - start < 5.0


@settings(max_examples=30, deadline=None)
@given(st.text(min_size=1, max_size=300).filter(lambda text: text.strip()), st.booleans())
def test_no_text_breaks_it(text: str, options: bool) -> None:
    given_answer = ask(text, {"A": text, "B": "gout"} if options else None, rounds=2)
    assert (
        (given_answer.choice in {"A", "B"})
        or not options
        or not given_answer.rounds[0].sub_answers[0].retrieval.evidence
    )


@given(st.text(alphabet=st.characters(categories=("L", "N")), max_size=30))
def test_stem_is_a_prefix_or_swaps_an_ending(word: str) -> None:
    assert stem(word).rstrip("y") == word[: len(stem(word).rstrip("y"))]
