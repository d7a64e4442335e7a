"""Chunks from entities."""

from __future__ import annotations

from typing import get_args

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hybrid_ir.graph.rankers import Ranker, chunk_scores, relevance


def test_each_ranker_gives_what_its_formula_says() -> None:
    logits, counts = np.array([2.0, 0.0, -1.0], np.float32), np.array([4, 1, 2])
    softmax = np.exp([2.0, 0.0, -1.0]) / np.exp([2.0, 0.0, -1.0]).sum()
    np.testing.assert_allclose(relevance(logits, "softmax", counts), softmax)
    np.testing.assert_allclose(relevance(logits, "idf", counts), softmax / counts)
    np.testing.assert_allclose(relevance(logits, "sigmoid", counts), 1 / (1 + np.exp([-2.0, 0.0, 1.0])))
    np.testing.assert_allclose(relevance(logits, "top20", counts), 1 / counts)


def test_the_peers_ranker_knows_only_its_best_twenty() -> None:
    shares = relevance(np.arange(25, dtype=np.float32), "top20", np.full(25, 2))
    assert shares.tolist() == [0.0] * 5 + [0.5] * 20


@pytest.mark.parametrize("ranker", get_args(Ranker))
def test_large_logits_and_no_entity(ranker: Ranker) -> None:
    assert relevance(np.zeros(0, np.float32), ranker, np.zeros(0, np.int64)).size == 0
    assert np.isfinite(relevance(np.array([500.0, -500.0], np.float32), ranker, np.array([0, 1]))).all()


@given(st.integers(1, 8), st.integers(1, 8), st.integers(0, 99))
def test_scores_are_the_product_with_m(entities: int, chunks: int, seed: int) -> None:
    random = np.random.default_rng(seed)
    mentions = random.random((entities, chunks)) < 0.4
    indptr = np.concatenate([[0], np.cumsum(mentions.sum(1))])
    given_ = np.flatnonzero(random.random(entities) < 0.7)
    shares = random.random(len(given_))
    found, scores = chunk_scores(given_, shares, indptr, np.nonzero(mentions)[1])
    wanted = shares @ mentions[given_]
    assert found.tolist() == np.flatnonzero(mentions[given_].any(0)).tolist()
    np.testing.assert_allclose(scores, wanted[found], rtol=1e-5)
