from hypothesis import given
from hypothesis import strategies as st

from hybrid_ir.corpus.revisions import resolve
from hybrid_ir.records import Deletion, Document, Section


def document(identity: str, text: str, source: str = "a.jsonl", locator: str = "line 1", revision: int = 0) -> Document:
    sections = (Section(start=0, end=len(text)),)
    return Document(id=identity, text=text, sections=sections, source=source, locator=locator, revision=revision)


def pubmed(text: str, file: str, record: int = 1, version: int = 1) -> Document:
    return document("7", text, file, f"record {record}, PMID 7", version)


def test_equal_content_is_folded_without_a_word() -> None:
    kept, errors = resolve([document("1", "x", "b.jsonl"), document("1", "x", "a.jsonl")])
    assert [(d.id, d.source) for d in kept] == [("1", "a.jsonl")]
    assert errors == []


def test_different_content_is_an_error_that_names_both_files() -> None:
    kept, errors = resolve([document("1", "y", "b.jsonl"), document("1", "x", "a.jsonl", "line 9")])
    assert [d.text for d in kept] == ["x"]
    assert len(errors) == 1
    assert errors[0].subject == "1"
    assert "a.jsonl, line 9 is kept" in errors[0].reason
    assert "b.jsonl, line 1 is left out" in errors[0].reason


def test_line_10_comes_after_line_9() -> None:
    kept, _ = resolve([document("1", "ten", locator="line 10"), document("1", "nine", locator="line 9")])
    assert kept[0].text == "nine"


def test_a_later_pubmed_file_revises_an_earlier_one_silently() -> None:
    kept, errors = resolve([pubmed("new", "updates/pubmed24n1220.xml.gz"), pubmed("old", "z/pubmed24n0001.xml.gz")])
    assert [d.text for d in kept] == ["new"]
    assert errors == []


def test_the_last_of_two_in_one_file_counts_and_a_higher_version_before_all() -> None:
    kept, _ = resolve([pubmed("b", "n1.xml", 10), pubmed("a", "n1.xml", 9)])
    assert kept[0].text == "b"
    kept, _ = resolve([pubmed("v2", "n1.xml", version=2), pubmed("v1", "n2.xml", version=1)])
    assert kept[0].text == "v2"


def test_a_deletion_removes_what_came_before_it_and_not_what_comes_later() -> None:
    gone = Deletion(id="7", source="n2.xml", revision=1)
    assert resolve([gone, pubmed("old", "n1.xml"), pubmed("same file", "n2.xml")]) == ([], [])
    assert [d.text for d in resolve([gone, pubmed("back", "n3.xml")])[0]] == ["back"]
    assert resolve([gone]) == ([], [])


def test_sorted_by_id() -> None:
    assert [d.id for d in resolve([document("b", "x"), document("a", "x"), document("10", "x")])[0]] == ["10", "a", "b"]


_RECORDS = st.one_of(
    st.builds(
        document,
        st.sampled_from("12"),
        st.sampled_from("xyz"),
        st.sampled_from(["a.xml", "b.xml"]),
        st.sampled_from(["line 1", "line 2", "line 10"]),
        st.integers(0, 2),
    ),
    st.builds(
        Deletion, id=st.sampled_from("12"), source=st.sampled_from(["a.xml", "b.xml"]), revision=st.integers(1, 2)
    ),
)


@given(st.lists(_RECORDS, max_size=8).flatmap(lambda records: st.tuples(st.just(records), st.permutations(records))))
def test_the_order_of_records_does_not_matter(
    both: tuple[list[Document | Deletion], list[Document | Deletion]],
) -> None:
    assert resolve(both[0]) == resolve(both[1])
