"""The postings of segments and the term statistics of builds: making, merging, writing and opening them.

A segment holds postings, shard by shard, and is never changed.  A build holds what BM25 must know of
all live chunks: counted anew from the postings for each build, without a look at any text.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from hybrid_ir.errors import Conflict, NotFound
from hybrid_ir.index import layout
from hybrid_ir.index.manifest import Manifest, TermTotals
from hybrid_ir.index.plan import BuildPlan, plan_of
from hybrid_ir.index.shard import SegmentPlan, StageResult, finish_stage, load_chunks, stage_done
from hybrid_ir.index.shard_groups import EVERYTHING, ShardGroup
from hybrid_ir.records import Chunk
from hybrid_ir.settings import SparsePathSettings
from hybrid_ir.sparse import analyzer
from hybrid_ir.sparse.index import SparseIndex
from hybrid_ir.sparse.postings import Postings, count
from hybrid_ir.sparse.statistics import Statistics, gather
from hybrid_ir.store import FileEntry, Store

PARTS = ("terms", "starts", "chunks", "counts", "lengths")


def sparse(plan: SegmentPlan, shard: int) -> StageResult:
    """The stage: a shard's chunks -> its postings."""
    if (done := stage_done(plan, "sparse", shard)) is not None:
        return done
    chunks = load_chunks(plan, shard)
    files = write_postings(plan.store, plan.segment_id, shard, count(map(searched_text, chunks)))
    return finish_stage(plan, StageResult(stage="sparse", shard=shard, rows=len(chunks), files=files))


def searched_text(chunk: Chunk) -> str:
    """What the path ``sparse`` finds a chunk by: what the encoder sees too."""
    return "\n".join(part for part in (chunk.title, chunk.section, chunk.text) if part)


def write_postings(store: Store, segment_id: str, shard: int, postings: Postings) -> dict[str, FileEntry]:
    names = {part: layout.sparse(segment_id, part, shard) for part in PARTS}
    return {name: store.write_array(name, getattr(postings, part)) for part, name in names.items()}


def read_postings(store: Store, segment_id: str, shard: int) -> Postings:
    """Mapped into memory."""
    return Postings(**{part: store.array(layout.sparse(segment_id, part, shard)) for part in PARTS})


def write_statistics(plan: BuildPlan) -> tuple[TermTotals, dict[str, FileEntry]]:
    """Count the terms of a build's live chunks."""
    found = gather(_live_shards(plan))
    names = _statistics_names(plan.build_id)
    files = {name: plan.store.write_array(name, getattr(found, part)) for part, name in names.items()}
    return TermTotals(terms=len(found.terms), chunks=found.chunks, length=found.length), files


def open_sparse(
    store: Store, manifest: Manifest, settings: SparsePathSettings, group: ShardGroup = EVERYTHING
) -> SparseIndex:
    """Map a build's postings, or those of a group of its shards.

    Raises NotFound where it has none, Conflict where its terms are not this version's.
    """
    if manifest.sparse is None:
        raise NotFound(
            f"Build {manifest.build_id} has no path sparse: it was built with build.sparse.enabled: false. "
            "Index the corpus again with it, or name other paths."
        )
    if manifest.fingerprints.analyzer != analyzer.fingerprint():
        raise Conflict(
            f"The terms of build {manifest.build_id} were made by another version of the analyzer "
            f"({manifest.fingerprints.analyzer}, here {analyzer.fingerprint()}). Index the corpus again."
        )
    plan = plan_of(store, manifest)
    arrays = {part: store.array(name) for part, name in _statistics_names(plan.build_id).items()}
    statistics = Statistics(**arrays, chunks=manifest.sparse.chunks, length=manifest.sparse.length)
    found = list(plan.shards())
    held = group.held([rows for segment in plan.segments for rows in segment.chunks_per_shard])
    shards = [(read_postings(store, *found[place][:2]), found[place][2]) for place in held]
    return SparseIndex(shards, statistics, settings, plan.dead())


def _live_shards(plan: BuildPlan) -> Iterator[tuple[Postings, NDArray[np.bool_] | None]]:
    dead = plan.dead()
    for segment_id, shard, first in plan.shards():
        postings = read_postings(plan.store, segment_id, shard)
        here = dead[np.searchsorted(dead, first) : np.searchsorted(dead, first + len(postings.lengths))] - first
        live = np.ones(len(postings.lengths), bool)
        live[here] = False
        yield postings, live if len(here) else None


def _statistics_names(build_id: str) -> dict[str, str]:
    return {part: f"{layout.build(build_id)}/sparse/{part}.npy" for part in ("terms", "frequencies")}
