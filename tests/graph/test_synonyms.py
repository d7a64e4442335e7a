import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hybrid_ir.graph import synonyms


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
