"""Updates: what a changed index holds is what a new index of the changed corpus holds."""

import json
import shutil
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

import hybrid_ir
from hybrid_ir.errors import BadInput, NotFound
from hybrid_ir.graph.store import open_graph
from hybrid_ir.index import inspection, layout, manifest, retention
from hybrid_ir.index.chunk_store import ChunkStore
from hybrid_ir.index.plan import plan_of
from hybrid_ir.progress import Reporter
from hybrid_ir.settings import BuildSettings, GraphSettings, Settings
from hybrid_ir.store import Store
from ray_jobs.index import compact, index, update

pytestmark = [pytest.mark.cluster, pytest.mark.slow, pytest.mark.usefixtures("shared_ray")]

SETTINGS = Settings(build=BuildSettings(shards=2, graph=GraphSettings(chunk_neighbours=2, chunk_similarity_floor=0.3)))
QUIET = Reporter(quiet=True)
FACTS = {
    "bats": "Bats carry rabies virus. Rabies virus infects nerve cells.",
    "caves": "Caves are home to bats. Explorers visit caves.",
    "warfarin": "Warfarin inhibits vitamin K epoxide reductase. CYP2C9 metabolises warfarin.",
    "fluconazole": "Fluconazole inhibits CYP2C9. Fluconazole treats candidiasis.",
    "iodine": "Iodine is part of thyroxine. Amiodarone contains iodine.",
    "digoxin": "Digoxin inhibits the sodium pump. Clarithromycin raises the level of digoxin.",
    "statins": "Simvastatin lowers cholesterol. Clarithromycin inhibits CYP3A4.",
    "zinc": "",
    "lead": "",
}
NEW = {
    "bats": "Bats carry rabies virus and Ebola virus. Fruit bats live in Africa.",
    "lyme": "Ticks transmit Borrelia burgdorferi. Doxycycline treats Lyme disease.",
    "zinc": "Zinc is a metal.",
}


def write(path, facts):
    path.write_text("".join(json.dumps({"id": i, "title": i.title(), "text": t}) + "\n" for i, t in facts.items()))
    return str(path)


@pytest.fixture(scope="module")
def roots(tmp_path_factory, shared_ray):
    """(the changed index's root, the root of a new index of what the corpus then is)."""
    folder = tmp_path_factory.mktemp("update")
    changed, fresh = str(folder / "changed"), str(folder / "fresh")
    index([write(folder / "old.jsonl", FACTS)], changed, SETTINGS, QUIET)
    update(changed, [write(folder / "new.jsonl", NEW)], ["statins"], None, QUIET)
    after = {**FACTS, **NEW}
    del after["statins"]
    index([write(folder / "all.jsonl", after)], fresh, SETTINGS, QUIET)
    return changed, fresh


def copied(root, folder):
    """(a copy of an index, the corpus it was made of): cheaper than to make another."""
    copy = folder / "root"
    shutil.copytree(root, copy)
    return str(copy), str(Path(root).parent / "all.jsonl")


def content(root):
    """All that an index says, by name instead of by number."""
    store = Store(root)
    made = manifest.read(store)
    plan = plan_of(store, made)
    dead = set(plan.dead().tolist())
    chunks = ChunkStore(store, made)
    live = {n: chunks.by_number(n) for n in range(len(chunks)) if n not in dead}
    graph = open_graph(store, layout.build(made.build_id))
    names, relations = graph.entity_names.to_pylist(), graph.relation_names.to_pylist()
    edges = {
        (
            names[graph.edge_source[i]],
            relations[graph.edge_relation[i]],
            names[tail],
            round(float(graph.edge_weight[i]), 4),
        )
        for tail in range(graph.entities)
        for i in range(graph.edge_indptr[tail], graph.edge_indptr[tail + 1])
    }
    mentions = {
        (names[e], live[int(c)].id)
        for e in range(graph.entities)
        for c in graph.mention_chunk[graph.mention_indptr[e] : graph.mention_indptr[e + 1]]
    }
    links = {
        (live[c].id, live[int(graph.link_target[i])].id, round(float(graph.link_weight[i]), 4))
        for c in range(graph.chunks)
        for i in range(graph.link_indptr[c], graph.link_indptr[c + 1])
    }
    triples = set()
    for segment_id, shard, first in plan.shards():
        for row in store.read_table(layout.shard(segment_id, "triples", shard)).to_pylist():
            if row["chunk"] + first not in dead:
                triples.add((row["chunk_id"], row["head"], row["relation"], row["tail"]))
    return {
        "chunks": {(c.id, c.title, c.text, c.start, c.end) for c in live.values()},
        "entities": set(names),
        "relations": set(relations),
        "edges": edges,
        "mentions": mentions,
        "links": links,
        "triples": triples,
        "errors": {(row["subject"], row["stage"]) for row in inspection.errors(store, made)},
        "counts": made.counts,
    }


def assert_same(one, two):
    for part in one:
        assert one[part] == two[part], part


def test_an_update_holds_what_a_full_rebuild_holds(roots):
    changed, fresh = map(content, roots)
    assert changed["links"]
    assert changed["edges"]
    assert changed["errors"] == {("lead", "read")}  # what was wrong with zinc is over
    assert_same(changed, fresh)


def test_both_paths_answer_as_a_full_rebuild_does(roots):
    changed, fresh = (hybrid_ir.open(root) for root in roots)
    for query in ("Which virus do bats carry?", "simvastatin and cholesterol", "What treats Lyme disease?"):
        for path in ("graph", "dense"):
            one, two = (ir.retrieve(query, 20, [path]).evidence for ir in (changed, fresh))
            assert [e.chunk.id for e in one] == [e.chunk.id for e in two]
            assert all(e.chunk.document_id != "statins" for e in one)
    assert "Ebola" in changed.chunk("bats#0").text
    with pytest.raises(NotFound):
        changed.chunk("statins#0")


def test_only_the_change_is_paid_for(roots):
    store = Store(roots[0])
    report = json.loads(store.read(layout.report(manifest.read(store).build_id)))
    assert report["chunks_extracted"] == report["chunks_encoded"] == len(NEW)
    assert 0 < report["names_encoded"] < 15


def test_compaction_keeps_the_content_asks_no_model_and_gc_frees_the_rest(roots):
    root = roots[0]
    store = Store(root)
    before, old = content(root), manifest.read(store)
    made = compact(root, None, QUIET)
    assert made.parent == old.build_id
    assert len(made.segments) == 1
    assert_same(content(root), before)
    report = json.loads(store.read(layout.report(made.build_id)))
    assert (report["chunks_extracted"], report["chunks_encoded"], report["names_encoded"]) == (0, 0, 0)
    assert compact(root, None, QUIET) == made

    assert retention.rollback(store, None).build_id == old.build_id
    assert_same(content(root), before)
    retention.rollback(store, made.build_id)
    assert retention.garbage(store, keep=3).files == {}
    found = retention.garbage(store, keep=1)
    assert set(found.builds) == {old.build_id, old.parent}
    retention.collect(store, found)
    assert manifest.verify(store, made) == []
    assert_same(content(root), before)
    with pytest.raises(NotFound):
        retention.rollback(store, old.build_id)


def test_a_second_index_of_the_same_corpus_computes_nothing(roots, tmp_path):
    root, corpus = copied(roots[1], tmp_path)
    other = SETTINGS.model_copy(update={"build": SETTINGS.build.model_copy(update={"shards": 3})})
    made = index([corpus], root, other, QUIET)
    report = json.loads(Store(root).read(layout.report(made.build_id)))
    assert (report["chunks_extracted"], report["chunks_encoded"], report["names_encoded"]) == (0, 0, 0)


def test_what_is_given_again_lives_again_and_index_says_what_it_replaces(roots, tmp_path, capsys):
    root, corpus = copied(roots[1], tmp_path)
    first = manifest.read(Store(root))
    update(root, [], ["bats"], None, QUIET)
    changed = update(root, [corpus], [], None, QUIET)
    assert hybrid_ir.open(root).chunk("bats#0").text == NEW["bats"]
    assert changed.counts.documents == first.counts.documents
    assert {row["id"] for row in inspection.documents(Store(root), changed)} == {*FACTS, *NEW} - {"statins", "lead"}
    assert index([corpus], root, SETTINGS, Reporter()) == first
    assert f"in place of {changed.build_id}" in capsys.readouterr().err


def test_bad_updates(roots, tmp_path, capsys):
    with pytest.raises(NotFound, match="no index"):
        update(str(tmp_path / "empty"), [], ["x"], None, QUIET)
    root, corpus = copied(roots[1], tmp_path)
    made = manifest.read(Store(root))
    with pytest.raises(BadInput, match="--add"):
        update(root, [], [], None, QUIET)
    assert update(root, [corpus], ["nonsense"], None, Reporter()) == made
    said = capsys.readouterr().err
    assert "Not in the index: nonsense" in said
    assert "Nothing changed" in said
    with pytest.raises(BadInput, match="changed no other"):
        retention.rollback(Store(root), None)


def test_tombstones_become_numbers():
    from hybrid_ir.index.plan import TOMBSTONES, dead_numbers

    rows = [("s", "b", 7, 2), ("s", "a", 0, 3)]
    table = pa.table(list(zip(*rows, strict=True)), schema=TOMBSTONES)
    assert dead_numbers(table).tolist() == [0, 1, 2, 7, 8]
    assert dead_numbers(TOMBSTONES.empty_table()).dtype == np.int64
