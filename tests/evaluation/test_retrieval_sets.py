import json

import pytest

from hybrid_ir.errors import BadInput, NotFound
from hybrid_ir.evaluation.sets import retrieval_sets
from hybrid_ir.evaluation.sets.questions import read_questions
from hybrid_ir.extraction.imported import ImportedExtractor
from hybrid_ir.records import Chunk
from hybrid_ir.settings import ImportedExtractorSettings

PASSAGES = [
    {"title": "Bats", "text": "Bats carry the rabies virus."},
    {"title": "Rabies virus", "text": "The rabies virus enters the nerve."},
    {"title": "Bats", "text": "Bats sleep in caves."},
]
OPENIE = [
    {
        "idx": 0,
        "title": "Bats",
        "entities": ["Bats"],
        "triples": [["Bats", "carry", "rabies virus"], ["Bats", "carry"]],
    },
    {"idx": 1, "title": "Rabies virus", "entities": [], "triples": [["rabies virus", "enters", "nerve"]]},
    {"idx": 2, "title": "Bats", "entities": ["caves"], "triples": []},
]
QUESTIONS = [
    {
        "id": "q1",
        "question": "What does the virus that bats carry enter?",
        "answer": "nerve",
        "answer_aliases": ["nerves"],
        "hops": 2,
        "decomposition": [
            {"question": "Bats >> carries", "answer": "rabies virus", "gold_idx": 0},
            {"question": "What does #1 enter?", "answer": "nerve", "gold_idx": 1},
        ],
        "gold_idx": [0, 1],
    }
]


def lines(path, rows):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))


@pytest.fixture
def small(tmp_path):
    """The form of HippoRAG's folders, small."""
    folder = tmp_path / "hipporag_musique"
    lines(folder / "openie.jsonl", OPENIE)
    lines(folder / "questions.jsonl", QUESTIONS)
    (folder / "musique_corpus.json").write_text(json.dumps(PASSAGES))
    return tmp_path


def test_a_folder_of_openie(small, tmp_path):
    found = retrieval_sets.load("musique", small)
    assert [document["id"] for document in found.documents] == ["0", "1", "2"]
    (question,) = found.questions
    assert question.gold == ("0", "1")
    assert question.aliases == ("nerves",)
    assert question.steps == ("Bats carries", "What does rabies virus enter?")
    assert found.limited(0).questions == []
    assert found.limited(None) is found
    questions, corpus, graph = found.write(tmp_path / "out")
    assert read_questions(questions) == (found.questions, [])
    assert len(corpus.read_text().splitlines()) == 3
    extractor = ImportedExtractor(ImportedExtractorSettings(kind="imported", path=str(graph)))
    piece = Chunk(id="0#0", document_id="0", position=0, title="Bats", text="x", start=0, end=1, source="s")
    (extracted,) = extractor.extract([piece])
    assert [(t.head, t.tail) for t in extracted.triples] == [("bats", "rabies virus")]


def test_what_is_missing_or_wrong_is_named(small):
    with pytest.raises(BadInput, match=r"'squad'.*musique"):
        retrieval_sets.load("squad", small)
    with pytest.raises(NotFound, match=r"pubmedqa.corpus\.jsonl: no such file.*HYBRID_IR_DATA"):
        retrieval_sets.load("pubmedqa", small)
    with pytest.raises(NotFound, match=r"hipporag_hotpotqa"):
        retrieval_sets.load("hotpotqa", small)
    with pytest.raises(NotFound, match="no such folder"):
        retrieval_sets.load("musique", small / "none")
    path = small / "hipporag_musique" / "questions.jsonl"
    path.write_text(path.read_text() + "{\n")
    with pytest.raises(BadInput, match=r"questions\.jsonl, line 2: not valid JSON"):
        retrieval_sets.load("musique", small)
    lines(path, [{"id": "q"}])
    with pytest.raises(BadInput, match=r"usual form.*question"):
        retrieval_sets.load("musique", small)


@pytest.mark.data
@pytest.mark.parametrize(
    ("name", "documents", "questions"),
    [("musique", 1890, 100), ("bc5cdr", 1500, 200), ("bc5cdr-gold", 1500, 200), ("pubmedqa", 2896, 1000)],
)
def test_the_real_sets_are_whole(data, name, documents, questions):
    found = retrieval_sets.load(name, data)
    ids = {document["id"] for document in found.documents}
    assert (len(found.documents), len(ids), len(found.questions)) == (documents, documents, questions)
    assert all(question.gold and set(question.gold) <= ids for question in found.questions)
    if found.graph is not None:
        assert {passage["document"] for passage in found.graph} == ids
