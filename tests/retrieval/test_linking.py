import numpy as np
import pyarrow as pa
import pytest

from hybrid_ir.dense.index import DenseIndex, Shard, write_shard
from hybrid_ir.extraction.synonyms import Synonyms
from hybrid_ir.ranking import top
from hybrid_ir.retrieval.graph_path import GraphPath
from hybrid_ir.retrieval.linking import Linker
from hybrid_ir.roles import Query
from hybrid_ir.settings import GraphPathSettings, LinkerSettings
from hybrid_ir.store import Store

NAMES = sorted(["bat", "rabies virus", "IL-2", "cave exploration", "β-blocker", "脳炎"])
SYNONYMS = Synonyms(
    [{"xerostomia": True, "drymouth": True, "hyposalivation": False}, {"hepatitisb": True, "hbv": True}]
)


@pytest.fixture
def linker_of(tmp_path, word_encoder):
    """Names -> a linker over them; its encoder's calls are in ``calls``."""

    def make(names, counts=None, **settings):
        store, encoder = Store(str(tmp_path)), word_encoder()
        names = sorted(names)
        write_shard(store, "e.faiss", encoder.encode_passages([""] * len(names), names), np.arange(len(names)))
        calls = []

        class Counted:
            def encode_passages(self, titles, texts):
                calls.append(list(texts))
                return encoder.encode_passages(titles, texts)

        held = None if counts is None else np.array([counts[name] for name in names])
        index = DenseIndex(store, [Shard("e.faiss")])
        linker = Linker(
            pa.array(names), index, Counted(), LinkerSettings(floor=0.55, **settings), held, lambda: SYNONYMS
        )
        linker.calls = calls
        return linker

    return make


@pytest.fixture
def linker(linker_of):
    return linker_of(NAMES)


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


def linked(linker, *mentions):
    return [(link.entity, link.match) for link, _ in linker.link(mentions)]


def test_other_spellings_link_to_the_name(linker):
    assert linked(linker, "Bats", "il2", "beta blockers", "Rabies Viruses") == [
        ("bat", "variant"),
        ("IL-2", "variant"),
        ("β-blocker", "variant"),
        ("rabies virus", "variant"),
    ]
    assert linker.calls == []  # nothing was left to ask the encoder


def test_of_two_spellings_the_more_frequent_is_taken(linker_of):
    names = {"TNF-α": 3, "TNF-alpha": 7}
    assert linked(linker_of(names, counts=names), "TNF alpha", "TNF-α") == [
        ("TNF-alpha", "variant"),
        ("TNF-α", "exact"),
    ]
    names = {"TNF-α": 7, "TNF-alpha": 7}
    assert linked(linker_of(names, counts=names), "TNF alpha") == [(min(names), "variant")]


def test_a_synonym_links_to_the_entity_of_the_other_name(linker_of):
    linker = linker_of(["dry mouth", "rabies"])
    (exact, _), (near, _) = linker.link(["xerostomia", "hyposalivation"])
    assert (exact.entity, exact.match, exact.similarity) == ("dry mouth", "alias", 1.0)
    assert (near.entity, near.match, near.similarity) == ("dry mouth", "alias", 0.9)


def test_an_uncertain_synonym_gives_way_to_a_nearer_name(linker_of):
    linker = linker_of(["dry mouth", "hyposalivation syndrome hyposalivation"])
    (link, _) = linker.link(["hyposalivation"])[0]
    assert link.match == ("nearest" if link.similarity > 0.9 else "alias")
    assert linker.calls == [["hyposalivation"]]


def test_siblings_do_not_link_by_vector_unless_asked(linker_of):
    names = ["interleukin IL-6 receptor", "chronic viral hepatitis C"]
    asked = ("interleukin IL-2 receptor", "chronic viral hepatitis B")
    assert linked(linker_of(names), *asked) == [(None, None)] * 2
    found = linked(linker_of(names, numbers_must_match=False), *asked)
    assert found == [(names[0], "nearest"), (names[1], "nearest")]


def test_the_next_nearest_is_taken_where_the_nearest_is_a_sibling(linker_of):
    linker = linker_of(["interleukin 6 receptor", "receptor of interleukin 2 here"])
    assert linked(linker, "interleukin 2 receptor") == [("receptor of interleukin 2 here", "nearest")]


def test_case_links_where_it_says_nothing(linker_of):
    assert linked(linker_of(["HIV", "CAT", "ARDS"]), "hiv", "cat", "ards") == [
        ("HIV", "variant"),
        (None, None),
        ("ARDS", "variant"),
    ]


def test_all_mentions_are_encoded_in_one_call(linker):
    linker.link_many(["virus of rabies", "bat", "exploration of a cave", "quarks"])
    assert linker.calls == [["virus of rabies", "exploration of a cave", "quarks"]]


def test_several_links_a_mention_best_first(linker_of):
    linker = linker_of(["rabies virus", "rabies vaccine", "rabies", "bat"], top_n=3)
    (links, none, named) = linker.link_many(["virus of rabies", "quantum chromodynamics", "rabies"])
    assert [link.entity for link, _ in links][:2] == ["rabies virus", "rabies"]
    assert [link.entity for link, _ in named] == ["rabies"]  # its neighbours would be noise
    similarities = [link.similarity for link, _ in links]
    assert similarities == sorted(similarities, reverse=True)
    assert all(similarity >= 0.55 for similarity in similarities)
    assert len({number for _, number in links}) == len(links) <= 3
    assert [(link.entity, number) for link, number in none] == [(None, -1)]


def test_the_seed_of_each_link_is_its_similarity(linker_of):
    linker = linker_of(["rabies virus", "rabies", "bat"], top_n=2)
    scorer = Scorer()
    path = GraphPath(linker, scorer, NoMentions(), np.array([1, 1, 1]), GraphPathSettings(seed_by_document_count=False))
    ranking = path.rank_now(Query(text="?", entities=("virus of rabies",)), 5)
    assert scorer.seeds == {number: link.similarity for link, number in linker.link_many(["virus of rabies"])[0]}
    assert [link.similarity for link in ranking.links] == list(scorer.seeds.values())
    assert len(scorer.seeds) == 2


def test_no_mentions_and_no_entities(linker, word_encoder, tmp_path):
    assert linker.link([]) == []
    empty = Linker(pa.array([], pa.string()), DenseIndex(Store(str(tmp_path)), []), word_encoder(), LinkerSettings())
    assert empty.link(["bat"])[0][1] == -1


class Scorer:
    def score_many(self, seeds, queries):
        self.seeds = seeds[0]
        return [(np.zeros(len(NAMES), np.float32), np.array([0.1, 0, 0.3, 0.1], np.float32)) for _ in seeds]


class NoMentions:
    def mentions(self, texts):
        return [()] * len(texts)


def test_seeds_are_divided_by_their_chunks_and_the_query_itself_is_linked_last(linker):
    counts = np.arange(1, len(NAMES) + 1)
    scorer = Scorer()
    path = GraphPath(linker, scorer, NoMentions(), counts, GraphPathSettings(seed_by_document_count=True))
    ranking = path.rank_now(Query(text="?", entities=("bat", "IL-2")), 10)
    assert scorer.seeds == {NAMES.index(n): 1 / (NAMES.index(n) + 1) for n in ("bat", "IL-2")}
    assert ranking.chunks == (2, 0, 3)  # a chunk without a score is not ranked; ties by number
    ranking = path.rank_now(Query(text="cave exploration trip"), 1)
    assert [link.entity for link in ranking.links] == ["cave exploration"]
    plain = GraphPath(linker, scorer, NoMentions(), counts, GraphPathSettings())
    plain.rank_now(Query(text="?", entities=("IL-2",)), 1)
    assert scorer.seeds == {NAMES.index("IL-2"): 1.0}


def test_queries_ranked_together_are_ranked_as_each_alone(linker):
    class Mentions:
        def mentions(self, texts):
            return [tuple(name for name in NAMES if name in text) for text in texts]

    class SeedScorer:
        def score_many(self, seeds, queries):
            chunks = [np.bincount([entity % 7 for entity in given], minlength=7).astype(np.float32) for given in seeds]
            return [(np.zeros(len(NAMES), np.float32), scores) for scores in chunks]

    path = GraphPath(linker, SeedScorer(), Mentions(), np.ones(len(NAMES), np.int64), GraphPathSettings())
    queries = [
        Query(text="a bat in a cave"),
        Query(text="?", entities=("IL-2", "nothing like it at all")),
        Query(text="cave exploration trip"),
        Query(text="no name here"),
    ]
    together = path.rank_many(queries, [3, 1, 5, 2])
    assert together == [path.rank_now(query, k) for query, k in zip(queries, [3, 1, 5, 2], strict=True)]
    assert path.rank_many([], []) == []


def test_top_is_a_sort_cut_at_k():
    rng = np.random.default_rng(0)
    scores = rng.integers(0, 5, 50).astype(np.float32)
    expected = sorted((i for i in range(50) if scores[i] > 0), key=lambda i: (-scores[i], i))
    for k in (0, 1, 7, 49, 100):
        assert top(scores, k).tolist() == expected[:k]


def test_an_everyday_word_weighs_less_than_a_name(linker):
    scorer = Scorer()
    path = GraphPath(linker, scorer, NoMentions(), np.ones(len(NAMES)), GraphPathSettings(plain_weight=0.25))
    entities = ("bat", "IL-2", "rabies virus")
    path.rank_now(Query(text="Is the bat near IL-2?", entities=entities), 1)
    weights = {NAMES[number]: weight for number, weight in scorer.seeds.items()}
    assert weights == {"bat": 0.25, "IL-2": 1.0, "rabies virus": 1.0}  # the text does not say the last one
