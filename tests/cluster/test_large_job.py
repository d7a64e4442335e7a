"""What a job does only on a large graph, asked for on a small one: partitions, and synonyms by clusters."""

import json

import pytest
from typer.testing import CliRunner

from hybrid_ir.cli import app
from hybrid_ir.graph.partition_store import open_partition
from hybrid_ir.graph.store import open_graph
from hybrid_ir.index import layout, manifest
from hybrid_ir.progress import Reporter
from hybrid_ir.settings import BuildSettings, GraphSettings, Settings
from hybrid_ir.store import Store
from ray_jobs.index import index, update

pytestmark = [pytest.mark.cluster, pytest.mark.slow, pytest.mark.usefixtures("shared_ray")]

QUIET = Reporter(quiet=True)
FACTS = {
    "bats": "Bats carry rabies virus. Rabies virus infects nerve cells. The rabies viruses infect a nerve cell.",
    "warfarin": "Warfarin inhibits vitamin K epoxide reductase. CYP2C9 metabolises warfarin.",
    "digoxin": "Digoxin inhibits the sodium pump. Clarithromycin raises the level of digoxin.",
}
NEW = {"fluconazole": "Fluconazole inhibits CYP2C9. Fluconazole treats candidiasis. A sodium pump moves sodium."}


def settings(**graph):
    return Settings(build=BuildSettings(shards=2, graph=GraphSettings(synonym_threshold=0.6, **graph)))


def edges(root):
    store = Store(root)
    made = manifest.read(store)
    graph = open_graph(store, layout.build(made.build_id))
    names, relations = graph.entity_names.to_pylist(), graph.relation_names.to_pylist()
    return made, {
        (names[graph.edge_source[i]], relations[graph.edge_relation[i]], names[tail])
        for tail in range(graph.entities)
        for i in range(graph.edge_indptr[tail], graph.edge_indptr[tail + 1])
    }


def places(root, made):
    """The partition of each entity, by name."""
    store, folder = Store(root), layout.build(made.build_id)
    names = open_graph(store, folder).entity_names.to_pylist()
    parts = [open_partition(store, folder, number) for number in range(made.partitions.count)]
    return {names[entity]: part.number for part in parts for entity in part.entities.tolist()}


def test_partitions_and_clusters_give_the_graph_that_one_partition_and_all_pairs_give(tmp_path):
    for name, facts in (("old", FACTS), ("new", NEW)):
        lines = [json.dumps({"id": i, "title": i.title(), "text": t}) + "\n" for i, t in facts.items()]
        (tmp_path / f"{name}.jsonl").write_text("".join(lines))
    plain, large = str(tmp_path / "plain"), str(tmp_path / "large")
    index([str(tmp_path / "old.jsonl"), str(tmp_path / "new.jsonl")], plain, settings(), QUIET)
    before = index([str(tmp_path / "old.jsonl")], large, settings(partitions=3, resolution_blocks_above=1), QUIET)
    update(large, [str(tmp_path / "new.jsonl")], [], None, QUIET)
    made, found = edges(large)
    one, expected = edges(plain)
    assert found == expected
    assert any(relation == "equivalent" for _, relation, _ in found)
    assert (one.partitions.count, one.partitions.method, one.resolution) == (1, "whole", None)
    assert (made.partitions.count, made.partitions.method) == (3, "metis")
    assert 0 <= made.partitions.cut < 0.5
    # Entities stay where they stood; only which partition they are in may differ from a full rebuild.
    stood, stand = places(large, before), places(large, made)
    assert made.partitions.kept == len(stood.keys() & stand.keys()) > 10
    assert all(stand[name] == place for name, place in stood.items() if name in stand)
    assert made.partitions.scratch_cut == before.partitions.cut
    assert made.resolution.recall == 1.0  # so few entities are one cluster
    store = Store(large)
    assert manifest.verify(store, made) == []
    opened = [open_partition(store, layout.build(made.build_id), number) for number in range(3)]
    assert sum(len(part.entities) for part in opened) == made.counts.entities
    shown = CliRunner().invoke(app, ["inspect", "--root", large]).output
    assert "graph partitions" in shown
    assert "estimated recall 100.0%" in shown
