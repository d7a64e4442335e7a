import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hybrid_ir.dense.index import DenseIndex, Shard, write_shard
from hybrid_ir.errors import BadInput, Conflict, Damaged
from hybrid_ir.store import Store


def shards_of(store, vectors, parts):
    shards = []
    for number, rows in enumerate(np.array_split(np.arange(len(vectors)), parts)):
        write_shard(store, f"s/{parts}-{number}.faiss", vectors[rows], rows - (rows[0] if len(rows) else 0))
        shards.append(Shard(f"s/{parts}-{number}.faiss", int(rows[0]) if len(rows) else 0))
    return shards


@given(st.integers(1, 60), st.integers(1, 6), st.integers(1, 70), st.integers(0, 2**31))
def test_many_shards_answer_as_one(tmp_path_factory, rows, parts, k, seed):
    store = Store(str(tmp_path_factory.mktemp("d")))
    rng = np.random.default_rng(seed)
    vectors, queries = rng.normal(size=(rows, 8)).astype(np.float32), rng.normal(size=(3, 8)).astype(np.float32)
    scores, ids = DenseIndex(store, shards_of(store, vectors, parts)).search(queries, k)
    exact = queries @ vectors.T
    for query in range(3):
        expected = np.argsort(-exact[query], kind="stable")[:k]
        assert ids[query, : len(expected)].tolist() == expected.tolist()
        assert np.allclose(scores[query, : len(expected)], exact[query, expected], atol=1e-4)
    assert (ids[:, min(rows, k) :] == -1).all()


def test_another_dimension_is_a_conflict_not_a_wrong_answer(tmp_path):
    store = Store(str(tmp_path))
    index = DenseIndex(store, shards_of(store, np.eye(4, dtype=np.float32), 1))
    with pytest.raises(Conflict, match="4 dimensions"):
        index.search(np.zeros((1, 8), np.float32), 1)


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_broken_vectors_are_refused(tmp_path, bad):
    store = Store(str(tmp_path))
    with pytest.raises(BadInput, match="NaN"):
        write_shard(store, "s/x.faiss", np.full((1, 4), bad, np.float32), np.arange(1))
    index = DenseIndex(store, shards_of(store, np.eye(4, dtype=np.float32), 1))
    with pytest.raises(BadInput, match="NaN"):
        index.search(np.full((1, 4), bad, np.float32), 1)


def test_a_cut_off_file_is_named(tmp_path):
    store = Store(str(tmp_path))
    shards = shards_of(store, np.eye(4, dtype=np.float32), 1)
    path = tmp_path / shards[0].name
    path.write_bytes(path.read_bytes()[:-20])
    with pytest.raises(Damaged, match=r"1-0\.faiss"):
        DenseIndex(store, shards)


def test_no_shards_find_nothing(tmp_path):
    scores, ids = DenseIndex(Store(str(tmp_path)), []).search(np.zeros((2, 4), np.float32), 3)
    assert (ids == -1).all()
    assert scores.shape == (2, 3)
