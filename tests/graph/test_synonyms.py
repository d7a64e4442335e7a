import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hybrid_ir.graph import synonyms


@given(st.integers(0, 40), st.integers(0, 2**31))
def test_tiles_find_every_pair_once(entities, seed):
    rng = np.random.default_rng(seed)
    vectors = rng.normal(size=(entities, 3)).astype(np.float32)
    vectors[: entities // 4] = 0  # a zero vector is similar to nothing
    size, found = synonyms.TILE, []
    synonyms.TILE = 7
    try:
        for row, column in synonyms.tiles(entities):
            left, right = vectors[row * 7 : row * 7 + 7], vectors[column * 7 : column * 7 + 7]
            a, b, _ = synonyms.similar_pairs(left, right, row * 7, column * 7, 0.8)
            found += list(zip(a.tolist(), b.tolist(), strict=True))
    finally:
        synonyms.TILE = size
    length = np.linalg.norm(vectors, axis=1)
    expected = {
        (i, j)
        for i in range(entities)
        for j in range(i + 1, entities)
        if length[i] and length[j] and vectors[i] @ vectors[j] / (length[i] * length[j]) > 0.8 + 1e-6
    }
    assert len(found) == len(set(found))
    assert expected <= set(found)
    assert all(vectors[i] @ vectors[j] > (0.8 - 1e-6) * length[i] * length[j] for i, j in found)


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
