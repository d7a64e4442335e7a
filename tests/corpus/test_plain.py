from typing import Any

import pytest

from hybrid_ir.records import Document


def sections(document: Document) -> list[tuple[tuple[str, ...], str, str]]:
    return [(s.titles, s.kind, document.text[s.start : s.end]) for s in document.sections]


def test_plain_text_with_a_title_line(read_file: Any) -> None:
    (document,) = read_file("notes.txt", "\nAsthma in adults\n\nIt is common.\n\nIt is treatable.\n")
    assert (document.id, document.title) == ("corpus/notes", "Asthma in adults")
    assert sections(document) == [((), "text", "It is common.\n\nIt is treatable.")]


@pytest.mark.parametrize(
    "text", ["It is common.\n\nMore.", "One line", "First line\nsecond line", "x " * 100 + "\n\ny"]
)
def test_plain_text_without_a_title_line(read_file: Any, text: str) -> None:
    (document,) = read_file("my_notes.txt", text)
    assert document.title == "my notes"
    assert sections(document) == [((), "text", text.strip())]


def test_offsets_lead_back_into_the_file(read_file: Any) -> None:
    content = "# T\r\n\r\nα text.\r\n## Dose\r\n5 µg\r\n"
    (document,) = read_file("a.md", content)
    assert document.text == content.replace("\r\n", "\n")
    assert sections(document) == [((), "text", "α text."), (("Dose",), "text", "5 µg")]


def test_markdown_headings_nest(read_file: Any) -> None:
    (document,) = read_file(
        "a.md",
        """# Asthma

Intro.

## Drugs ##
All drugs.
### Inhaled
Budesonide.
## Dose
| drug | mg |
|------|----|
| a    | 5  |
After.
```
# no heading
| no table |
```
Results
=======
Good.

Detail
------
Fine.

---
#hashtag is text
""",
    )
    assert document.title == "Asthma"
    assert sections(document) == [
        ((), "text", "Intro."),
        (("Drugs",), "text", "All drugs."),
        (("Drugs", "Inhaled"), "text", "Budesonide."),
        (("Dose",), "table", "| drug | mg |\n|------|----|\n| a    | 5  |"),
        (("Dose",), "text", "After.\n```\n# no heading\n| no table |\n```"),
        (("Results",), "text", "Good."),
        (("Results", "Detail"), "text", "Fine.\n\n---\n#hashtag is text"),
    ]


def test_markdown_without_title_and_with_front_matter(read_file: Any) -> None:
    (document,) = read_file("a.md", "Text first.\n# Later\nMore.")
    assert document.title == "a"
    assert sections(document) == [((), "text", "Text first."), (("Later",), "text", "More.")]
    (document,) = read_file("b.md", '---\ntitle: "The guide"\ntags: x\n---\nText.\n')
    assert document.title == "The guide"
    assert sections(document) == [((), "text", "Text.")]


def test_headings_alone_are_no_text(read_file: Any) -> None:
    (error,) = read_file("a.md", "# Title\n\n## Other\n")
    assert "has no text" in error.reason


def test_same_name_in_two_folders_has_two_ids(read_file: Any) -> None:
    assert read_file("2019/report.txt", "x")[0].id == "2019/report"
    assert read_file("2020/report.txt", "x")[0].id == "2020/report"


def test_a_long_line_of_blanks_in_a_heading_is_quick(read_file: Any) -> None:
    (document,) = read_file("a.md", "# a" + " " * 200_000 + "#" * 100 + "x\ntext")
    assert document.sections
