"""What is read back is the graph that was written, whole or one partition at a time."""

import hashlib

import numpy as np
import pyarrow as pa
import pytest

from hybrid_ir.errors import Damaged, NotFound
from hybrid_ir.graph import chunk_links, knowledge_graph
from hybrid_ir.graph import store as graph_store
from hybrid_ir.graph.pagerank import PageRank
from hybrid_ir.graph.partition_store import open_partition, open_relabelled, read_partitions
from hybrid_ir.settings import GraphPathSettings, GraphSettings
from hybrid_ir.store import Store

SETTINGS = GraphPathSettings()
ENTITIES, CHUNKS = 60, 40


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    """{partitions: (store, its files' entries)} of one random graph, with parallel edges and loops."""
    rng = np.random.default_rng(5)
    names = np.array([f"e{n:02d}" for n in range(ENTITIES)])
    count = 300
    triples = pa.table(
        {
            "chunk": rng.integers(0, CHUNKS, count),
            "head": names[rng.integers(0, ENTITIES, count)],
            "relation": np.array(["r", "s", "t"])[rng.integers(0, 3, count)],
            "tail": names[rng.integers(0, ENTITIES - 5, count)],
        }
    )
    mentions = pa.table({"chunk": np.zeros(ENTITIES, np.int64), "name": names})
    graph = knowledge_graph.build([triples], [mentions])
    synonyms = np.array([0, 3, 7]), np.array([59, 4, 12]), np.array([0.9, 0.95, 0.99], np.float32)
    made = {}
    for partitions in (1, 3, 7, 100):
        store = Store(str(tmp_path_factory.mktemp("graph")))
        settings = GraphSettings(partitions=partitions)
        made[partitions] = (
            store,
            graph_store.write(store, "b", graph, synonyms, chunk_links.merge([]), CHUNKS, settings),
        )
    return made


def edges_of(graph):
    tail = np.repeat(np.arange(graph.entities), np.diff(graph.edge_indptr))
    return list(
        zip(
            graph.edge_source.tolist(),
            graph.edge_relation.tolist(),
            tail.tolist(),
            graph.edge_weight.tolist(),
            strict=True,
        )
    )


@pytest.mark.parametrize("partitions", [3, 7, 100])
def test_the_graph_is_the_same_however_it_is_divided(written, partitions):
    one, many = (graph_store.open_graph(written[n][0], "b") for n in (1, partitions))
    for name in ("edge_indptr", "edge_source", "edge_relation", "edge_weight"):
        assert np.array_equal(getattr(one, name), getattr(many, name)), name
        assert getattr(one, name).dtype == getattr(many, name).dtype
    seeds = {0: 1.0, 17: 0.5}
    for a, b in zip(PageRank(one, SETTINGS).score(seeds), PageRank(many, SETTINGS).score(seeds), strict=True):
        assert np.array_equal(a, b)
    assert PageRank(many, SETTINGS).score(seeds)[1].any()


@pytest.mark.parametrize("partitions", [1, 3, 7, 100])
def test_partitions_alone_hold_each_edge_once_in_either_direction(written, partitions):
    store, _ = written[partitions]
    division = read_partitions(store, "b")
    assert division.count == partitions
    label = open_relabelled(store, "b")
    opened = [open_partition(store, "b", number) for number in range(partitions)]
    number_of = np.concatenate([part.entities for part in opened])
    assert np.array_equal(number_of[label], np.arange(ENTITIES))
    expected = sorted(edges_of(graph_store.open_graph(store, "b")))
    into, out = [], []
    for part in opened:
        assert part.start == division.starts[part.number]
        assert np.array_equal(label[part.entities], part.start + np.arange(len(part.entities)))
        for local in range(len(part.entities)):
            here = int(part.entities[local])
            for i in range(part.into.indptr[local], part.into.indptr[local + 1]):
                other = int(number_of[part.into.source[i]])
                into.append((other, int(part.into.relation[i]), here, float(part.into.weight[i])))
            for i in range(part.out_indptr[local], part.out_indptr[local + 1]):
                other = int(number_of[part.out_target[i]])
                out.append((here, int(part.out_relation[i]), other, float(part.out_weight[i])))
    assert sorted(into) == sorted(out) == expected
    tails = np.array([edge[2] for edge in expected])
    heads = np.array([edge[0] for edge in expected])
    owner = np.searchsorted(division.starts, label, side="right") - 1
    assert division.cut == pytest.approx(np.mean(owner[heads] != owner[tails]))


def test_the_entries_name_every_file_and_its_bytes(written):
    for store, files in written.values():
        assert sorted(files) == sorted(store.files("b"))
        for name, entry in files.items():
            data = store.read(name)
            assert (len(data), hashlib.sha256(data).hexdigest()) == (entry.bytes, entry.sha256), name


def test_arrays_are_mapped_not_read(written):
    store, _ = written[3]
    part = open_partition(store, "b", 1)
    assert isinstance(part.into.source, np.memmap)
    assert isinstance(part.out_target, np.memmap)
    assert isinstance(graph_store.open_graph(written[1][0], "b").edge_source, np.memmap)


def test_what_is_not_there_is_named(written):
    store, _ = written[3]
    with pytest.raises(NotFound, match=r"no graph partition 3; it has 0 to 2"):
        open_partition(store, "b", 3)
    store.write("broken/graph/partitions.json", b'{"starts": "x"}')
    with pytest.raises(Damaged, match=r"partitions\.json"):
        read_partitions(store, "broken")
    store.remove("broken")
