"""Postings on disk: the stage, an update with tombstones, a merge; always the scores of one whole corpus."""

import numpy as np
import pyarrow as pa
import pytest

from hybrid_ir.errors import Conflict, NotFound
from hybrid_ir.index import compaction, error_records, layout, manifest, shard, sparse_shards, tables
from hybrid_ir.index.manifest import Counts, Fingerprints, Manifest, Segment
from hybrid_ir.index.plan import TOMBSTONES, BuildPlan
from hybrid_ir.index.shard import SegmentPlan
from hybrid_ir.index.shard_groups import EVERYTHING, ShardGroup
from hybrid_ir.records import Chunk
from hybrid_ir.retrieval.merging import merged_rankings
from hybrid_ir.retrieval.sparse_path import SparsePath
from hybrid_ir.roles import Query
from hybrid_ir.settings import BuildSettings, SparsePathSettings, SparseSettings
from hybrid_ir.sparse import analyzer
from hybrid_ir.sparse.index import SparseIndex
from hybrid_ir.sparse.postings import count
from hybrid_ir.sparse.statistics import gather
from hybrid_ir.store import Store

OLD = {f"d{i}": f"Warfarin trial {i} of IL-{i % 4} in bats{' and rabies' * (i % 3)}." for i in range(17)}
NEW = {"d3": "TNFα raises the dose of warfarin.", "d20": "COVID-19 in bats.", "d21": "Rabies, rabies."}
QUERIES = ["warfarin", "IL-2 in bats", "rabies", "TNF-alpha", "covid", "warfarin rabies trial", "nothing of this"]
SHARDS = 3


def chunk_of(document_id, text):
    return Chunk(
        id=f"{document_id}#0",
        document_id=document_id,
        position=0,
        title="Notes",
        text=text,
        start=0,
        end=len(text),
        source="notes",
    )


def write_segment(store, segment_id, documents):
    """A segment as the job leaves it, with the tables that later steps read."""
    plan = SegmentPlan(store, segment_id, SHARDS, BuildSettings())
    files, sizes = {}, []
    for number in range(SHARDS):
        held = [chunk_of(i, t) for i, t in sorted(documents.items()) if layout.shard_of(i, SHARDS) == number]
        rows = [
            {**dict.fromkeys(tables.DOCUMENTS.names), "id": c.document_id, "first_chunk": i, "chunks": 1}
            for i, c in enumerate(held)
        ]
        store.write_table(layout.shard(segment_id, "chunks", number), tables.chunk_table(held))
        store.write_table(
            layout.shard(segment_id, "documents", number), pa.Table.from_pylist(rows, schema=tables.DOCUMENTS)
        )
        for kind, schema in (("mentions", tables.MENTIONS), ("triples", tables.TRIPLES)):
            store.write_table(layout.shard(segment_id, kind, number), schema.empty_table())
        for kind in (f"errors-{stage}" for stage in error_records.STAGES):
            store.write_table(layout.shard(segment_id, kind, number), tables.ERRORS.empty_table())
        store.write_array(layout.shard(segment_id, "vectors", number), np.zeros((len(held), 4), np.float32))
        result = sparse_shards.sparse(plan, number)
        assert result.rows == len(held)
        files |= result.files
        sizes.append(len(held))
    return Segment(
        id=segment_id,
        shards=SHARDS,
        chunks_per_shard=tuple(sizes),
        dense_shards=0,
        documents=len(documents),
        errors=0,
        files=files,
    )


def build(store, build_id, segments, dead=()):
    """The manifest of a build over the segments; ``dead``: (segment id, document id)."""
    plan = BuildPlan(store, build_id, BuildSettings(), tuple(segments))
    if dead:
        numbers = {segment.id: ids(store, [segment], plan.starts[segment.id]) for segment in segments}
        rows = sorted((segment, document, numbers[segment][document], 1) for segment, document in dead)
        columns = zip(*rows, strict=True)
        store.write_table(
            plan.tombstones,
            pa.table([pa.array(c, t) for c, t in zip(columns, TOMBSTONES.types, strict=True)], schema=TOMBSTONES),
        )
    totals, files = sparse_shards.write_statistics(plan)
    made = Manifest(
        build_id=build_id,
        settings=BuildSettings(),
        fingerprints=Fingerprints(extractor={}, chunk_encoder={}, entity_encoder={}, analyzer=analyzer.fingerprint()),
        segments=tuple(segments),
        counts=Counts(**dict.fromkeys(Counts.model_fields, 0)),
        sparse=totals,
        files=files,
    )
    return plan, made


def ids(store, segments, first=0):
    """Document id -> chunk number."""
    found = {}
    for segment in segments:
        for number in range(segment.shards):
            for name in store.read_table(layout.shard(segment.id, "chunks", number))["document_id"].to_pylist():
                found[name] = first
                first += 1
    return found


def found_by(index, names):
    """Query -> {document: score}, in order."""
    by_number = {number: name for name, number in names.items()}
    result = {}
    for query in QUERIES:
        scores, numbers = index.search(query, 50)
        result[query] = {by_number[n]: round(s, 4) for n, s in zip(numbers.tolist(), scores.tolist(), strict=True)}
    return result


def expected(documents):
    chunks = [chunk_of(i, t) for i, t in documents.items()]
    postings = count(map(sparse_shards.searched_text, chunks))
    index = SparseIndex([(postings, 0)], gather([(postings, None)]), SparsePathSettings())
    return found_by(index, {chunk.document_id: row for row, chunk in enumerate(chunks)})


def opened(store, made):
    return sparse_shards.open_sparse(store, made, SparsePathSettings())


@pytest.fixture
def store(tmp_path):
    return Store(str(tmp_path / "root"))


def test_a_build_of_many_shards_finds_what_one_corpus_would(store):
    segment = write_segment(store, "one", OLD)
    _, made = build(store, "b1", [segment])
    assert found_by(opened(store, made), ids(store, [segment])) == expected(OLD)
    assert made.sparse.chunks == len(OLD)
    assert manifest.verify(store, made) == []


@pytest.mark.parametrize("k", [2, 50])
def test_three_groups_of_shards_merged_rank_as_one(store, k):
    first, second = write_segment(store, "one", OLD), write_segment(store, "two", NEW)
    _, made = build(store, "b2", [first, second], [("one", "d3"), ("one", "d5")])

    def path(group):
        return SparsePath(
            lambda: sparse_shards.open_sparse(store, made, SparsePathSettings(), group), lambda _filter: None
        )

    groups = [path(ShardGroup(number, 3)) for number in range(3)]
    for text in QUERIES:
        query = Query(text=text)
        merged = merged_rankings([group.rank_now(query, k) for group in groups], k)
        assert merged == path(EVERYTHING).rank_now(query, k)


def test_an_update_counts_what_lives_and_tokenises_nothing_again(store, monkeypatch):
    first = write_segment(store, "one", OLD)
    second = write_segment(store, "two", NEW)
    monkeypatch.setattr(sparse_shards, "count", None)
    plan, made = build(store, "b2", [first, second], [("one", "d3"), ("one", "d5")])
    names = {**ids(store, [first]), **ids(store, [second], plan.starts["two"])}
    monkeypatch.undo()
    live = {**{name: text for name, text in OLD.items() if name != "d5"}, **NEW}
    assert found_by(opened(store, made), names) == expected(live)


def test_merged_shards_are_those_of_the_merged_chunks_to_the_byte(store):
    segments = [write_segment(store, "one", OLD), write_segment(store, "two", NEW)]
    plan, _ = build(store, "b2", segments, [("one", "d3"), ("one", "d5")])
    for shards in (1, 3, 4):
        merged = SegmentPlan(store, f"merged{shards}", shards, BuildSettings())
        for number in range(shards):
            compaction.merge(merged, plan, number)
            found = sparse_shards.read_postings(store, merged.segment_id, number)
            again = count(map(sparse_shards.searched_text, shard.load_chunks(merged, number)))
            for part in sparse_shards.PARTS:
                assert getattr(found, part).dtype == getattr(again, part).dtype
                np.testing.assert_array_equal(getattr(found, part), getattr(again, part))


def test_the_stage_is_done_once_and_writes_the_same_bytes(store, tmp_path):
    segment = write_segment(store, "one", OLD)
    again = sparse_shards.sparse(SegmentPlan(store, "one", SHARDS, BuildSettings()), 1)
    assert again.skipped
    assert again.files.items() <= segment.files.items()
    other = write_segment(Store(str(tmp_path / "other")), "one", OLD)
    assert other.files == segment.files


def test_a_build_without_terms_says_so(store):
    segment = write_segment(store, "one", OLD)
    _, made = build(store, "b1", [segment])
    with pytest.raises(NotFound, match=r"build\.sparse\.enabled"):
        opened(store, made.model_copy(update={"sparse": None}))
    fingerprints = made.fingerprints.model_copy(update={"analyzer": {"kind": "medical words", "version": "0"}})
    with pytest.raises(Conflict, match="another version of the analyzer"):
        opened(store, made.model_copy(update={"fingerprints": fingerprints}))


def test_without_the_setting_a_merge_writes_no_postings(store):
    segments = [write_segment(store, "one", OLD)]
    plan, _ = build(store, "b1", segments)
    merged = SegmentPlan(store, "merged", 1, BuildSettings(sparse=SparseSettings(enabled=False)))
    assert not [name for name in compaction.merge(merged, plan, 0).files if "/sparse/" in name]
