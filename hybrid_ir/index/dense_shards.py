"""The FAISS shards of segments: which document shards share one, training, writing and opening them."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from itertools import accumulate

import numpy as np

from hybrid_ir.dense import training
from hybrid_ir.dense.groups import DenseGroup
from hybrid_ir.dense.index import DenseIndex, Shard, write_shard
from hybrid_ir.index import layout
from hybrid_ir.index.plan import BuildPlan
from hybrid_ir.index.shard import SegmentPlan, StageResult, finish_stage, stage_done
from hybrid_ir.index.shard_groups import ShardGroup
from hybrid_ir.settings import DenseSettings


def dense_groups(chunks_per_shard: Sequence[int], most: int) -> list[list[int]]:
    """Neighbouring document shards that share a FAISS shard of at most ``most`` vectors; a larger one stands alone."""
    groups: list[list[int]] = []
    held = 0
    for shard, rows in enumerate(chunks_per_shard):
        if not groups or held + rows > most:
            groups.append([])
            held = 0
        groups[-1].append(shard)
        held += rows
    return groups


def trained_once(plan: SegmentPlan, chunks_per_shard: Sequence[int]) -> bool:
    """Whether the segment is so large that its FAISS shards share centroids, which :func:`train` makes first."""
    return training.kind_for(sum(chunks_per_shard), plan.settings.dense) != "flat"


def train(plan: SegmentPlan, chunks_per_shard: Sequence[int]) -> StageResult:
    """Centroids and quantizer of a segment, from a sample of its vectors."""
    if (done := stage_done(plan, "train-dense", 0)) is not None:
        return done
    count, settings = sum(chunks_per_shard), plan.settings.dense
    wanted = training.sample_rows(count, settings)
    starts = [0, *accumulate(chunks_per_shard)]
    cuts = np.searchsorted(wanted, starts)
    sample = np.concatenate(
        [
            _vectors(plan, shard)[wanted[cuts[shard] : cuts[shard + 1]] - starts[shard]]
            for shard in range(plan.shards)
            if cuts[shard] < cuts[shard + 1]
        ]
    )
    kind = training.kind_for(count, settings)
    files = training.train(plan.store, _folder(plan), sample, count, kind, settings)
    return finish_stage(plan, StageResult(stage="train-dense", shard=0, rows=len(sample), files=files))


def write(plan: SegmentPlan, number: int, group: Sequence[int], trained: bool) -> StageResult:
    """One FAISS shard over a group of document shards; its ids are rows of the group."""
    if (done := stage_done(plan, "dense", number)) is not None:
        return done
    vectors = np.concatenate([_vectors(plan, shard) for shard in group])
    shared = training.open_trained(plan.store, _folder(plan)) if trained else None
    name = layout.shard(plan.segment_id, "dense", number)
    files = write_shard(plan.store, name, vectors, np.arange(len(vectors)), shared)
    return finish_stage(plan, StageResult(stage="dense", shard=number, rows=len(vectors), files=files))


def open_dense(plan: BuildPlan, leave_out: Collection[str] = (), settings: DenseSettings | None = None) -> DenseIndex:
    """The FAISS shards of a build's segments with the build's chunk numbers; dead chunks are never found.

    ``settings``: how to search, where not as the build does.
    """
    shards = [shard for shard, _ in _shards(plan, leave_out)]
    return DenseIndex(plan.store, shards, plan.dead(), settings or plan.settings.dense)


def open_dense_group(plan: BuildPlan, group: ShardGroup, settings: DenseSettings | None = None) -> DenseGroup:
    """Those of the shards that a group of replicas holds; see :func:`open_dense`."""
    found = list(_shards(plan, ()))
    held = group.held([rows for _, rows in found])
    shards = [shard for shard, _ in found]
    return DenseGroup(plan.store, shards, held, plan.dead(), settings or plan.settings.dense)


def _shards(plan: BuildPlan, leave_out: Collection[str]) -> Iterator[tuple[Shard, int]]:
    """Each shard with its rows."""
    for segment in plan.segments:
        if segment.id in leave_out:
            continue
        first = plan.starts[segment.id]
        groups = dense_groups(segment.chunks_per_shard, plan.settings.vectors_per_shard)
        for number, group in enumerate(groups[: segment.dense_shards]):
            rows = sum(segment.chunks_per_shard[shard] for shard in group)
            yield Shard(layout.shard(segment.id, "dense", number), first), rows
            first += rows


def _vectors(plan: SegmentPlan, shard: int) -> training.Vectors:
    return plan.store.array(layout.shard(plan.segment_id, "vectors", shard))


def _folder(plan: SegmentPlan) -> str:
    return layout.shard(plan.segment_id, "dense", 0).rpartition("/")[0]
