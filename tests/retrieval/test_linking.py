import numpy as np
import pyarrow as pa
import pytest

from hybrid_ir.dense.index import DenseIndex, Shard, write_shard
from hybrid_ir.ranking import top
from hybrid_ir.retrieval.graph_path import GraphPath
from hybrid_ir.retrieval.linking import Linker
from hybrid_ir.roles import Query
from hybrid_ir.settings import GraphPathSettings, LinkerSettings
from hybrid_ir.store import Store

NAMES = sorted(["bat", "rabies virus", "IL-2", "cave exploration", "β-blocker", "脳炎"])


@pytest.fixture
def linker(tmp_path, word_encoder):
    store, encoder = Store(str(tmp_path)), word_encoder()
    vectors = encoder.encode_passages([""] * len(NAMES), NAMES)
    write_shard(store, "e.faiss", vectors, np.arange(len(NAMES)))
    return Linker(pa.array(NAMES), DenseIndex(store, [Shard("e.faiss")]), encoder, LinkerSettings(floor=0.55))


def test_a_name_of_the_graph_links_to_itself(linker):
    for number, name in enumerate(NAMES):
        link, entity = linker.link([name])[0]
        assert (link.entity, link.similarity, entity) == (name, 1.0, number)


def test_another_wording_links_to_the_nearest_and_a_stranger_to_nothing(linker):
    (near, number), (far, none) = linker.link(["virus of rabies", "quantum chromodynamics"])
    assert near.entity == "rabies virus" == NAMES[number]
    assert near.similarity < 1
    assert far.entity is None
    assert none == -1


def test_no_mentions_and_no_entities(linker, word_encoder, tmp_path):
    assert linker.link([]) == []
    empty = Linker(pa.array([], pa.string()), DenseIndex(Store(str(tmp_path)), []), word_encoder(), LinkerSettings())
    assert empty.link(["bat"])[0][1] == -1


class Scorer:
    def score(self, seeds):
        self.seeds = seeds
        return np.zeros(len(NAMES), np.float32), np.array([0.1, 0, 0.3, 0.1], np.float32)


class NoMentions:
    def mentions(self, texts):
        return [()] * len(texts)


def test_seeds_are_divided_by_their_chunks_and_the_query_itself_is_linked_last(linker):
    counts = np.arange(1, len(NAMES) + 1)
    scorer = Scorer()
    path = GraphPath(linker, scorer, NoMentions(), counts, GraphPathSettings())
    ranking = path.rank_now(Query(text="?", entities=("bat", "IL-2")), 10)
    assert scorer.seeds == {NAMES.index(n): 1 / (NAMES.index(n) + 1) for n in ("bat", "IL-2")}
    assert ranking.chunks == (2, 0, 3)  # a chunk without a score is not ranked; ties by number
    ranking = path.rank_now(Query(text="cave exploration trip"), 1)
    assert [link.entity for link in ranking.links] == ["cave exploration"]
    plain = GraphPath(linker, scorer, NoMentions(), counts, GraphPathSettings(seed_by_document_count=False))
    plain.rank_now(Query(text="?", entities=("IL-2",)), 1)
    assert scorer.seeds == {NAMES.index("IL-2"): 1.0}


def test_top_is_a_sort_cut_at_k():
    rng = np.random.default_rng(0)
    scores = rng.integers(0, 5, 50).astype(np.float32)
    expected = sorted((i for i in range(50) if scores[i] > 0), key=lambda i: (-scores[i], i))
    for k in (0, 1, 7, 49, 100):
        assert top(scores, k).tolist() == expected[:k]
