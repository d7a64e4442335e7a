"""Every division is whole, even, the same again, and cuts what it says it cuts."""

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hybrid_ir.errors import BadInput
from hybrid_ir.graph import partition
from hybrid_ir.graph.partition_store import Edges, read_standing, write_partitions
from hybrid_ir.store import Store

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


def grown(clustered, rng, share=0.1):
    """(the clustered graph without some of its entities, divided; where each entity of the whole stood or -1)."""
    entities, head, tail = clustered
    stood = rng.random(entities) >= share
    number = np.cumsum(stood) - 1
    both = stood[head] & stood[tail]
    old = partition.assign(int(stood.sum()), number[head[both]], number[tail[both]], 8)
    part = np.where(stood, old.part_of_entity[number], -1).astype(np.int32)
    return old, partition.Standing(part, 8, old.method, old.cut)


def test_an_update_leaves_entities_where_they_stood_and_puts_new_ones_near_their_neighbours(clustered):
    _, head, tail = clustered
    old, standing = grown(clustered, np.random.default_rng(5))
    stood = standing.part_of_entity >= 0
    found = partition.assign(*clustered, 8, standing=standing)
    assert np.array_equal(found.part_of_entity[stood], standing.part_of_entity[stood])
    assert (found.kept, found.method, found.scratch_cut) == (stood.sum(), "metis", old.cut)
    assert found.cut < partition.KEPT_CUT * old.cut + partition.KEPT_CUT_MORE
    assert found.balance <= partition.KEPT_BALANCE
    touching = ~stood[head] | ~stood[tail]
    apart = np.mean(found.part_of_entity[head[touching]] != found.part_of_entity[tail[touching]])
    assert apart < 0.45  # in any parts it would be 0.875
    again = partition.assign(*clustered, 8, standing=standing)
    assert np.array_equal(found.part_of_entity, again.part_of_entity)


@pytest.mark.parametrize("why", ["cut", "balance", "parts"])
def test_a_division_that_became_bad_is_made_anew(clustered, why):
    entities = clustered[0]
    _, standing = grown(clustered, np.random.default_rng(5))
    part, parts = standing.part_of_entity, 8
    if why == "cut":
        part = np.random.default_rng(0).integers(0, 8, entities).astype(np.int32)
    elif why == "balance":
        part = np.where(part == 0, 1, part)
    else:
        parts = 9
    changed = partition.Standing(part, 8, standing.method, standing.scratch_cut)
    found = partition.assign(*clustered, parts, standing=changed)
    scratch = partition.assign(*clustered, parts)
    assert np.array_equal(found.part_of_entity, scratch.part_of_entity)
    assert (found.kept, found.scratch_cut) == (0, scratch.cut)


def test_updates_do_not_wear_a_division_down(clustered):
    """The bound is on the cut of the last division from scratch, not on that of the build before."""
    _, standing = grown(clustered, np.random.default_rng(5))
    first = partition.assign(*clustered, 8, standing=standing)
    worn = partition.Standing(first.part_of_entity, 8, first.method, first.cut / 2)
    assert partition.assign(*clustered, 8, standing=worn).kept == 0


@given(
    st.integers(2, 40).flatmap(
        lambda n: st.tuples(
            st.lists(st.integers(-1, 2), min_size=n, max_size=n),
            st.lists(st.tuples(st.integers(0, n - 1), st.integers(0, n - 1)), max_size=4 * n),
        )
    ),
    st.sampled_from(["metis", "stream", "hash"]),
)
def test_whatever_stood_before_the_division_is_whole_and_keeps_the_bounds(graph, method):
    before, edges = graph
    head, tail = np.array(edges, np.int64).reshape(-1, 2).T
    standing = partition.Standing(np.array(before, np.int32), 3, method, 0.5)
    found = partition.assign(len(before), head, tail, 3, method, standing)
    part, stood = found.part_of_entity, standing.part_of_entity >= 0
    assert part.min() >= 0
    assert part.max() < 3
    if found.kept:
        assert found.kept == stood.sum()
        assert np.array_equal(part[stood], standing.part_of_entity[stood])
        assert max(np.bincount(part)) <= -(-partition.KEPT_BALANCE * len(part) // 3)
        assert found.cut <= partition.KEPT_CUT * 0.5 + partition.KEPT_CUT_MORE
    elif stood.any():
        assert np.array_equal(part, partition.assign(len(before), head, tail, 3, method).part_of_entity)


def test_where_entities_stood_is_found_by_name(tmp_path):
    store = Store(str(tmp_path))
    names = ["a", "b", "c", "d", "e"]
    store.write_table("old/entities/part-00000.parquet", pa.table({"name": names}))
    edges = Edges(np.zeros(6, np.int64), np.zeros(0, np.int64), np.zeros(0, np.int32), np.zeros(0, np.float32))
    division = partition.Assignment(np.array([2, 0, 2, 3, 0], np.int32), 5, "stream", 0.25, 1.5, 0.125)
    write_partitions(store, "old", edges, division)
    found = read_standing(store, "old", pa.array(["e", "aa", "d", "c", "b", "z", "a"]))
    assert found.part_of_entity.tolist() == [0, -1, 3, 2, 0, -1, 2]
    assert (found.parts, found.method, found.scratch_cut) == (5, "stream", 0.125)
