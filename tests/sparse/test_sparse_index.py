"""BM25 as bm25s has it, whatever the shards, the dead and the merges."""

from itertools import pairwise

import bm25s
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hybrid_ir.settings import SparsePathSettings
from hybrid_ir.sparse.analyzer import terms
from hybrid_ir.sparse.index import MOST_TERMS, SparseIndex
from hybrid_ir.sparse.postings import arrange, count, merge
from hybrid_ir.sparse.statistics import gather

WORDS = "liver IL-2 β-blocker warfarin the CYP2C9 fever bats rabies COVID-19 5-HT2A dose".split()
TEXTS = st.lists(st.lists(st.sampled_from(WORDS), max_size=12).map(" ".join), min_size=1, max_size=25)
QUERIES = st.lists(st.sampled_from([*WORDS, "unknown"]), min_size=1, max_size=6).map(" ".join)
SETTINGS = SparsePathSettings()


def index(texts, cuts=(), dead=(), settings=SETTINGS):
    """An index of the texts, cut into shards at these places, without the dead."""
    bounds = [0, *sorted(cuts), len(texts)]
    dead = np.array(sorted(dead), np.int64)
    live = np.ones(len(texts), bool)
    live[dead] = False
    shards = [(count(texts[a:b]), a) for a, b in pairwise(bounds)]
    statistics = gather((postings, live[a : a + len(postings.lengths)]) for postings, a in shards)
    return SparseIndex(shards, statistics, settings, dead)


def by_bm25s(texts, query, k1=1.2, b=0.75):
    """Every text's score."""
    vocabulary = {term: i for i, term in enumerate(sorted({t for text in texts for t in terms(text)}))}
    if not vocabulary:
        return np.zeros(len(texts))
    model = bm25s.BM25(k1=k1, b=b, method="lucene")
    model.index(([[vocabulary[t] for t in terms(text)] for text in texts], vocabulary), show_progress=False)
    asked = [vocabulary[t] for t in terms(query) if t in vocabulary]
    return model.get_scores_from_ids(asked)


@settings(max_examples=60)
@given(TEXTS, QUERIES, st.sampled_from([(1.2, 0.75), (0.9, 0.4), (1.5, 0.0), (0.0, 1.0)]))
def test_unsharded_scores_are_those_of_bm25s(texts, query, parameters):
    k1, b = parameters
    scores, ids = index(texts, settings=SparsePathSettings(k1=k1, b=b)).search(query, len(texts))
    expected = by_bm25s(texts, query, k1, b)
    assert set(ids.tolist()) == set(np.flatnonzero(expected > 0).tolist())
    np.testing.assert_allclose(scores, expected[ids], rtol=1e-5)


@given(TEXTS, QUERIES, st.lists(st.integers(0, 25), max_size=5), st.sets(st.integers(0, 24)), st.integers(1, 30))
def test_shards_and_dead_chunks_change_nothing(texts, query, cuts, dead, k):
    cuts = [cut for cut in cuts if cut <= len(texts)]
    dead = {number for number in dead if number < len(texts)}
    alive = [number for number in range(len(texts)) if number not in dead]
    scores, ids = index(texts, cuts, dead).search(query, k)
    if not alive:
        assert len(ids) == 0
        return
    whole_scores, whole_ids = index([texts[number] for number in alive]).search(query, k)
    assert ids.tolist() == [alive[number] for number in whole_ids.tolist()]
    np.testing.assert_allclose(scores, whole_scores, rtol=1e-5)
    np.testing.assert_allclose(scores, by_bm25s([texts[n] for n in alive], query)[whole_ids], rtol=1e-5)


@given(TEXTS, QUERIES, st.lists(st.booleans(), min_size=25, max_size=25))
def test_a_filter_hides_chunks_and_changes_no_score(texts, query, mask):
    allowed = np.array(mask[: len(texts)])
    all_scores, all_ids = index(texts, [3] if len(texts) > 3 else []).search(query, len(texts))
    scores, ids = index(texts).search(query, len(texts), allowed)
    kept = allowed[all_ids]
    assert ids.tolist() == all_ids[kept].tolist()
    np.testing.assert_array_equal(scores, all_scores[kept])


@given(TEXTS, QUERIES, st.lists(st.integers(0, 25), max_size=3), st.integers(0, 24))
def test_contributions_add_up_to_the_score(texts, query, cuts, chunk):
    made = index(texts, [cut for cut in cuts if cut <= len(texts)])
    scores, ids = made.search(query, len(texts))
    chunk = min(chunk, len(texts) - 1)
    score = dict(zip(ids.tolist(), scores.tolist(), strict=True)).get(chunk, 0.0)
    found = made.explain(query, chunk)
    assert sum(part.score for part in found) == pytest.approx(score, rel=1e-5)
    for part in found:
        assert part.count == terms(texts[chunk]).count(part.term)
        assert part.chunks == sum(part.term in terms(text) for text in texts)


@given(TEXTS, st.data())
def test_merged_postings_are_those_of_the_merged_texts(texts, data):
    cut = data.draw(st.integers(0, len(texts)))
    kept = data.draw(st.sets(st.sampled_from(range(len(texts)))))
    order = data.draw(st.permutations(sorted(kept)))
    rows = np.full(len(texts), -1, np.int64)
    rows[order] = np.arange(len(order))
    merged = merge([(count(texts[:cut]), rows[:cut]), (count(texts[cut:]), rows[cut:])], len(order))
    expected = count([texts[number] for number in order])
    for name in ("terms", "starts", "chunks", "counts", "lengths"):
        np.testing.assert_array_equal(getattr(merged, name), getattr(expected, name))


def test_terms_of_one_hash_become_one():
    found = arrange(np.array([7, 7, 7, 9], np.uint64), np.array([1, 0, 1, 1]), np.array([1, 2, 3, 70_000]), np.zeros(2))
    assert found.terms.tolist() == [7, 9]
    assert found.starts.tolist() == [0, 2, 3]
    assert found.chunks.tolist() == [0, 1, 1]
    assert found.counts.tolist() == [2, 4, 65535]


def test_statistics_merge_in_batches(monkeypatch):
    texts = [f"word{i % 7} word{i % 11} liver" for i in range(60)]
    whole = gather([(count(texts), None)])
    monkeypatch.setattr("hybrid_ir.sparse.statistics.MERGED_AT", 3)
    parts = gather((count(texts[i : i + 4]), None) for i in range(0, 60, 4))
    np.testing.assert_array_equal(whole.terms, parts.terms)
    np.testing.assert_array_equal(whole.frequencies, parts.frequencies)
    assert (whole.chunks, whole.length) == (parts.chunks, parts.length) == (60, 180)


def test_nothing_to_find():
    for made in (index([]), index(["", "the"]), SparseIndex([], gather([]), SETTINGS)):
        assert [len(found) for found in made.search("warfarin", 5)] == [0, 0]
    assert len(index(["liver"]).search("the of and", 5)[0]) == 0


def test_a_long_query_is_cut_to_its_rarest_terms():
    texts = [" ".join(f"w{j}" for j in range(i, 1000)) for i in range(0, 1000, 10)]
    made = index(texts)
    query = " ".join(f"w{j}" for j in range(1000))
    assert len(made.explain(query, 0)) == MOST_TERMS
    assert {part.term for part in made.explain(query, 0)} > {f"w{j}" for j in range(MOST_TERMS // 10 * 10)}
    assert made.search(query, 1)[1].tolist() == [0]
