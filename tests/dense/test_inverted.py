"""Inverted files: shards answer as one, few survivors are all found, the same bytes in every run."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from hybrid_ir.dense import training
from hybrid_ir.dense.index import DenseIndex, Shard, write_shard, write_vectors
from hybrid_ir.errors import BadInput, Damaged
from hybrid_ir.settings import DenseSettings
from hybrid_ir.store import Store

KINDS = ["flat", "ivf_sq8", "ivf_rabitq"]
INVERTED = KINDS[1:]


def clustered(rows, dimension=32, seed=0):
    rng = np.random.default_rng(seed)
    centres = rng.standard_normal((12, dimension))
    vectors = centres[rng.integers(0, 12, rows)] + 0.7 * rng.standard_normal((rows, dimension))
    return np.ascontiguousarray(vectors / np.linalg.norm(vectors, axis=1, keepdims=True), np.float32)


def written(store, folder, vectors, parts, settings, first=0):
    """(shard, rows) of the shards of one segment, of about equal size, which share what was trained."""
    kind = training.kind_for(len(vectors), settings)
    trained = None
    if kind != "flat":
        sample = vectors[training.sample_rows(len(vectors), settings)]
        training.train(store, folder, sample, len(vectors), kind, settings)
        trained = training.open_trained(store, folder)
    shards = []
    for number, rows in enumerate(np.array_split(np.arange(len(vectors)), parts)):
        name = f"{folder}/shard-{number:05d}.faiss"
        write_shard(store, name, vectors[rows], np.arange(len(rows)), trained)
        shards.append((Shard(name, first + int(rows[0])), len(rows)))
    return shards


def opened(store, folder, vectors, parts, settings, dead=None):
    """All vectors as one index of several shards."""
    return DenseIndex(store, [shard for shard, _ in written(store, folder, vectors, parts, settings)], dead, settings)


def exact(queries, vectors, k, passes=None):
    """Ids of shape (queries, k)."""
    scores = queries @ vectors.T
    if passes is not None:
        scores[:, ~passes] = -np.inf
    return np.argsort(-scores, axis=1, kind="stable")[:, :k]


def recall(found, expected):
    return np.mean([len(set(a) & set(b)) / len(b) for a, b in zip(found.tolist(), expected.tolist(), strict=True)])


@pytest.mark.parametrize("kind", INVERTED)
@pytest.mark.parametrize("parts", [2, 5])
def test_the_number_of_shards_changes_nothing(tmp_path, kind, parts):
    vectors, queries = clustered(3000), clustered(20, seed=1)
    settings, store = DenseSettings(kind=kind), Store(str(tmp_path))
    one = opened(store, "one", vectors, 1, settings).search(queries, 10)
    many = opened(store, "many", vectors, parts, settings).search(queries, 10)
    assert one[1].tolist() == many[1].tolist()
    assert np.allclose(one[0], many[0], atol=1e-6)


@pytest.mark.parametrize("kind", INVERTED)
def test_all_lists_probed_are_the_truth_up_to_a_byte_a_dimension(tmp_path, kind):
    vectors, queries = clustered(3000), clustered(50, seed=1)
    index = opened(Store(str(tmp_path)), "d", vectors, 3, DenseSettings(kind=kind, probes=1000, refine=40))
    scores, ids = index.search(queries, 10)
    assert recall(ids, exact(queries, vectors, 10)) > 0.97
    assert np.allclose(scores, np.take_along_axis(queries @ vectors.T, ids, 1), atol=0.01)
    assert (np.diff(scores, axis=1) <= 0).all()


@pytest.mark.parametrize("kind", INVERTED)
def test_the_defaults_find_what_is_near(tmp_path, kind):
    vectors, queries = np.split(clustered(5050), [5000])
    _, ids = opened(Store(str(tmp_path)), "d", vectors, 2, DenseSettings(kind=kind)).search(queries, 10)
    assert recall(ids, exact(queries, vectors, 10)) > 0.9


@pytest.mark.parametrize("kind", KINDS)
@hypothesis_settings(max_examples=15)
@given(st.integers(0, 2**31), st.floats(0, 1), st.floats(0, 1), st.integers(0, 40))
def test_what_is_dead_or_filtered_out_is_not_found_and_all_that_may_be_is(
    tmp_path_factory, kind, seed, dying, passing, k
):
    """However few are left, in whatever lists they lie: k results, or all that there are."""
    rng = np.random.default_rng(seed)
    vectors, queries = clustered(600, 16, seed), clustered(3, 16, seed + 1)
    dead = np.flatnonzero(rng.random(600) < dying)
    allowed = rng.random(600) < passing
    store = Store(str(tmp_path_factory.mktemp("d")))
    index = opened(store, "d", vectors, 3, DenseSettings(kind=kind, probes=2), dead)
    alive = ~np.isin(np.arange(600), dead)
    for mask, passes in ((None, alive), (allowed, alive & allowed)):
        scores, ids = index.search(queries, k, mask)
        assert ids.shape == scores.shape == (3, k)
        there = min(k, int(passes.sum()))
        assert (ids[:, :there] >= 0).all()
        assert (ids[:, there:] == -1).all()
        assert np.isneginf(scores[:, there:]).all()
        assert passes[ids[ids >= 0]].all()
        assert all(len(set(row[:there])) == there for row in ids.tolist())
        if kind == "flat":
            assert ids[:, :there].tolist() == exact(queries, vectors, there, passes).tolist()


@pytest.mark.parametrize("kind", INVERTED)
def test_few_allowed_rows_are_compared_exactly(tmp_path, kind):
    vectors, queries = clustered(4000), clustered(30, seed=1)
    allowed = np.zeros(4000, bool)
    allowed[np.random.default_rng(3).choice(4000, 40, replace=False)] = True
    _, ids = opened(Store(str(tmp_path)), "d", vectors, 2, DenseSettings(kind=kind)).search(queries, 10, allowed)
    assert recall(ids, exact(queries, vectors, 10, allowed)) > 0.98


@pytest.mark.parametrize("kind", KINDS)
def test_a_zero_vector_is_similar_to_nothing(tmp_path, kind):
    vectors = clustered(500, 16)
    vectors[::5] = 0
    index = opened(Store(str(tmp_path)), "d", vectors, 2, DenseSettings(kind=kind))
    assert len(index) == 400
    _, ids = index.search(-vectors[1:4], 500)  # all others may be less than zero similar
    assert not np.isin(ids, np.arange(0, 500, 5)).any()
    assert ((ids >= 0).sum(axis=1) == 400).all()
    allowed = np.zeros(500, bool)
    allowed[[5, 10]] = True
    assert (index.search(vectors[1:2], 3, allowed)[1] == -1).all()
    scores, ids = index.search(np.stack([np.zeros(16, np.float32), vectors[1]]), 3)
    assert (ids[0] == -1).all()
    assert np.isneginf(scores[0]).all()
    assert ids[1, 0] == 1


@pytest.mark.parametrize("kind", KINDS)
def test_nothing_but_zero_vectors(tmp_path, kind):
    index = opened(Store(str(tmp_path)), "d", np.zeros((30, 8), np.float32), 2, DenseSettings(kind=kind))
    assert (index.search(np.ones((1, 8), np.float32), 3)[1] == -1).all()


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("rows", [1, 2, 7])
def test_a_handful_of_vectors_in_any_kind(tmp_path, kind, rows):
    vectors = clustered(rows, 16)
    index = opened(Store(str(tmp_path)), "d", vectors, 1, DenseSettings(kind=kind))
    assert sorted(index.search(vectors[:1], rows + 2)[1][0].tolist()) == [-1, -1, *range(rows)]


def test_a_negative_k_is_refused(tmp_path):
    with pytest.raises(BadInput, match="k is -1"):
        DenseIndex(Store(str(tmp_path)), []).search(np.ones((1, 4), np.float32), -1)


def test_equal_vectors_come_by_number_whatever_the_shards(tmp_path):
    vectors = np.repeat(clustered(40, 16), 8, axis=0)
    for parts in (1, 3, 4):
        index = opened(Store(str(tmp_path)), f"d{parts}", vectors, parts, DenseSettings())
        assert index.search(vectors[80:81], 5)[1].tolist() == [[80, 81, 82, 83, 84]]


@pytest.mark.parametrize("kind", INVERTED)
def test_two_runs_write_the_same_bytes(tmp_path, kind):
    store, vectors = Store(str(tmp_path)), clustered(3000)
    opened(store, "one", vectors, 2, DenseSettings(kind=kind))
    opened(store, "two", vectors, 2, DenseSettings(kind=kind))
    names = [name.removeprefix("one/") for name in store.files("one")]
    assert "trained.faiss" in names
    for name in names:
        assert store.sha256(f"one/{name}") == store.sha256(f"two/{name}"), name


def test_the_kind_goes_by_the_count():
    settings = DenseSettings()
    kinds = [training.kind_for(n, settings) for n in (0, 50_000, 50_001, 2_000_000, 2_000_001)]
    assert kinds == ["flat", "flat", "ivf_sq8", "ivf_sq8", "ivf_rabitq"]
    assert training.kind_for(10, DenseSettings(kind="ivf_rabitq")) == "ivf_rabitq"
    assert training.kind_for(0, DenseSettings(kind="ivf_rabitq")) == "flat"


@pytest.mark.parametrize("kind", KINDS)
def test_segments_of_several_kinds_are_one_index(tmp_path, kind):
    """An index of one kind, and small updates that are flat."""
    store, vectors, queries = Store(str(tmp_path)), clustered(2000), clustered(20, seed=1)
    write_vectors(store, "a/shard-00000.faiss", vectors[:1500], DenseSettings(kind=kind))
    write_vectors(store, "b/shard-00000.faiss", vectors[1500:], DenseSettings())
    index = DenseIndex(
        store, [Shard("a/shard-00000.faiss"), Shard("b/shard-00000.faiss", 1500)], None, DenseSettings(probes=1000)
    )
    assert recall(index.search(queries, 10)[1], exact(queries, vectors, 10)) > 0.95


@pytest.mark.parametrize("lost", ["trained.faiss", "ranges.npy", "shard-00000.rows.npy"])
def test_a_missing_file_is_named(tmp_path, lost):
    store = Store(str(tmp_path))
    write_vectors(store, "a/shard-00000.faiss", clustered(300), DenseSettings(kind="ivf_rabitq"))
    (tmp_path / "a" / lost).unlink()
    with pytest.raises(Damaged, match=lost):
        DenseIndex(store, [Shard("a/shard-00000.faiss")])


def test_rows_of_another_shard_are_refused(tmp_path):
    store = Store(str(tmp_path))
    write_vectors(store, "a/shard-00000.faiss", clustered(300), DenseSettings(kind="ivf_rabitq"))
    store.write_array("a/shard-00000.rows.npy", np.zeros((3, 32), np.uint8))
    with pytest.raises(Damaged, match="not the rows"):
        DenseIndex(store, [Shard("a/shard-00000.faiss")])


@pytest.mark.parametrize("kind", INVERTED)
def test_an_update_takes_over_what_was_trained_while_the_size_is_near(tmp_path, kind):
    store, settings = Store(str(tmp_path)), DenseSettings(kind=kind)
    vectors = clustered(4000)
    write_vectors(store, "old/shard.faiss", vectors[:3700], settings)
    near = write_vectors(store, "near/shard.faiss", vectors, settings, older="old")
    assert store.read("near/trained.faiss") == store.read("old/trained.faiss")
    assert {name.rpartition("/")[2] for name in near} >= {"trained.faiss", "shard.faiss"}
    found = DenseIndex(store, [Shard("near/shard.faiss")], settings=settings).search(vectors[::100], 10)[1]
    assert recall(found, exact(vectors[::100], vectors, 10)) > 0.9
    write_vectors(store, "far/shard.faiss", vectors[:1000], settings, older="old")
    assert store.read("far/trained.faiss") != store.read("old/trained.faiss")
    other = DenseSettings(kind=INVERTED[1 - INVERTED.index(kind)])
    write_vectors(store, "other/shard.faiss", vectors, other, older="old")  # trained anew: of another kind
    assert len(DenseIndex(store, [Shard("other/shard.faiss")], settings=other)) == 4000
