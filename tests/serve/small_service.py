"""The parts of a service over a small root, without a model: what is tested with them is the HTTP side."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path

from hybrid_ir.index import layout, tables
from hybrid_ir.index.manifest import Counts, Fingerprints, Manifest, Segment
from hybrid_ir.records import Chunk, Conclusion, Decomposition, Findings, LoopState, Retrieval, Statement, SubQuestion
from hybrid_ir.roles import PathRanking, Query
from hybrid_ir.settings import BuildSettings
from hybrid_ir.store import Store

TEXTS = {
    "anticoagulants/warfarin#0": "Warfarin is cleared by CYP2C9. Fluconazole inhibits CYP2C9.",
    "notes of 2024/bats & caves#1": "Bats carry rabies virus.",
    "µg#0": "β-blockers slow the heart.",
}


def chunks() -> list[Chunk]:
    made = []
    for chunk_id, text in sorted(TEXTS.items()):
        document_id, _, position = chunk_id.rpartition("#")
        made.append(
            Chunk(
                id=chunk_id,
                document_id=document_id,
                position=int(position),
                title=document_id,
                text=text,
                start=0,
                end=len(text),
                source="notes.md",
            )
        )
    return made


class SharedWords:
    """Ranks by words shared with the query."""

    def __init__(self, held: Sequence[Chunk]) -> None:
        self.held = held
        self.delay_s = 0.0
        self.error: Exception | None = None
        self.cancelled = False

    async def rank(self, query: Query, k: int) -> PathRanking:
        try:
            await asyncio.sleep(self.delay_s)
        except asyncio.CancelledError:
            self.cancelled = True
            raise
        if self.error is not None:
            raise self.error
        words = set(query.text.casefold().split())
        scores = {i: float(len(words & set(c.text.casefold().split()))) for i, c in enumerate(self.held)}
        found = sorted((i for i in scores if scores[i]), key=lambda i: (-scores[i], i))[:k]
        return PathRanking(chunks=tuple(found), scores=tuple(scores[i] for i in found))


class Quoting:
    """Asks the question itself and quotes the best chunk."""

    name = "quoting"

    async def decompose(self, state: LoopState, limit: int) -> Decomposition:
        return Decomposition(sub_questions=() if state.rounds else (SubQuestion(text=state.question.text),))

    async def answer(self, state: LoopState, sub_question: SubQuestion, retrieval: Retrieval) -> Findings:
        best = retrieval.evidence[:1]
        return Findings(statements=tuple(Statement(text=e.chunk.text, citations=(e.chunk.id,)) for e in best))

    async def conclude(self, state: LoopState) -> Conclusion:
        found = tuple(s for round_ in state.rounds for sub in round_.sub_answers for s in sub.statements)
        return Conclusion(short=found[0].text if found else "", statements=found, enough_evidence=bool(found))


def small_store(tmp_path: Path) -> Store:
    store = Store(str(tmp_path / "root"))
    store.write_table(layout.shard("segment", "chunks", 0), tables.chunk_table(chunks()))
    return store


def small_manifest() -> Manifest:
    return Manifest(
        build_id="0123456789ab",
        settings=BuildSettings(),
        fingerprints=Fingerprints(extractor={}, chunk_encoder={}, entity_encoder={}),
        segments=(
            Segment(
                id="segment",
                shards=1,
                chunks_per_shard=(len(TEXTS),),
                dense_shards=0,
                documents=len(TEXTS),
                errors=0,
                files={},
            ),
        ),
        counts=Counts(**dict.fromkeys(Counts.model_fields, 3)),
    )
