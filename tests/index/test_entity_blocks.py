"""Synonyms by coarse clusters against all pairs: what they find, and whether the estimate says so."""

import numpy as np
import pyarrow as pa
import pytest

from hybrid_ir.graph import chunk_links, knowledge_graph
from hybrid_ir.graph.store import write as write_graph
from hybrid_ir.index import entity_blocks, entity_parts
from hybrid_ir.index.plan import BuildPlan
from hybrid_ir.settings import BuildSettings, GraphSettings
from hybrid_ir.store import Store

NAMES = 3000
SETTINGS = BuildSettings(graph=GraphSettings(synonym_threshold=0.8, resolution_blocks_above=NAMES // 2))


class Table:
    """Looks names up: groups of ten around a centre, most of a group within the threshold of each other."""

    dimension = 32
    fingerprint = {"model": "table"}  # noqa: RUF012

    def encode_passages(self, titles, texts):
        rows = np.array([int(text.split()[1]) for text in texts], np.int64)
        centres = np.random.default_rng(0).normal(size=(NAMES // 10, self.dimension))[rows // 10]
        noise = np.random.default_rng(1).normal(size=(NAMES, self.dimension))[rows]
        vectors = (centres + 0.4 * noise).astype(np.float32)
        vectors[rows % 100 == 99] = 0
        return vectors


@pytest.fixture(autouse=True)
def small(monkeypatch):
    """Many clusters, several runs in some of them, few checked entities."""
    monkeypatch.setattr(entity_blocks, "ENTITIES_PER_CLUSTER", 100)
    monkeypatch.setattr(entity_blocks, "ENTITIES_PER_TILE", 200)
    monkeypatch.setattr(entity_blocks, "CHECKED", 400)
    monkeypatch.setattr(entity_parts, "ENTITIES_PER_PART", 512)


def names(count=NAMES):
    return pa.array([f"name {n:06d}" for n in range(count)])


def prepared(root, build, entities, settings, previous=None):
    plan = BuildPlan(Store(str(root)), build, settings, (), previous)
    parts = entity_parts.write_names(plan, entities)
    entity_parts.mark_new(plan, parts)
    for part in range(parts):
        entity_parts.encode(plan, part, parts, Table())
    return plan, parts


def by_clusters(plan, parts):
    entity_blocks.train(plan, parts)
    for part in range(parts):
        entity_blocks.assign(plan, part)
    for tile in entity_blocks.tiles(plan, parts):
        entity_blocks.synonym_tile(plan, parts, *tile)


def by_all_pairs(plan, parts):
    for tile in entity_parts.tiles(plan, parts):
        entity_parts.synonym_tile(plan, *tile)


def pairs_of(found):
    return set(zip(found[0].tolist(), found[1].tolist(), found[2].tolist(), strict=True))


@pytest.fixture
def any_numbers():
    graph = SETTINGS.graph.model_copy(update={"synonym_digits_must_match": False})
    return SETTINGS.model_copy(update={"graph": graph})


def test_clusters_find_nearly_all_and_the_estimate_is_near_the_truth(tmp_path, any_numbers, monkeypatch):
    entities = names()
    plan, parts = prepared(tmp_path / "all", "b", entities, any_numbers)
    by_all_pairs(plan, parts)
    exact = pairs_of(entity_parts.collect(plan, entities))
    assert len(exact) > NAMES
    recall = {}
    for nearest in (1, 4):
        monkeypatch.setattr(entity_blocks, "NEAREST", nearest)
        plan, parts = prepared(tmp_path / f"nearest-{nearest}", "b", entities, any_numbers)
        assert entity_blocks.wanted(plan, len(entities))
        by_clusters(plan, parts)
        found = entity_parts.collect(plan, entities)
        assert pairs_of(found) <= exact  # the same cosines, and nothing else
        recall[nearest] = len(pairs_of(found)) / len(exact)
        said = entity_blocks.resolution(plan, entities, found)
        assert said.clusters == NAMES // 100
        assert said.clusters_per_entity == nearest
        assert 400 <= said.checked_entities < 500
        assert said.checked_pairs > 300
        assert said.recall == pytest.approx(recall[nearest], abs=0.06)
    assert 0.3 < recall[1] < recall[4]
    assert recall[4] > 0.95


def test_a_second_run_gives_the_same_bytes_and_redoes_nothing(tmp_path, any_numbers):
    entities = names()
    first, parts = prepared(tmp_path / "a", "b", entities, any_numbers)
    second, _ = prepared(tmp_path / "b", "b", entities, any_numbers)
    by_clusters(first, parts)
    by_clusters(second, parts)
    files = first.store.files(f"{first.work}/synonyms")
    assert len(files) == len(entity_blocks.tiles(first, parts)) > 10
    assert {name: first.store.sha256(name) for name in files} == {name: second.store.sha256(name) for name in files}
    for name in first.store.files(f"{first.work}/name-vectors"):
        first.store.delete(name)
    by_clusters(first, parts)  # nothing is compared again


def test_names_with_other_numbers_are_left_out_of_the_pairs_and_of_the_estimate(tmp_path):
    entities = names()
    plan, parts = prepared(tmp_path, "b", entities, SETTINGS)
    by_clusters(plan, parts)
    found = entity_parts.collect(plan, entities)
    assert not len(found[0])
    said = entity_blocks.resolution(plan, entities, found)
    assert (said.checked_pairs, said.recall) == (0, None)


@pytest.mark.parametrize("added", [1, 400, 1500])
def test_new_names_against_all_give_the_pairs_of_a_fresh_build(tmp_path, any_numbers, added):
    old, entities = names(NAMES - added), names()
    first, parts = prepared(tmp_path, "old", old, any_numbers)
    by_all_pairs(first, parts)
    graph = knowledge_graph.build([], [pa.table({"chunk": np.zeros(len(old), np.int64), "name": old})])
    known = entity_parts.collect(first, old)
    write_graph(first.store, first.folder, graph, known, chunk_links.merge([]), 1, any_numbers.graph)
    plan, parts = prepared(tmp_path, "new", entities, any_numbers, previous="old")
    assert len(entity_parts.tiles(plan, parts)) <= parts * (1 + added // 512)  # a row of tiles for each full block
    by_all_pairs(plan, parts)
    fresh, parts = prepared(tmp_path / "fresh", "b", entities, any_numbers)
    by_all_pairs(fresh, parts)
    assert pairs_of(entity_parts.collect(plan, entities)) == pairs_of(entity_parts.collect(fresh, entities))


def test_a_changed_build_compares_only_what_is_new(tmp_path, any_numbers):
    old, entities = names(NAMES - 400), names()
    first, parts = prepared(tmp_path, "old", old, any_numbers)
    by_all_pairs(first, parts)
    graph = knowledge_graph.build([], [pa.table({"chunk": np.zeros(len(old), np.int64), "name": old})])
    known = entity_parts.collect(first, old)
    write_graph(first.store, first.folder, graph, known, chunk_links.merge([]), 1, any_numbers.graph)
    plan, parts = prepared(tmp_path, "new", entities, any_numbers, previous="old")
    by_clusters(plan, parts)
    written = [plan.store.read_table(name) for name in plan.store.files(f"{plan.work}/synonyms")]
    b = np.concatenate([table["b"].to_numpy() for table in written])
    assert len(b)
    assert b.min() >= len(old)  # one of each pair is new
    fresh, parts = prepared(tmp_path / "fresh", "b", entities, any_numbers)
    by_all_pairs(fresh, parts)
    exact, found = pairs_of(entity_parts.collect(fresh, entities)), pairs_of(entity_parts.collect(plan, entities))
    assert found <= exact
    assert len(found) > 0.97 * len(exact)


def test_vectors_that_are_all_zero_make_no_tile(tmp_path, any_numbers, monkeypatch):
    monkeypatch.setattr(Table, "encode_passages", lambda self, titles, texts: np.zeros((len(texts), 32), np.float32))
    plan, parts = prepared(tmp_path, "b", names(2000), any_numbers)
    by_clusters(plan, parts)
    assert entity_blocks.tiles(plan, parts) == []
