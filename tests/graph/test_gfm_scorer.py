"""The GFM as the graph path's scorer: prepared, opened, asked, and audited, on a real small index."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from test_gfm import small_network, write_checkpoint

from hybrid_ir.errors import BadInput, Conflict, Damaged, NotFound
from hybrid_ir.graph import chunk_links, knowledge_graph
from hybrid_ir.graph import store as graph_store
from hybrid_ir.graph.gfm import prepared
from hybrid_ir.graph.gfm.background import open_background
from hybrid_ir.graph.gfm.bounded import BoundedGFM
from hybrid_ir.graph.gfm.candidates import Candidates
from hybrid_ir.graph.gfm.exact import ExactGFM
from hybrid_ir.graph.gfm.prior import Prior, find, open_prior
from hybrid_ir.graph.gfm.scorer import GFMScorer, Near
from hybrid_ir.graph.messages import joined
from hybrid_ir.graph.store import StoredGraph
from hybrid_ir.settings import GFMSettings, GraphSettings
from hybrid_ir.store import Store


class LetterEncoder:
    """Counts letters: a real, tiny encoder of text for a network of 12 dimensions."""

    fingerprint = {"model": "letters"}  # noqa: RUF012
    dimension = 12

    def encode_queries(self, texts: list[str]) -> np.ndarray:
        rows = [[text.count(letter) / 3 for letter in "aeiourstlnce"] for text in texts]
        return np.array(rows, np.float32).reshape(-1, 12)

    def encode_passages(self, titles: list[str], texts: list[str]) -> np.ndarray:
        return self.encode_queries(texts)


@pytest.fixture(scope="module")
def graph(tmp_path_factory: pytest.TempPathFactory) -> tuple[Store, StoredGraph]:
    """Two triples in two chunks, a third chunk that names an entity without triples."""
    triples = pa.table(
        {"chunk": [0, 1], "head": ["caves", "bats"], "relation": ["habitat", "carry"], "tail": ["bats", "rabies virus"]}
    )
    mentions = pa.table({"chunk": [2], "name": ["aspirin"]})
    store = Store(str(tmp_path_factory.mktemp("root")))
    none = np.zeros(0, np.int64), np.zeros(0, np.int64), np.zeros(0, np.float32)
    made = knowledge_graph.build([triples], [mentions])
    settings = GraphSettings(partitions=2, partitioner="hash")
    graph_store.write(store, "builds/b1", made, none, chunk_links.merge([]), 3, settings)
    return store, graph_store.open_graph(store, "builds/b1")


@pytest.fixture(scope="module")
def weights(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, prepared.Weights]:
    folder = tmp_path_factory.mktemp("gfm")
    write_checkpoint(folder, small_network())
    return folder, prepared.Weights.of(str(folder))


def test_a_prepared_build_scores_entities_and_the_chunks_that_hold_them(
    graph: tuple[Store, StoredGraph], weights: tuple[Path, prepared.Weights]
) -> None:
    store, stored = graph
    held = weights[1]
    with pytest.raises(NotFound, match="prepare-gfm"):
        prepared.open_projected(store, "b1", stored, held)
    prepared.prepare(store, "b1", stored, held, LetterEncoder(), bounded=True)
    divided = prepared.open_graph(store, "b1", stored)
    projected = prepared.open_projected(store, "b1", stored, held)
    exact = ExactGFM(projected, joined(divided.partitions))
    owners = prepared.open_owners(store, "b1", held, divided)
    mentions = stored.mention_indptr, stored.mention_chunk, stored.chunks
    candidates = Candidates(*mentions, open_prior(store, prepared.folder("b1", held)), most_chunks=2)
    bounded = Near(BoundedGFM(projected, owners, active=2), candidates)
    ids = divided.labels, divided.numbers
    names = stored.entity_names.to_pylist()
    seeds = {names.index("caves"): 1.0}
    whole = GFMScorer(stored, *ids, LetterEncoder(), lambda: exact, None, "softmax")
    entities, chunks = whole.score(seeds, "what lives in caves?")
    assert entities.shape == (4,)
    assert entities.sum() == pytest.approx(1.0)
    # M's transpose: a chunk has what its entities have.
    caves, bats, virus, aspirin = (entities[names.index(n)] for n in ("caves", "bats", "rabies virus", "aspirin"))
    np.testing.assert_allclose(chunks, [caves + bats, bats + virus, aspirin], rtol=1e-5)
    assert not np.allclose(chunks, whole.score(seeds, "another question")[1])
    together = whole.score_many([seeds, {}, {1: 0.5}], ["what lives in caves?", "?", "bats"])
    np.testing.assert_allclose(together[0][1], chunks, rtol=1e-5)
    np.testing.assert_allclose(together[2][1], whole.score({1: 0.5}, "bats")[1], rtol=1e-5)
    assert not together[1][1].any()
    near = GFMScorer(stored, *ids, LetterEncoder(), lambda: exact, bounded, "softmax")
    entities, chunks = near.score(seeds, "what lives in caves?")
    # Two entities move and the others rest; so small a graph is all candidates.
    assert (entities > 0).all()
    np.testing.assert_allclose(chunks, whole.score(seeds, "what lives in caves?")[1], atol=0.03)
    found = near.audit(seeds, "what lives in caves?")
    assert 0 <= found.overlap <= 1
    assert found.error >= 0
    assert not near.score({}, "nothing linked")[1].any()


@given(st.integers(0, 99), st.integers(0, 6))
def test_all_entities_of_a_candidate_chunk_are_scored(seed: int, most: int) -> None:
    random = np.random.default_rng(seed)
    held = random.random((30, 12)) < 0.15
    indptr, chunk = np.concatenate([[0], np.cumsum(held.sum(1))]), np.nonzero(held)[1]
    prior = Prior(np.array([3, 7]), np.array([2, 11]))
    active = np.sort(random.choice(30, 5, replace=False))
    shares = random.random(5)
    others = Candidates(indptr, chunk, 12, prior, most).beside(active, shares)
    given_ = shares @ held[active]
    best = np.lexsort((np.arange(12), -given_))[:most]
    chunks = {2, 11} | {int(c) for c in best if given_[c] > 0}
    wanted = {3, 7} | {int(e) for c in chunks for e in np.flatnonzero(held[:, c])}
    assert others.tolist() == sorted(wanted - set(active.tolist()))


def test_the_prior_holds_what_is_best_for_any_question(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("hybrid_ir.graph.gfm.prior.MOST", 2)
    # Entity i is in chunk i; each question has its own best entity, and entity 4 is everyone's second.
    table = np.full((2, 6), -3.0, np.float32)
    table[0, 1] = table[1, 5] = 5.0
    table[:, 4] = 4.0
    questions = np.eye(2, dtype=np.float32)
    found = find(lambda q: table[int(q.argmax())], questions, np.arange(7), np.arange(6), 6)
    assert found.entities.tolist() == found.chunks.tolist() == [1, 5]
    empty = find(lambda q: table[0][:0], questions, np.zeros(1, np.int64), np.zeros(0, np.int64), 0)
    assert empty.entities.size == empty.chunks.size == 0


def test_vectors_of_another_build_are_refused(
    graph: tuple[Store, StoredGraph], weights: tuple[Path, prepared.Weights]
) -> None:
    store, stored = graph
    store.write_array(f"{prepared.folder('b2', weights[1])}/relations.npy", np.zeros((2, 12), np.float32))
    with pytest.raises(Conflict, match="2 vectors for 3 relations"):
        prepared.open_projected(store, "b2", stored, weights[1])


@pytest.mark.parametrize("names", [[], ["aspirin", "caves"]])
def test_a_graph_without_edges_or_entities_ranks_what_there_is(
    names: list[str], weights: tuple[Path, prepared.Weights], tmp_path: Path
) -> None:
    store, held = Store(str(tmp_path)), weights[1]
    mentions = pa.table({"chunk": pa.array(range(len(names)), pa.int64()), "name": pa.array(names, pa.string())})
    none = np.zeros(0, np.int64), np.zeros(0, np.int64), np.zeros(0, np.float32)
    made = knowledge_graph.build([], [mentions])
    graph_store.write(store, "builds/b1", made, none, chunk_links.merge([]), len(names), GraphSettings())
    stored = graph_store.open_graph(store, "builds/b1")
    prepared.prepare(store, "b1", stored, held, LetterEncoder(), bounded=True)
    divided = prepared.open_graph(store, "b1", stored)
    projected = prepared.open_projected(store, "b1", stored, held)
    exact = ExactGFM(projected, joined(divided.partitions))
    mentioned = stored.mention_indptr, stored.mention_chunk, stored.chunks
    candidates = Candidates(*mentioned, open_prior(store, prepared.folder("b1", held)), most_chunks=5)
    near = Near(BoundedGFM(projected, prepared.open_owners(store, "b1", held, divided), active=5), candidates)
    for mode in (None, near):
        scorer = GFMScorer(stored, divided.labels, divided.numbers, LetterEncoder(), lambda: exact, mode, "softmax")
        seeds = {0: 1.0} if names else {}
        entities, chunks = scorer.score(seeds, "what lives in caves?")
        assert entities.shape == chunks.shape == (len(names),)
        assert (chunks > 0).all()
        with pytest.raises(BadInput, match="is not an entity"):
            scorer.score({2: 1.0}, "a seed of another build")


def test_the_encoder_is_the_checkpoints_unless_the_settings_name_one(weights: tuple[Path, prepared.Weights]) -> None:
    network = weights[1].network
    chosen = prepared.text_encoder(network, GFMSettings(model="x"))
    assert (chosen.model, chosen.normalise) == ("sentence-transformers/all-mpnet-base-v2", False)
    own = GFMSettings.model_validate({"model": "x", "text_encoder": {"model": "elsewhere"}})
    assert prepared.text_encoder(network, own).model == "elsewhere"


def test_a_truncated_array_is_damage(
    graph: tuple[Store, StoredGraph], weights: tuple[Path, prepared.Weights], tmp_path: Path
) -> None:
    store, stored = Store(str(tmp_path)), graph[1]
    shutil.copytree(graph[0].path(""), tmp_path, dirs_exist_ok=True)
    shutil.rmtree(tmp_path / prepared.folder("b1", weights[1]), ignore_errors=True)
    prepared.prepare(store, "b1", stored, weights[1], LetterEncoder(), bounded=True)
    place = tmp_path / prepared.folder("b1", weights[1])
    cut = place / "partition-00001" / "states-2.npy"
    cut.write_bytes(cut.read_bytes()[:-40])
    with pytest.raises((BadInput, Damaged), match=r"states-2\.npy"):
        open_background(store, prepared.folder("b1", weights[1]), weights[1].fingerprint, "b1", 1)
