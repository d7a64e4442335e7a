import itertools

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hybrid_ir.corpus.assembly import TextBuilder
from hybrid_ir.corpus.chunker import chunk
from hybrid_ir.records import Document, SectionKind
from hybrid_ir.settings import ChunkerSettings


def document(*sections: tuple[str, tuple[str, ...], SectionKind]) -> Document:
    builder = TextBuilder()
    for text, titles, kind in sections:
        builder.add(text, titles, kind)
    return Document(
        id="d", title="T", text=builder.text, sections=builder.sections, source="f", locator="line 1", year=2020
    )


_PIECES = st.sampled_from(
    ["Aspirin ", "helps. ", "e.g. ", "S. aureus ", "x" * 30, "\n", "\n\n", " | ", "β-blocker? ", "5 mg. "]
)
_TEXT = st.one_of(st.lists(_PIECES, max_size=30).map("".join), st.text(max_size=60))
_SECTIONS = st.lists(
    st.tuples(
        _TEXT,
        st.sampled_from([(), ("A",), ("A", "B"), ("A", "C"), ("D",)]),
        st.sampled_from(["text", "abstract", "table", "caption"]),
    ),
    max_size=5,
)


@settings(max_examples=300, deadline=None)
@given(_SECTIONS, st.integers(1, 80), st.integers(0, 40))
def test_chunks_are_slices_of_the_text_and_cover_every_section(
    sections: list[tuple[str, tuple[str, ...], SectionKind]], max_chars: int, overlap_chars: int
) -> None:
    made = document(*sections)
    chunks = chunk(made, ChunkerSettings(max_chars=max_chars, overlap_chars=overlap_chars))
    covered: set[int] = set()
    for position, piece in enumerate(chunks):
        assert piece.text == made.text[piece.start : piece.end]
        assert piece.text == piece.text.strip() != ""
        assert len(piece.text) <= max_chars
        assert (piece.id, piece.position) == (f"d#{position}", position)
        covered.update(range(piece.start, piece.end))
    for section in made.sections:
        assert all(at in covered or made.text[at].isspace() for at in range(section.start, section.end))
    ends = [piece.end for piece in chunks]
    assert ends == sorted(set(ends)), "every chunk brings something new"
    if overlap_chars == 0:
        assert all(before.end <= after.start for before, after in itertools.pairwise(chunks))


def test_fields_come_from_the_document() -> None:
    (only,) = chunk(document(("Text here.", ("Methods", "Dose"), "text")), ChunkerSettings())
    assert (only.document_id, only.title, only.section, only.source, only.locator, only.year) == (
        "d",
        "T",
        "Methods > Dose",
        "f",
        "line 1",
        2020,
    )


def test_sentences_stay_whole() -> None:
    text = "One is here. Two is e.g. there. Three ends it."
    pieces = chunk(document((text, (), "text")), ChunkerSettings(max_chars=32))
    assert [piece.text for piece in pieces] == ["One is here. Two is e.g. there.", "Three ends it."]


def test_overlap_repeats_whole_sentences() -> None:
    text = " ".join(f"Sentence number {n} is here." for n in range(10, 20))
    pieces = chunk(document((text, (), "text")), ChunkerSettings(max_chars=90, overlap_chars=30))
    for before, after in itertools.pairwise(pieces):
        assert after.text.startswith(before.text[-27:])


def test_medrag_preset_has_its_sizes() -> None:
    text = " ".join(f"Sentence number {n} is here, and it is of a usual length." for n in range(100))
    pieces = chunk(document((text, (), "text")), ChunkerSettings(preset="medrag"))
    assert max(len(piece.text) for piece in pieces) <= 1000
    overlaps = [before.end - after.start for before, after in itertools.pairwise(pieces)]
    assert all(100 < overlap <= 200 for overlap in overlaps)


def test_an_overlong_sentence_is_cut_at_a_blank_and_an_overlong_word_anywhere() -> None:
    pieces = chunk(document(("aa bb cc dddddddd", (), "text")), ChunkerSettings(max_chars=6))
    assert [piece.text for piece in pieces] == ["aa bb", "cc", "dddddd", "dd"]


def test_tables_are_cut_between_rows() -> None:
    rows = [f"row {n} | value {n}. And more | x" for n in range(6)]
    pieces = chunk(document(("\n".join(rows), ("Table 1",), "table")), ChunkerSettings(max_chars=70))
    assert [piece.text for piece in pieces] == ["\n".join(rows[n : n + 2]) for n in (0, 2, 4)]
    assert {piece.kind for piece in pieces} == {"table"}


def test_tiny_neighbours_under_one_parent_are_joined_and_named() -> None:
    made = document(
        ("Short aim.", ("Abstract", "Aim"), "abstract"),
        ("Short method.", ("Abstract", "Method"), "abstract"),
        ("Body.", ("Intro",), "text"),
        ("Deep.", ("Intro", "Deep"), "text"),
    )
    assert [(piece.section, piece.text) for piece in chunk(made, ChunkerSettings())] == [
        ("Abstract > Aim / Method", "Short aim.\n\nShort method."),
        ("Intro", "Body."),
        ("Intro > Deep", "Deep."),
    ]


def test_long_neighbours_stay_apart() -> None:
    long = "This sentence is repeated until it is long. " * 6
    made = document((long, ("A",), "abstract"), (long, ("B",), "abstract"))
    assert [piece.section for piece in chunk(made, ChunkerSettings())] == ["A", "B"]


@pytest.mark.parametrize("size", [10, 1200])
def test_no_text_no_chunks(size: int) -> None:
    assert chunk(document(), ChunkerSettings(max_chars=size)) == []
