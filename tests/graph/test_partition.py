"""Every division is whole, even, the same again, and cuts what it says it cuts."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hybrid_ir.errors import BadInput
from hybrid_ir.graph import partition

METHODS = ["auto", "metis", "stream", "hash"]


@pytest.fixture(scope="module")
def clustered():
    """(entities, head, tail): 40 groups of 50, four edges in five within a group, names in no order."""
    rng = np.random.default_rng(3)
    group = rng.permutation(np.repeat(np.arange(40), 50))
    members = np.argsort(group, kind="stable").reshape(40, 50)
    head = rng.integers(0, 2000, 10_000)
    tail = np.where(rng.random(10_000) < 0.8, members[group[head], rng.integers(0, 50, 10_000)], rng.permutation(head))
    return 2000, head, tail


@given(
    st.integers(1, 40).flatmap(
        lambda n: st.tuples(
            st.just(n), st.lists(st.tuples(st.integers(0, n - 1), st.integers(0, n - 1)), max_size=4 * n)
        )
    ),
    st.integers(1, 9),
    st.sampled_from(METHODS),
)
def test_a_division_is_whole_even_repeatable_and_its_cut_is_what_a_count_finds(graph, parts, method):
    entities, edges = graph
    head, tail = np.array(edges, np.int64).reshape(-1, 2).T
    found = partition.assign(entities, head, tail, parts, method)
    part = found.part_of_entity
    assert part.shape == (entities,)
    assert part.dtype == np.int32
    assert part.min() >= 0
    assert part.max() < parts
    sizes = [sum(1 for p in part if p == i) for i in range(parts)]
    assert max(sizes) <= -(-partition.SLACK * entities // parts)
    assert found.balance == pytest.approx(max(sizes) * parts / entities)
    assert found.cut == pytest.approx(sum(part[a] != part[b] for a, b in edges) / max(len(edges), 1))
    again = partition.assign(entities, head, tail, parts, method)
    assert np.array_equal(part, again.part_of_entity)
    backward = partition.assign(entities, tail, head, parts, method)
    assert np.array_equal(part, backward.part_of_entity)  # direction does not count


def test_a_partitioner_finds_the_groups_that_a_hash_tears_apart(clustered):
    cut = {method: partition.assign(*clustered, 8, method).cut for method in METHODS}
    assert cut["hash"] > 0.8
    assert cut["metis"] < 0.3
    assert cut["stream"] < 0.45
    assert cut["auto"] == cut["metis"]


def test_entities_without_edges_are_spread(clustered):
    entities, head, tail = clustered
    lonely = 10 * entities
    for method in ("metis", "stream"):
        part = partition.assign(entities + lonely, head, tail, 4, method).part_of_entity
        assert np.ptp(np.bincount(part)) <= 4
    nothing = partition.assign(10, head[:0], tail[:0], 3, "metis")
    assert sorted(np.bincount(nothing.part_of_entity).tolist()) == [2, 4, 4]
    assert nothing.cut == 0


def test_which_method_auto_takes(clustered, monkeypatch):
    monkeypatch.setattr(partition, "METIS_EDGES", 100)
    assert partition.assign(*clustered, 3).method == "stream"
    monkeypatch.setattr(partition, "find_spec", lambda name: None)
    assert partition.assign(*clustered, 3).method == "hash"
    assert partition.assign(*clustered, 1).method == "whole"


def test_no_partition_is_refused(clustered):
    with pytest.raises(BadInput, match="partitions: 0"):
        partition.assign(*clustered, 0)


def test_how_many_partitions_the_settings_ask_for():
    assert [partition.part_count(n, "auto") for n in (0, 1, 1_000_000, 1_000_001)] == [1, 1, 1, 2]
    assert partition.part_count(5, 3) == 3
