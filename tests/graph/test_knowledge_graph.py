import numpy as np
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from hybrid_ir.graph import knowledge_graph
from hybrid_ir.graph.knowledge_graph import EQUIVALENT, indptr

NAMES = st.sampled_from(["bat", "rabies", "CAT", "cat", "IL-2Rα", "µg", "脳"])
RELATIONS = st.sampled_from(["carry", "cause", "does not cause", EQUIVALENT])
TRIPLES = st.lists(st.tuples(st.integers(0, 5), NAMES, RELATIONS, NAMES), max_size=30)
MENTIONS = st.lists(st.tuples(st.integers(0, 5), NAMES), max_size=30)


def graph_of(triples, mentions):
    columns = list(zip(*triples, strict=True)) or [(), (), (), ()]
    triple = pa.table(
        {
            "chunk": pa.array(columns[0], pa.int64()),
            **{n: pa.array(c, pa.string()) for n, c in zip(("head", "relation", "tail"), columns[1:], strict=True)},
        }
    )
    columns = list(zip(*mentions, strict=True)) or [(), ()]
    mention = pa.table({"chunk": pa.array(columns[0], pa.int64()), "name": pa.array(columns[1], pa.string())})
    return knowledge_graph.build([triple], [mention])


@given(TRIPLES, MENTIONS)
def test_the_graph_says_what_the_triples_and_mentions_said(triples, mentions):
    graph = graph_of(triples, mentions)
    entities, relations = graph.entities.to_pylist(), graph.relations.to_pylist()
    assert entities == sorted({n for _, h, _, t in triples for n in (h, t)} | {n for _, n in mentions})
    assert relations[0] == EQUIVALENT
    assert len(set(relations)) == len(relations)
    edges = {
        (entities[h], relations[r], entities[t]): w
        for h, r, t, w in zip(graph.head, graph.relation, graph.tail, graph.weight, strict=True)
    }
    stated = {}
    for chunk, *triple in triples:
        stated.setdefault(tuple(triple), set()).add(chunk)
    assert edges == {triple: len(chunks) for triple, chunks in stated.items()}  # parallel relations are kept
    assert graph.statements == len(set(triples))
    held = {(entities[e], c) for e, c in zip(graph.mention_entity, graph.mention_chunk, strict=True)}
    assert held == {(n, c) for c, h, _, t in triples for n in (h, t)} | {(n, c) for c, n in mentions}


@given(TRIPLES, MENTIONS, st.randoms())
def test_the_order_of_the_input_changes_nothing(triples, mentions, random):
    first = graph_of(triples, mentions)
    random.shuffle(triples)
    random.shuffle(mentions)
    second = graph_of(triples, mentions)
    for field in ("head", "relation", "tail", "weight", "mention_entity", "mention_chunk"):
        assert np.array_equal(getattr(first, field), getattr(second, field))
    assert first.entities.equals(second.entities)


def test_nothing_at_all_is_an_empty_graph():
    graph = knowledge_graph.build([], [])
    assert len(graph.entities) == 0
    assert graph.relations.to_pylist() == [EQUIVALENT]


def test_indptr_counts_rows_without_entries():
    assert indptr(np.array([1, 1, 3]), 5).tolist() == [0, 0, 2, 2, 3, 3]
