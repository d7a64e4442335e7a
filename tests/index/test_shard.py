"""The stages of a shard, without Ray: alignment, error records, resuming."""

import numpy as np
import pytest

from hybrid_ir.index import layout, shard
from hybrid_ir.index.shard import SegmentPlan
from hybrid_ir.records import Extraction, SourceFile, Triple
from hybrid_ir.settings import BuildSettings
from hybrid_ir.store import Store


class KeywordExtractor:
    """Words with a capital are mentions; the first two make a triple; a chunk that says 'poison' fails."""

    def __init__(self):
        self.fingerprint = {"kind": "keywords"}
        self.chunks = 0

    def extract(self, chunks):
        self.chunks += len(chunks)
        return [self._one(chunk) for chunk in chunks]

    def _one(self, chunk):
        if "poison" in chunk.text:
            return "the extractor gave up"
        names = self.mentions([chunk.text])[0]
        pairs = (Triple(chunk_id=chunk.id, head=names[0], relation="with", tail=names[1]),) if len(names) > 1 else ()
        return Extraction(chunk_id=chunk.id, mentions=names, triples=pairs)

    def mentions(self, texts):
        return [tuple(dict.fromkeys(w.strip(".") for w in text.split() if w[0].isupper())) for text in texts]


@pytest.fixture
def made(tmp_path, word_encoder):
    """A function: documents (id -> text) -> the plan after all stages."""

    def make(documents, encoder=None, extractor=None, root="root", shards=3):
        corpus = tmp_path / f"{root}.jsonl"
        corpus.write_text(
            "".join(f'{{"id": "{i}", "title": "T", "text": "{text}"}}\n' for i, text in documents.items())
        )
        plan = SegmentPlan(Store(str(tmp_path / root)), "seg", shards, BuildSettings())
        shard.read(plan, "part", [SourceFile(path=str(corpus), size=corpus.stat().st_size)])
        results = shard.chunk(plan, 0)
        for number in range(shards):
            results.append(shard.extract(plan, number, extractor or KeywordExtractor()))
            results.append(shard.encode(plan, number, encoder or word_encoder()))
        return plan, results

    return make


DOCUMENTS = {f"d{i}": f"Bats number {i} carry Rabies. Caves hold Bats." for i in range(20)}


def test_rows_of_chunks_vectors_and_triples_belong_together(made, word_encoder):
    plan, _ = made(DOCUMENTS)
    seen = set()
    for number in range(plan.shards):
        chunks = shard.load_chunks(plan, number)
        vectors = plan.store.array(layout.shard("seg", "vectors", number))
        alone = word_encoder().encode_passages([c.title for c in chunks], [c.text for c in chunks])
        assert np.allclose(vectors, alone)
        for kind in ("mentions", "triples"):
            for row in plan.store.read_table(layout.shard("seg", kind, number)).to_pylist():
                assert chunks[row["chunk"]].id == row["chunk_id"]
        for row in plan.store.read_table(layout.shard("seg", "documents", number)).to_pylist():
            assert chunks[row["first_chunk"]].document_id == row["id"]
        seen |= {c.document_id for c in chunks}
    assert seen == set(DOCUMENTS)


def test_what_fails_is_a_record_and_the_rest_goes_on(made, word_encoder):
    documents = {**DOCUMENTS, "p": "A poison Chunk", "n": "A Chunk of NaNs", "e": "   "}
    plan, results = made(documents, encoder=word_encoder(broken=["NaNs"]))
    errors = [
        row
        for stage in ("read", "extract", "encode")
        for number in range(plan.shards)
        for row in plan.store.read_table(layout.shard("seg", f"errors-{stage}", number)).to_pylist()
    ]
    assert {(e["subject"], e["stage"]) for e in errors} >= {("p#0", "extract"), ("n#0", "encode")}
    assert any("e" in e["subject"] and e["stage"] in ("read", "chunk") for e in errors)
    assert sum(r.errors for r in results) == len(errors) == 3
    assert sum(r.chunks for r in results if r.stage == "chunk") == 22


def test_a_finished_stage_is_not_done_again_and_an_unfinished_one_is(made, word_encoder):
    plan, _ = made(DOCUMENTS)
    extractor, encoder = KeywordExtractor(), word_encoder()
    before = {name: plan.store.sha256(name) for name in plan.store.files("segments")}
    for number in range(plan.shards):
        assert shard.extract(plan, number, extractor).skipped
        assert shard.encode(plan, number, encoder).skipped
    assert (extractor.chunks, encoder.calls) == (0, 0)
    marker = layout.marker("seg", "encode", 1)
    plan.store.write(layout.shard("seg", "vectors", 1), b"half a file, killed before its marker")
    (plan.store.local(marker)).unlink()
    assert shard.finished(plan, "encode") == plan.shards - 1
    assert not shard.encode(plan, 1, encoder).skipped
    assert {name: plan.store.sha256(name) for name in plan.store.files("segments")} == before


def test_the_same_documents_in_another_order_give_the_same_bytes(made):
    plan, _ = made(DOCUMENTS, root="one")
    again, _ = made(dict(reversed(DOCUMENTS.items())), root="two")
    for name in plan.store.files("segments"):
        if "/chunks/" in name or "/documents/" in name or "/done/" in name:
            continue  # these hold the source file's name and line, which differ
        assert plan.store.sha256(name) == again.store.sha256(name), name


class Stubborn(KeywordExtractor):
    """Gives up on a whole batch that holds a chunk it cannot do, as a model may."""

    def extract(self, chunks):
        if any("number 7 " in chunk.text for chunk in chunks):
            raise RuntimeError("out of patience")
        return super().extract(chunks)


def test_one_chunk_that_a_model_cannot_do_does_not_cost_its_batch(made, word_encoder):
    class StubbornEncoder(word_encoder):
        def encode_passages(self, titles, texts):
            if any("number 3 " in text for text in texts):
                raise RuntimeError("out of memory")
            return super().encode_passages(titles, texts)

    plan, results = made(DOCUMENTS, encoder=StubbornEncoder(), extractor=Stubborn())
    assert {(r.stage, r.errors) for r in results if r.errors} == {("extract", 1), ("encode", 1)}
    rows = [
        row
        for stage in ("extract", "encode")
        for number in range(plan.shards)
        for row in plan.store.read_table(layout.shard("seg", f"errors-{stage}", number)).to_pylist()
    ]
    assert {(row["subject"], row["stage"]) for row in rows} == {("d7#0", "extract"), ("d3#0", "encode")}
    assert any("out of patience" in row["reason"] for row in rows)


def test_what_failed_is_tried_again_and_what_was_done_is_not(made, word_encoder):
    """Errors are no results: a second segment of the same documents asks the model only for them."""
    plan, _ = made(DOCUMENTS, extractor=Stubborn(), root="one")
    again = SegmentPlan(plan.store, "other", plan.shards, plan.settings)
    extractor, encoder = KeywordExtractor(), word_encoder()
    for number in range(plan.shards):
        for kind in ("chunks", "documents"):
            data = plan.store.read(layout.shard("seg", kind, number))
            plan.store.write(layout.shard("other", kind, number), data)
        shard.extract(again, number, extractor)
        shard.encode(again, number, encoder)
    assert extractor.chunks == 1
    vectors = [plan.store.read(layout.shard(s, "vectors", 0)) for s in ("seg", "other")]
    assert vectors[0] == vectors[1]
