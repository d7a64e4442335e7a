"""What people type that is no query, on a real small index: each has a defined end, in bounded time."""

import json
import time

import pytest

from hybrid_ir.api import HybridIR
from hybrid_ir.errors import BadInput, NotFound
from hybrid_ir.index import manifest
from hybrid_ir.opened import Index
from hybrid_ir.records import Filter
from hybrid_ir.roles import Query
from hybrid_ir.settings import FusionSettings, Settings
from hybrid_ir.store import Store

pytestmark = [pytest.mark.slow, pytest.mark.cluster]  # the index is made by the real job

ALL = ["graph", "dense", "sparse"]
SECONDS = 60
"""Far more than any of this takes, far less than what grows with the square of the query."""


@pytest.fixture(scope="module")
def ir(sample_root):
    import hybrid_ir

    return hybrid_ir.open(sample_root)


@pytest.mark.parametrize("query", ["", "   ", "\n\t"])
def test_an_empty_query_is_refused(ir, query):
    with pytest.raises(BadInput, match="query is empty"):
        ir.retrieve(query, paths=ALL)


@pytest.mark.parametrize("query", ["what is it", "the of and", "?!", "🤒"])
def test_without_a_word_that_counts_the_sparse_list_is_empty_and_the_others_serve(ir, query):
    found, why = ir.compare(query, 3, ALL, explain="rabies/bats#0")
    assert len(found.retrieval.evidence) == 3
    assert found.retrieval.degraded == ()
    assert all("sparse" not in item.paths for item in found.retrieval.evidence)
    assert why.sparse.terms == ()
    assert why.sparse.rank is None
    assert ir.retrieve(query, 3, ["sparse"]).evidence == ()


@pytest.mark.parametrize("words", ["warfarin ", "rabies virus in the brain of bats ", "日本", "a-b"])
def test_ten_thousand_words_take_bounded_time(ir, words):
    query = words * (10_000 // max(len(words.split()), 1))
    start = time.monotonic()
    found = ir.retrieve(query, 5, ALL)
    assert time.monotonic() - start < SECONDS
    assert found.degraded == ()
    assert len(found.evidence) == 5


@pytest.mark.parametrize(
    "query",
    [
        "狂犬病病毒如何到达大脑?",
        "كيف يصل فيروس داء الكلب إلى الدماغ؟",
        "Wie erreicht das Tollwutvirus das Gehirn?",
        "हृदय की दवा",
        "Как вирус бешенства достигает мозга?",
        "\ud83d half a pair",
        "nul \x00 byte",
    ],
)
def test_another_language_is_ranked_by_meaning(ir, query):
    found = ir.retrieve(query, 5, ALL)
    assert found.degraded == ()
    assert len(found.evidence) == 5
    assert any("dense" in item.paths for item in found.evidence)


@pytest.mark.parametrize("k", [0, -1, -(10**9)])
def test_fewer_than_one_chunk_cannot_be_asked_for(ir, k):
    with pytest.raises(BadInput, match=f"k is {k}; ask for at least 1"):
        ir.retrieve("bats", k)


@pytest.mark.parametrize("path", ALL)
def test_more_than_the_corpus_brings_what_there_is(ir, path):
    whole = len(ir.index.chunks)
    found = ir.retrieve("rabies virus", 10**9, [path]).evidence
    assert 0 < len(found) <= whole
    assert [item.paths[path].rank for item in found] == sorted(item.paths[path].rank for item in found)


def test_paths_that_do_not_exist(ir, sample_root):
    with pytest.raises(BadInput, match="lexical; this index has: graph, dense, sparse"):
        ir.retrieve("bats", 3, ["dense", "lexical"])
    with pytest.raises(BadInput, match="none named"):
        ir.retrieve("bats", 3, [])
    store = Store(sample_root)
    made = manifest.read(store).model_copy(update={"sparse": None})
    without = HybridIR(Index(store, made, Settings(build=made.settings, fusion=FusionSettings(paths=ALL))))
    with pytest.raises(BadInput, match="Unknown path sparse; this index has: graph, dense"):
        without.retrieve("bats", 3, ["sparse"])
    found = without.retrieve("bats", 3)
    assert len(found.evidence) == 3
    assert found.seconds.keys() == {"graph", "dense"}
    with pytest.raises(NotFound, match=r"build\.sparse\.enabled"):
        without.index.sparse_path.rank_now(Query(text="bats"), 3)


def test_the_sparse_path_finds_by_words_and_keeps_to_the_filter(ir):
    path = ir.index.sparse_path
    free = path.rank_now(Query(text="rabies virus in bats"), 50)
    best = ir.index.chunks.by_number(free.chunks[0])
    assert best.document_id == "rabies/bats"
    only = Filter(document_ids=(ir.index.chunks.by_number(free.chunks[2]).document_id,))
    kept = path.rank_now(Query(text="rabies virus in bats", filter=only), 50)
    assert kept.chunks == tuple(n for n in free.chunks if ir.index.chunks.by_number(n).document_id in only.document_ids)
    assert kept.scores == tuple(s for n, s in zip(free.chunks, free.scores, strict=True) if n in kept.chunks)
    nothing = Filter(document_ids=("no such document",))
    assert path.rank_now(Query(text="rabies", filter=nothing), 50).chunks == ()


def test_the_comparison_shows_every_paths_own_first_k_and_the_explanation_adds_up(ir):
    k = 4
    found, why = ir.compare("How does rabies virus of bats reach the brain?", k, explain="rabies/bats#0")
    assert found.fused == ("graph", "dense")
    assert found.shown == ("graph", "dense", "sparse")
    alone = {path: ir.retrieve(found.retrieval.query, 10, [path]) for path in found.shown}
    for path, own in alone.items():
        first = {item.chunk.id: item.paths[path].rank for item in own.evidence if item.paths[path].rank <= k}
        shown = {row.chunk.id: row.paths[path].rank for row in found.chunks if path in row.paths}
        assert first.items() <= shown.items()
    together = ir.retrieve(found.retrieval.query, k).evidence
    assert [row.chunk.id for row in found.chunks[:k]] == [item.chunk.id for item in together]
    assert [row.place for row in found.chunks] == [1, 2, 3, 4] + [None] * (len(found.chunks) - k)

    row = next(row for row in found.chunks if row.chunk.id == "rabies/bats#0")
    assert why.fused.place == row.place
    assert why.fused.score == pytest.approx(together[row.place - 1].score)
    assert why.dense.similarity == pytest.approx(row.paths["dense"].score, abs=1e-4)
    assert why.sparse.score == pytest.approx(row.paths["sparse"].score, rel=1e-4)
    assert why.graph.score == pytest.approx(row.paths["graph"].score)
    assert {"bat", "rabies"} <= {seed.entity for seed in why.graph.seeds}
    assert why.graph.mentions[0].score == max(mention.score for mention in why.graph.mentions)
    assert [chain.weight for chain in why.graph.chains] == sorted((c.weight for c in why.graph.chains), reverse=True)
    named = {mention.entity for mention in why.graph.mentions}
    for chain in why.graph.chains:
        assert chain.seed in {seed.entity for seed in why.graph.seeds}
        for triple in chain.triples:
            assert triple.relation == "equivalent" or ir.chunk(triple.chunk_id)
    assert named & {chain.entity for chain in why.graph.chains}
    with pytest.raises(NotFound, match="no-such#0"):
        ir.compare("bats", 3, explain="no-such#0")


def test_the_command_prints_it_in_100_columns_and_as_json(sample_root, capsys, monkeypatch):
    from hybrid_ir import cli

    def run(*arguments):
        monkeypatch.setattr("sys.argv", ["hybrid-ir", "retrieve", *arguments, "--root", sample_root])
        with pytest.raises(SystemExit) as end:
            cli.main()
        assert not end.value.code
        return capsys.readouterr().out

    out = run("rabies virus in bats", "--k", "3", "--explain", "rabies/bats#0")
    assert all(len(line) <= 100 for line in out.splitlines())
    assert "fused: graph and dense; sparse beside it." in out
    assert "Why rabies/bats#0" in out
    body = json.loads(run("rabies virus in bats", "--paths", "dense,sparse", "--json", "--explain", "rabies/bats#0"))
    assert {"query", "evidence", "comparison", "explanation"} <= body.keys()
    assert body["comparison"]["shown"] == ["dense", "sparse"]
    assert body["explanation"]["graph"] is None
    assert {term["term"] for term in body["explanation"]["sparse"]["terms"]} == {"rabies", "virus", "bat"}
