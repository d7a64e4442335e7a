import sys

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hybrid_ir.graph import candidates, synonyms


@given(st.integers(0, 40), st.integers(1, 5), st.integers(0, 2**31))
def test_tiles_find_every_pair_once_and_the_cosine_does_not_depend_on_the_tile(entities, parts, seed):
    rng = np.random.default_rng(seed)
    vectors = rng.normal(size=(entities, 3)).astype(np.float32)
    vectors[: entities // 4] = 0  # a zero vector is similar to nothing
    groups = [np.flatnonzero(np.arange(entities) % parts == part) for part in range(parts)]
    found = [
        synonyms.similar_pairs(groups[i], vectors[groups[i]], groups[j], vectors[groups[j]], 0.8)
        for i in range(parts)
        for j in range(i, parts)
    ]
    a, b, cosine = synonyms.distinct(*(np.concatenate([part[i] for part in found]) for i in range(3)))
    everything = np.arange(entities)
    whole = synonyms.similar_pairs(everything, vectors, everything, vectors, 0.8)
    assert np.array_equal(a, whole[0])
    assert np.array_equal(b, whole[1])
    assert np.array_equal(cosine, whole[2])
    length = np.linalg.norm(vectors, axis=1)
    expected = {
        (i, j)
        for i in range(entities)
        for j in range(i + 1, entities)
        if length[i] and length[j] and vectors[i] @ vectors[j] / (length[i] * length[j]) > 0.8 + 1e-5
    }
    pairs = list(zip(a.tolist(), b.tolist(), strict=True))
    assert len(pairs) == len(set(pairs))
    assert expected <= set(pairs)
    assert all(vectors[i] @ vectors[j] > (0.8 - 1e-5) * length[i] * length[j] for i, j in pairs)


@given(
    st.integers(0, 2**31),
    st.integers(0, 300),
    st.sampled_from([8, 64, 384]),
    st.sampled_from([0.005, 0.3, 0.6, 0.85, 0.9, 0.99, 1.0]),
)
def test_the_filter_in_bfloat16_finds_what_the_one_in_float32_finds(seed, entities, dimension, threshold):
    rng = np.random.default_rng(seed)
    # Around few centres, at all distances, with many pairs close to the threshold.
    centres = rng.normal(size=(5, dimension))
    noise = (
        rng.normal(size=(entities, dimension))
        * np.sqrt(rng.uniform(0, 2 * (1 / max(threshold, 0.1) - 1), entities))[:, None]
    )
    vectors = (centres[rng.integers(0, 5, entities)] + noise).astype(np.float32)
    vectors[: entities // 10] = 0
    vectors[entities // 10 : entities // 5] = centres[0]  # cosine 1
    ids = rng.permutation(10 * entities)[:entities]
    middle = entities // 2
    for left, right in ((slice(None), slice(None)), (slice(0, middle), slice(middle, None))):
        exact, fast = (
            synonyms.similar_pairs(ids[left], vectors[left], ids[right], vectors[right], threshold, precision)
            for precision in ("float32", "bfloat16")
        )
        for one, other in zip(exact, fast, strict=True):
            assert np.array_equal(one, other)
    whole = synonyms.similar_pairs(ids, vectors, ids, vectors, threshold, "bfloat16")  # one object: each pair once
    copied = synonyms.similar_pairs(ids, vectors, ids.copy(), vectors.copy(), threshold, "bfloat16")
    for one, other in zip(whole, copied, strict=True):
        assert np.array_equal(one, other)


def test_blocks_of_a_tile_cover_it(monkeypatch):
    rng = np.random.default_rng(1)
    vectors = rng.normal(size=(230, 6)).astype(np.float32)
    ids = np.arange(230)
    expected = synonyms.similar_pairs(ids, vectors, ids, vectors, 0.8, "float32")
    assert len(expected[0]) > 100
    for rows, columns in ((7, 64), (64, 7), (100, 100)):
        monkeypatch.setattr(candidates, "_ROWS", rows)
        monkeypatch.setattr(candidates, "_COLUMNS", columns)
        for precision in ("float32", "bfloat16"):
            for other in (ids, ids.copy()):
                found = synonyms.similar_pairs(ids, vectors, other, vectors, 0.8, precision)
                assert all(np.array_equal(a, b) for a, b in zip(expected, found, strict=True))


def test_the_product_in_bfloat16_is_never_too_small_by_more_than_its_margin():
    import torch

    rng = np.random.default_rng(2)
    for dimension in (64, 384, 768, 1024):
        left = rng.normal(size=(500, dimension))
        right = left + rng.normal(size=(500, dimension)) * rng.uniform(0, 1, 500)[:, None]
        left, right = ((x / np.linalg.norm(x, axis=1, keepdims=True)).astype(np.float32) for x in (left, right))
        product = (torch.tensor(left).bfloat16() @ torch.tensor(right).bfloat16().T).float().numpy()
        exact = left.astype(np.float64) @ right.T.astype(np.float64)
        assert np.abs(product - exact).max() < 0.6 * candidates.MARGIN["bfloat16"]


def test_torch_is_loaded_only_where_it_pays(monkeypatch):
    monkeypatch.setattr(candidates, "_has_bfloat16", lambda: True)
    monkeypatch.setattr(candidates, "_faster", lambda: "bfloat16")
    monkeypatch.setattr(candidates._Work, "done", 0.0)
    monkeypatch.delitem(sys.modules, "torch", raising=False)
    monkeypatch.setattr(candidates, "_PATIENCE", 1e6)
    block = np.zeros((500, 3), np.float32)
    assert [candidates._precision(block, block) for _ in range(3)] == ["float32", "float32", "bfloat16"]
    monkeypatch.setattr(candidates, "_has_bfloat16", lambda: False)
    assert candidates._precision(block, block) == "float32"


@pytest.mark.parametrize(
    ("a", "b", "agree"),
    [
        ("IL-2", "IL-6", False),
        ("type 1 diabetes", "type 2 diabetes", False),
        ("heart failure", "cardiac failure", True),
        ("CYP2C9", "CYP2C9 enzyme", True),
        ("0.5 mg", "5 mg", False),
    ],
)
def test_numbers_agree(a, b, agree):
    assert synonyms.numbers_agree(a, b) is agree
