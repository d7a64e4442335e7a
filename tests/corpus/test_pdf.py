from collections import Counter
from typing import Any

import pytest

from hybrid_ir.corpus.pdf import count_words, join_broken_words
from hybrid_ir.records import Document, ErrorRecord


def pdf(*pages: str, title: str = "", encrypted: bool = False) -> bytes:
    """A small valid PDF; an empty page has no text layer."""
    count = len(pages)
    objects = [
        "<</Type/Catalog/Pages 2 0 R>>",
        f"<</Type/Pages/Count {count}/Kids[{' '.join(f'{5 + 2 * n} 0 R' for n in range(count))}]>>",
        "<</Type/Font/Subtype/Type1/BaseFont/Helvetica>>",
        f"<</Title({title})>>",
    ]
    for number, page in enumerate(pages):
        lines = "".join(f"({line}) Tj 0 -14 Td " for line in page.split("\n"))
        content = f"BT /F1 12 Tf 50 700 Td {lines}ET" if page else ""
        objects.append(
            f"<</Type/Page/Parent 2 0 R/MediaBox[0 0 600 800]/Contents {6 + 2 * number} 0 R"
            "/Resources<</Font<</F1 3 0 R>>>>>>"
        )
        objects.append(f"<</Length {len(content)}>>stream\n{content}\nendstream")
    trailer = "/Root 1 0 R/Info 4 0 R"
    if encrypted:
        owner = "00" * 32
        objects.append(f"<</Filter/Standard/V 1/R 2/O<{owner}>/U<{owner}>/P -4>>")
        trailer += f"/Encrypt {len(objects)} 0 R/ID[<00><00>]"
    body = "%PDF-1.4\n"
    offsets = []
    for number, content in enumerate(objects, start=1):
        offsets.append(len(body))
        body += f"{number} 0 obj{content}endobj\n"
    table = "".join(f"{offset:010} 00000 n \n" for offset in offsets)
    size = len(objects) + 1
    return (
        f"{body}xref\n0 {size}\n0000000000 65535 f \n{table}"
        f"trailer<</Size {size}{trailer}>>\nstartxref\n{len(body)}\n%%EOF"
    ).encode()


def test_pages_are_sections(read_file: Any) -> None:
    (document,) = read_file("a.pdf", pdf("Aspirin helps.", "It is cheap.", title="A study of aspirin"))
    assert isinstance(document, Document)
    assert (document.id, document.title, document.locator) == ("corpus/a", "A study of aspirin", "")
    assert [(s.titles, document.text[s.start : s.end]) for s in document.sections] == [
        (("page 1",), "Aspirin helps."),
        (("page 2",), "It is cheap."),
    ]


def test_a_page_without_text_is_an_error_and_the_others_are_kept(read_file: Any) -> None:
    error, document = read_file("scan_1.pdf", pdf("Aspirin helps.", "", "It is cheap."))
    assert isinstance(error, ErrorRecord)
    assert "Page 2 of" in error.reason
    assert "no text layer" in error.reason
    assert document.title == "scan 1"
    assert [s.titles for s in document.sections] == [("page 1",), ("page 3",)]


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (pdf("", ""), "none of its 2 pages has a text layer"),
        (pdf("x", encrypted=True), "encrypted"),
        (pdf("x")[:60], "broken PDF"),
    ],
)
def test_unusable_files(read_file: Any, content: bytes, said: str) -> None:
    (error,) = read_file("a.pdf", content)
    assert isinstance(error, ErrorRecord)
    assert said in error.reason


def test_hyphenation_through_the_library(read_file: Any) -> None:
    (document,) = read_file("a.pdf", pdf("There was inflam-\nmation of the liver."))
    assert "inflammation of the liver" in document.text


@pytest.mark.parametrize(
    ("page", "joined"),
    [
        ("inflam-\nmation", "inflammation"),
        ("inflam\x02mation", "inflammation"),
        ("inflam\ufffemation", "inflammation"),
        ("inflam\u00ad\nmation", "inflammation"),
        ("IL-\n6", "IL-6"),
        ("COX-\ninhibitor", "COX-inhibitor"),
        ("Kimura-\nTakemoto", "Kimura-Takemoto"),
        ("narrow-\nband", "narrow-band"),
        ("two-\nthirds", "two-thirds"),
        ("with-\nout", "without"),
        ("5-\n10 mg", "5-10 mg"),
        ("a line -\nanother", "a line -\nanother"),
    ],
)
def test_broken_words(page: str, joined: str) -> None:
    words = count_words(["A narrow-band of two or thirds, with all, out and without. " + page])
    assert join_broken_words(page, words) == joined


def test_joining_needs_no_words() -> None:
    assert join_broken_words("x" * 100_000 + " -", Counter()) == "x" * 100_000 + " -"
