"""Filters as masks, against the definition, and through the whole of retrieval."""

from fnmatch import fnmatchcase

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import hybrid_ir
from hybrid_ir.errors import BadInput
from hybrid_ir.index import chunk_filter, layout, tables
from hybrid_ir.index.manifest import Counts, Fingerprints, Manifest, Segment
from hybrid_ir.records import Document, Filter, Section
from hybrid_ir.settings import BuildSettings
from hybrid_ir.store import Store

SOURCES = ["notes/a.md", "notes/b.txt", "pubmed/1.xml.gz", "pubmed/2.xml.gz"]
DOCUMENTS = [
    (f"d{i}", SOURCES[i % 4], None if i % 5 == 0 else 1990 + i, 1 + i % 3) for i in range(40)
]  # id, source, year, chunks


@pytest.fixture(scope="module")
def build(tmp_path_factory):
    """(store, manifest, the document of each chunk number): two segments of several shards."""
    store = Store(str(tmp_path_factory.mktemp("f")))
    segments, owners = [], []
    for segment_id, shards, documents in (("one", 3, DOCUMENTS[:25]), ("two", 2, DOCUMENTS[25:])):
        counts = []
        for shard in range(shards):
            rows, first = [], 0
            for number, source, year, chunks in documents:
                if layout.shard_of(number, shards) != shard:
                    continue
                section = (Section(start=0, end=1),)
                document = Document(id=number, text="x", sections=section, source=source, year=year)
                rows.append((document, first, chunks))
                owners += [(number, source, year)] * chunks
                first += chunks
            counts.append(first)
            store.write_table(layout.shard(segment_id, "documents", shard), tables.document_table(rows))
        segments.append(
            Segment(
                id=segment_id,
                shards=shards,
                chunks_per_shard=tuple(counts),
                dense_shards=0,
                documents=len(documents),
                errors=0,
                files={},
            )
        )
    manifest = Manifest(
        build_id="0123456789ab",
        settings=BuildSettings(),
        fingerprints=Fingerprints(extractor={}, chunk_encoder={}, entity_encoder={}),
        segments=tuple(segments),
        counts=Counts(**dict.fromkeys(Counts.model_fields, 0)),
    )
    return store, manifest, owners


years = st.none() | st.integers(1985, 2035)


@given(
    st.lists(st.sampled_from([*SOURCES, "notes/*", "*.xml.gz", "*/[ab].*", "nowhere/*"]), max_size=2),
    years,
    years,
    st.lists(st.sampled_from([*(row[0] for row in DOCUMENTS), "unknown"]), max_size=4),
)
def test_a_chunk_passes_where_its_document_meets_every_condition(build, sources, year_from, year_to, ids):
    store, manifest, owners = build
    wanted = Filter(sources=tuple(sources), year_from=year_from, year_to=year_to, document_ids=tuple(ids))
    mask = chunk_filter.allowed(store, manifest, wanted)
    if wanted == Filter():
        assert mask is None
        return
    expected = [
        (not sources or any(fnmatchcase(source, pattern) for pattern in sources))
        and (not ids or number in ids)
        and (year_from is None or (year is not None and year >= year_from))
        and (year_to is None or (year is not None and year <= year_to))
        for number, source, year in owners
    ]
    assert mask.tolist() == expected


def test_no_filter_is_no_mask(build):
    assert chunk_filter.allowed(*build[:2], None) is None
    assert chunk_filter.allowed(*build[:2], Filter()) is None


def test_the_last_masks_are_kept_and_cannot_be_changed(build):
    store, manifest, _ = build
    first = chunk_filter.allowed(store, manifest, Filter(year_from=2000))
    assert chunk_filter.allowed(store, manifest, Filter(year_from=2000)) is first
    with pytest.raises(ValueError, match="read-only"):
        first[0] = True
    for year in range(chunk_filter.MASKS_KEPT + 1):
        chunk_filter.allowed(store, manifest, Filter(year_to=year))
    assert len(chunk_filter._kept) == chunk_filter.MASKS_KEPT
    again = chunk_filter.allowed(store, manifest, Filter(year_from=2000))
    assert again is not first
    assert np.array_equal(again, first)


def test_conditions_that_nothing_can_meet(build):
    store, manifest, _ = build
    for strange in (
        Filter(year_from=10**30),
        Filter(year_to=-(10**30)),
        Filter(document_ids=("\ud800",)),
        Filter(sources=("\ud800*", "[")),
    ):
        assert not chunk_filter.allowed(store, manifest, strange).any()


def test_a_path_that_cannot_filter_says_so():
    assert chunk_filter.unfiltered(None) is None
    assert chunk_filter.unfiltered(Filter()) is None
    with pytest.raises(BadInput, match="cannot filter"):
        chunk_filter.unfiltered(Filter(year_from=1))


def test_both_paths_bring_what_the_filter_lets_through_and_nothing_else(sample_root):
    ir = hybrid_ir.open(sample_root)
    question = "What happens when fluconazole is taken with warfarin?"
    everything = ir.retrieve(question, 100)
    documents = sorted({item.chunk.document_id for item in everything.evidence})
    some = tuple(documents[:3])
    for paths in (["graph"], ["dense"], None):
        found = ir.retrieve(question, 100, paths, filter=Filter(document_ids=some))
        assert {item.chunk.document_id for item in found.evidence} <= set(some)
    dense = ir.retrieve(question, 100, ["dense"], filter=Filter(document_ids=some))
    assert {item.chunk.document_id for item in dense.evidence} == set(some)
    source = everything.evidence[0].chunk.source
    assert {item.chunk.source for item in ir.retrieve(question, 50, filter=Filter(sources=(source,))).evidence} == {
        source
    }
    nothing = ir.retrieve(question, 5, filter=Filter(document_ids=("no such document",)))
    assert nothing.evidence == nothing.degraded == ()
    answer = ir.ask(question, rounds=1, filter=Filter(document_ids=some))
    assert {item.chunk.document_id for item in answer.rounds[0].sub_answers[0].retrieval.evidence} <= set(some)
