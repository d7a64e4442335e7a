"""Graphs that exist already: every form of file, bad rows, and which chunk a triple belongs to."""

import gzip
import json
import logging

import pyarrow as pa
import pytest

from hybrid_ir.errors import BadInput, NotFound
from hybrid_ir.extraction.graph_file import read_graph
from hybrid_ir.extraction.imported import ImportedExtractor
from hybrid_ir.extraction.name_finder import NameFinder
from hybrid_ir.index.manifest import Fingerprints
from hybrid_ir.records import Chunk
from hybrid_ir.settings import ImportedExtractorSettings

BATS = ("bat", "carries", "rabies virus")


def chunk(document, text, position=0, title=""):
    return Chunk(
        id=f"{document}#{position}",
        document_id=document,
        position=position,
        title=title,
        text=text,
        start=0,
        end=len(text),
        source="s",
    )


def extractor(path, **given):
    return ImportedExtractor(ImportedExtractorSettings(kind="imported", path=str(path), **given))


def triples(found):
    return [(t.head, t.relation, t.tail) for t in found.triples]


def openie(passage="Bats\nBats carry rabies.", facts=(list(BATS),), entities=("Bat",), **more):
    return {"idx": 0, "passage": passage, "extracted_entities": list(entities), "extracted_triples": list(facts)} | more


FORMS = {
    "hipporag.json": json.dumps({"docs": [openie()], "avg_ent_chars": 3.0}),
    "passages.jsonl": json.dumps(openie()) + "\n" + json.dumps(openie(passage="other")) + "\n",
    "triples.jsonl": '{"document": "d", "head": "bat", "relation": "carries", "tail": "rabies virus"}\n',
    "triples.csv": 'pmid,head,relation,tail\nd,"bat","carries","rabies virus"\n',
    "triples.tsv": "doc_id\tsubject\tpredicate\tobject\nd\tbat\tcarries\trabies virus\n",
    "chunks.csv": "chunk_id,head,relation,tail\nd#0,bat,carries,rabies virus\n",
    "array.json": json.dumps([{"document_id": "d", "triples": [BATS]}]),
}


@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize("name", FORMS)
def test_every_form_gives_the_same_triples(tmp_path, name, packed):
    path = tmp_path / (f"{name}.gz" if packed else name)
    path.write_bytes(gzip.compress(FORMS[name].encode()) if packed else FORMS[name].encode())
    (found,) = extractor(path).extract([chunk("d", "Bats carry rabies.", title="Bats")])
    assert triples(found) == [BATS]
    assert set(found.mentions) >= {"bat", "rabies virus"}


def test_what_the_corpus_does_not_hold_is_named(tmp_path):
    rows = [
        {"document_id": "d", "triples": [BATS]},
        {"document_id": "gone", "triples": [BATS]},
        {"chunk_id": "two#1", "triples": [BATS]},
        {"chunk_id": "two#2", "triples": [BATS]},
        {"passage": "Bats One half.", "triples": [BATS]},
        {"passage": "One half. The other half.", "triples": [BATS]},
        {"passage": "Neither   HALF.", "triples": [BATS]},
    ]
    path = tmp_path / "g.json"
    path.write_text(json.dumps(rows))
    two = [chunk("two", "One half.", 0, "Bats"), chunk("two", "The other half.", 1, "Bats")]
    found = extractor(path).strangers([[chunk("d", "Bats.")], [two[1], two[0]]])
    assert found == ["two#2", "gone", "neither half."]
    passages = ["bats one half.", "neither half.", "one half. the other half."]
    assert extractor(path).strangers([]) == ["two#1", "two#2", "d", "gone", *passages]


def test_bad_entries_are_left_out_and_the_first_is_named(tmp_path, caplog):
    path = tmp_path / "g.json"
    facts = [list(BATS), ["a", "b"], ["a", "b", "c", "d"], ["", "is", "x"], "no", ["x", "is", None]]
    path.write_text(json.dumps({"docs": [openie(facts=facts, entities=("Bat", 3, "virus", "nerve", "brain"))]}))
    with caplog.at_level(logging.WARNING):
        graph = read_graph(str(path), {})
    assert graph.faults == 5
    assert "docs[0], triple 1: a triple has 3 parts, this has 2 parts" in caplog.text
    assert set(graph.names()) >= {"bat", "3"}


@pytest.mark.parametrize(
    ("name", "content", "wanted"),
    [
        ("g.csv", "pmid,from,relation,tail\n1,a,b,c\n", "no column head or subject"),
        ("g.csv", "head,relation,tail\na,b,c\n", "which document states a triple"),
        ("g.csv", "pmid,head,relation,tail\n1,a,,c\n", "row 2, field relation: empty"),
        ("g.jsonl", '{"head": "a", "relation": "b", "tail": "c"}\n', "line 1: no field says which document"),
        ("g.jsonl", '{"pmid": 1, "head": "a"\n', "line 1: not valid JSON"),
        ("g.json", '{"docs": 3}', "a list `docs`"),
        ("g.json", '{"docs": [', "cannot be read as a file of triples"),
        ("g.csv", "", "no column head"),
        ("g.json.gz", gzip.compress(b'{"docs": []}', mtime=0)[:-9], "cannot be read"),
        ("g.csv", b"pmid,head,relation,tail\n1,\xff,b,c\n", "cannot be read"),
    ],
)
def test_bad_files_say_where(tmp_path, name, content, wanted):
    path = tmp_path / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    with pytest.raises(BadInput, match=r"g\.(csv|json)") as error:
        read_graph(str(path), {})
    assert wanted in str(error.value)


def test_a_missing_file_and_an_unknown_field(tmp_path):
    with pytest.raises(NotFound, match="no such file"):
        read_graph(str(tmp_path / "none.csv"), {})
    with pytest.raises(BadInput, match="there is no field 'subject'; the fields are: document"):
        read_graph(str(tmp_path / "none.csv"), {"subject": "x"})


def test_own_column_names(tmp_path):
    path = tmp_path / "g.csv"
    path.write_text("paper,a,b,c\nd,bat,carries,rabies virus\n")
    columns = {"document": "paper", "head": "a", "relation": "b", "tail": "c"}
    (found,) = extractor(path, columns=columns).extract([chunk("d", "x")])
    assert triples(found) == [BATS]


def test_triples_of_a_document_go_to_the_chunks_that_name_them(tmp_path):
    path = tmp_path / "g.jsonl"
    rows = [("bat", "carries", "rabies virus"), ("virus", "enters", "nerve"), ("Moon", "orbits", "Earth")]
    path.write_text(
        "".join(json.dumps({"document": "d", "head": h, "relation": r, "tail": t}) + "\n" for h, r, t in rows)
    )
    pieces = [chunk("d", "The nerve is long.", 1), chunk("d", "A bat has the rabies virus.", 0)]
    second, first = extractor(path).extract(pieces)
    assert triples(first) == [rows[0], rows[1], ("moon", "orbits", "earth")]  # each names one end of the second
    assert triples(second) == [rows[1]]


def test_a_passage_is_found_again_over_all_chunks_of_its_document(tmp_path):
    path = tmp_path / "g.json"
    path.write_text(json.dumps({"docs": [openie(passage="Bats\nBats carry rabies. The bat sleeps.")]}))
    found = extractor(path).extract([chunk("x", "Bats carry rabies.", 0, "Bats"), chunk("x", "The bat sleeps.", 1)])
    assert [triples(one) for one in found] == [[BATS], [BATS]]


def test_a_document_without_rows_has_no_triples_but_a_file_of_strangers_is_an_error(tmp_path):
    path = tmp_path / "g.csv"
    path.write_text("pmid,head,relation,tail\nd,bat,carries,rabies virus\n")
    known, unknown = extractor(path).extract([chunk("d", "x"), chunk("e", "y")])
    assert triples(known) == [BATS]
    assert unknown.triples == unknown.mentions == ()
    (reason,) = extractor(path).extract([chunk("e", "y")])
    assert "no triples for document 'e'" in reason
    assert "it has them for 'd'" in reason


def test_the_fingerprint_follows_the_content(tmp_path):
    path, other = tmp_path / "a.csv", tmp_path / "b.csv"
    path.write_text("pmid,head,relation,tail\nd,bat,carries,rabies virus\n")
    other.write_text(path.read_text())
    assert extractor(path).fingerprint == extractor(other).fingerprint
    other.write_text(path.read_text() + "d,a,b,c\n")
    assert extractor(path).fingerprint != extractor(other).fingerprint


def test_questions_name_the_longest_names_of_the_graph():
    finder = NameFinder(pa.array(["American Psychological Association", "association", "the", "IL-2", "β-blocker"]))
    asked = ["Who led the American psychological association?", "Is IL-2 a β-blocker?", "the"]
    assert finder.find(asked) == [("American Psychological Association",), ("IL-2", "β-blocker"), ()]


def test_questions_need_no_file():
    settings = ImportedExtractorSettings(kind="imported", path="gone.csv", mentions="names")
    opened = ImportedExtractor(settings, pa.array(["bat", "rabies virus"]), {"kind": "imported"})
    assert opened.mentions(["Does the rabies virus infect a bat?"]) == [("rabies virus", "bat")]
    assert opened.fingerprint == {"kind": "imported"}


def test_only_the_file_of_an_imported_graph_may_differ():
    def of(extractor, encoder="m"):
        return Fingerprints(extractor=extractor, chunk_encoder={"model": encoder}, entity_encoder={"model": "m"})

    old = of({"kind": "imported", "version": "1", "file": "a"})
    assert of({"kind": "imported", "version": "1", "file": "b"}).same_models(old)
    assert not of({"kind": "imported", "version": "2", "file": "a"}).same_models(old)
    assert not of({"kind": "imported", "version": "1", "file": "a"}, "n").same_models(old)
    assert not of({"kind": "rules", "file": "b"}).same_models(of({"kind": "rules", "file": "a"}))
