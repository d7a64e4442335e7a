"""The sparse iteration against the definition, solved densely."""

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hybrid_ir.errors import BadInput
from hybrid_ir.graph import chunk_links, knowledge_graph
from hybrid_ir.graph import store as graph_store
from hybrid_ir.graph.pagerank import PageRank
from hybrid_ir.settings import GraphPathSettings, GraphSettings
from hybrid_ir.store import Store

SETTINGS = GraphPathSettings(iterations=200, tolerance=1e-9, meeting_share=0, exact_up_to_edges=10**9)


def stored(tmp_path, triples, mentions, chunks, links=()):
    triple = pa.table(
        {
            "chunk": pa.array([t[0] for t in triples], pa.int64()),
            **{
                n: pa.array([t[i] for t in triples], pa.string())
                for i, n in ((1, "head"), (2, "relation"), (3, "tail"))
            },
        }
    )
    mention = pa.table(
        {
            "chunk": pa.array([m[0] for m in mentions], pa.int64()),
            "name": pa.array([m[1] for m in mentions], pa.string()),
        }
    )
    graph = knowledge_graph.build([triple], [mention])
    none = (np.zeros(0, np.int64), np.zeros(0, np.int64), np.zeros(0, np.float32))
    array = np.array(links, np.int64).reshape(-1, 2)
    doc = chunk_links.merge(
        [
            chunk_links.ChunkLinks(
                array[:, 0], array[:, 1], np.ones(len(array), np.float32), np.zeros(len(array), np.int8)
            )
        ]
    )
    store = Store(str(tmp_path))
    graph_store.write(store, "b", graph, none, doc, chunks, GraphSettings())
    return graph_store.open_graph(store, "b")


def by_definition(graph, seeds, damping):
    size = graph.entities + graph.chunks
    weight = np.zeros((size, size))
    for tail in range(graph.entities):
        for i in range(graph.edge_indptr[tail], graph.edge_indptr[tail + 1]):
            weight[graph.edge_source[i], tail] += graph.edge_weight[i]
            weight[tail, graph.edge_source[i]] += graph.edge_weight[i]
    for entity in range(graph.entities):
        for chunk in graph.mention_chunk[graph.mention_indptr[entity] : graph.mention_indptr[entity + 1]]:
            weight[entity, graph.entities + chunk] += 1
            weight[graph.entities + chunk, entity] += 1
    for chunk in range(graph.chunks):
        for i in range(graph.link_indptr[chunk], graph.link_indptr[chunk + 1]):
            a, b = graph.entities + chunk, graph.entities + graph.link_target[i]
            weight[a, b] += graph.link_weight[i]
            weight[b, a] += graph.link_weight[i]
    start = np.zeros(size)
    for entity, value in seeds.items():
        start[entity] = value
    start /= start.sum()
    moves = np.array([row / row.sum() if row.sum() else start for row in weight])
    return np.linalg.solve(np.eye(size) - damping * moves.T, (1 - damping) * start)


NAMES = st.sampled_from("abcdefg")


@given(
    st.lists(st.tuples(st.integers(0, 3), NAMES, st.sampled_from(["r", "s"]), NAMES), min_size=1, max_size=15),
    st.lists(st.tuples(st.integers(0, 3), NAMES), max_size=8),
    st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3)), max_size=4),
    st.sampled_from([0.5, 0.85]),
)
def test_it_is_the_stationary_distribution(tmp_path_factory, triples, mentions, links, damping):
    graph = stored(tmp_path_factory.mktemp("g"), triples, mentions, 4, sorted(set(links)))
    seeds = {0: 1.0, graph.entities - 1: 0.25}
    entities, chunks = PageRank(graph, SETTINGS.model_copy(update={"damping": damping})).score(seeds)
    assert np.allclose(np.concatenate([entities, chunks]), by_definition(graph, seeds, damping), atol=1e-5)


def test_two_hops_reach_a_chunk_that_names_no_seed(tmp_path):
    triples = [(0, "cave", "is home of", "bat"), (1, "bat", "carry", "rabies"), (2, "iron", "treats", "anaemia")]
    graph = stored(tmp_path, triples, [], 3)
    _, chunks = PageRank(graph, SETTINGS).score({graph.entity_names.to_pylist().index("cave"): 1.0})
    assert chunks[0] > chunks[1] > chunks[2] == 0


def test_seeds_outside_the_graph_and_no_seeds(tmp_path):
    graph = stored(tmp_path, [(0, "a", "r", "b")], [], 1)
    scorer = PageRank(graph, SETTINGS)
    with pytest.raises(BadInput, match="Seed 2"):
        scorer.score({2: 1.0})
    assert not scorer.score({})[1].any()


def test_a_graph_without_entities_or_chunks(tmp_path):
    assert PageRank(stored(tmp_path / "a", [], [], 2), SETTINGS).score({})[1].tolist() == [0, 0]
    assert len(PageRank(stored(tmp_path / "b", [], [], 0), SETTINGS).score({})[1]) == 0


def test_a_large_graph_is_pushed_to_the_same_ranking(tmp_path):
    """Skewed, as graphs of text are: few entities in very many chunks."""
    rng = np.random.default_rng(2)
    names = [f"e{i}" for i in (300 * rng.random(4000) ** 3).astype(int)]
    triples = [(i % 800, names[i], "r", names[i + 2000]) for i in range(2000)]
    links = sorted({(int(a), int(b)) for a, b in rng.integers(0, 800, (1500, 2)) if a != b})
    graph = stored(tmp_path, triples, [], 800, links)
    iterated = PageRank(graph, SETTINGS)
    pushed = PageRank(graph, GraphPathSettings(exact_up_to_edges=0, push_tolerance=1e-9, meeting_share=0))
    for seeds in ({3: 1.0}, {1: 0.2, graph.entities - 1: 1.0}, {5: 0.0, 7: 2.0}):
        for exact, near in zip(iterated.score(seeds), pushed.score(seeds), strict=True):
            assert np.allclose(exact, near, atol=1e-6)
            assert np.argsort(-exact, kind="stable")[:10].tolist() == np.argsort(-near, kind="stable")[:10].tolist()
    with pytest.raises(BadInput, match="Seed"):
        pushed.score({graph.entities: 1.0})
    assert not pushed.score({})[1].any()


@pytest.mark.parametrize("edges", [0, 10**9])
def test_queries_scored_together_are_scored_as_each_alone(tmp_path, edges):
    rng = np.random.default_rng(4)
    triples = [(i % 90, f"e{rng.integers(40)}", "r", f"e{rng.integers(40)}") for i in range(200)]
    scorer = PageRank(stored(tmp_path, triples, [], 90), GraphPathSettings(exact_up_to_edges=edges))
    queries = [{3: 1.0, 8: 0.5}, {}, {7: 0.0}, {1: 2.0}]
    for one, alone in zip(scorer.score_many(queries, [""] * 4), map(scorer.score, queries), strict=True):
        for ours, theirs in zip(one, alone, strict=True):
            np.testing.assert_allclose(ours, theirs, atol=1e-6)


@pytest.mark.parametrize("share", [0.3, 0.5])
def test_pushed_walks_meet_where_iterated_ones_do(tmp_path, share):
    rng = np.random.default_rng(5)
    triples = [(i % 90, f"e{rng.integers(60)}", "r", f"e{rng.integers(60)}") for i in range(150)]
    graph = stored(tmp_path, triples, [], 90)
    settings = GraphPathSettings(meeting_share=share, push_tolerance=1e-9)
    iterated = PageRank(graph, settings)
    pushed = PageRank(graph, settings.model_copy(update={"exact_up_to_edges": 0}))
    for seeds in ({3: 1.0, 8: 0.5}, {0: 0.2, 11: 1.0, 30: 0.7}):
        for exact, near in zip(iterated.score(seeds), pushed.score(seeds), strict=True):
            np.testing.assert_allclose(exact, near, atol=1e-4)


BETWEEN = [(0, "a", "r", "m"), (1, "b", "r", "m"), (2, "a", "r", "x"), (3, "a", "r", "y")]


@pytest.mark.parametrize("exact_up_to", [10_000, 0])
def test_walks_start_again_where_they_meet(tmp_path, exact_up_to):
    if not exact_up_to:
        pytest.importorskip("numba")
    graph = stored(tmp_path, BETWEEN, [], 4)
    names = graph.entity_names.to_pylist()
    seeds = {names.index("a"): 1.0, names.index("b"): 1.0}
    settings = GraphPathSettings(exact_up_to_edges=exact_up_to, meeting_points=1)
    scores = [PageRank(graph, settings.model_copy(update={"meeting_share": s})).score(seeds) for s in (0.0, 0.5)]
    meeting = [entities[names.index("m")] for entities, _ in scores]
    assert meeting[1] > 1.5 * meeting[0]
    before, after = (chunks for _, chunks in scores)
    assert after[:2].sum() > before[:2].sum()
    assert after[2:].sum() < before[2:].sum()
    assert np.isclose(sum(part.sum() for part in scores[1]), 1.0, atol=1e-3)


def test_seeds_that_never_meet_keep_their_walks(tmp_path):
    graph = stored(tmp_path, [(0, "a", "r", "x"), (1, "b", "r", "y")], [], 2)
    names = graph.entity_names.to_pylist()
    seeds = {names.index("a"): 1.0, names.index("b"): 0.5}
    apart, plain = PageRank(graph, GraphPathSettings()).score(seeds), PageRank(graph, SETTINGS).score(seeds)
    for a, b in zip(apart, plain, strict=True):
        assert np.allclose(a, b, atol=1e-6)
