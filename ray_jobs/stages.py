"""Ray Data stages: each wraps one function of the library and carries only small rows.

A row names a piece of work (a shard, a part, a tile); the function reads and writes files of
the root itself, so no data travels through the object store and a retried task finds or
overwrites its own file.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import ray.data
from ray.exceptions import RayTaskError

from hybrid_ir import encoders
from hybrid_ir.errors import HybridIRError
from hybrid_ir.extraction.load import load as load_extractor
from hybrid_ir.index import assembly, shard
from hybrid_ir.index.assembly import BuildPlan
from hybrid_ir.index.shard import SegmentPlan
from hybrid_ir.records import SourceFile
from hybrid_ir.settings import StageResources

Row = dict[str, Any]


class Read:
    def __init__(self, plan: SegmentPlan) -> None:
        self._plan = plan

    def __call__(self, row: Row) -> Row:
        files = [SourceFile.model_validate_json(file) for file in row["files"]]
        return {"read": shard.read(self._plan, row["part"], files).model_dump_json()}


class Chunk:
    def __init__(self, plan: SegmentPlan) -> None:
        self._plan = plan

    def __call__(self, row: Row) -> Row:
        return {"chunk": shard.chunk(self._plan, row["shard"]).model_dump_json()}


class Extract:
    def __init__(self, plan: SegmentPlan) -> None:
        self._plan = plan
        self._extractor = load_extractor(plan.settings.extractor)

    def __call__(self, row: Row) -> Row:
        return {**row, "extract": shard.extract(self._plan, row["shard"], self._extractor).model_dump_json()}


class Encode:
    def __init__(self, plan: SegmentPlan) -> None:
        self._plan = plan
        self._encoder = encoders.load(plan.settings.chunk_encoder)

    def __call__(self, row: Row) -> Row:
        return {**row, "encode": shard.encode(self._plan, row["shard"], self._encoder).model_dump_json()}


class EncodeNames:
    def __init__(self, plan: BuildPlan) -> None:
        self._plan = plan
        self._encoder = encoders.load(plan.settings.entity_encoder)

    def __call__(self, row: Row) -> Row:
        return {"rows": assembly.encode_names(self._plan, row["part"], self._encoder)}


class SynonymTile:
    def __init__(self, plan: BuildPlan) -> None:
        self._plan = plan

    def __call__(self, row: Row) -> Row:
        return {"rows": assembly.synonym_tile(self._plan, row["row"], row["column"])}


class Neighbours:
    def __init__(self, plan: BuildPlan) -> None:
        self._plan = plan
        self._index = assembly.open_dense(plan.store, plan.segments)

    def __call__(self, row: Row) -> Row:
        return {"rows": assembly.neighbours(self._plan, row["segment"], row["shard"], row["first"], self._index)}


def run(rows: Sequence[Row], *stages: tuple[Callable[..., Any], Any, StageResources]) -> Iterator[Row]:
    """Stream rows through (class, plan, resources) stages; results come as they are ready, in any order.

    Raises the library's own error where a stage raised one.
    """
    if not rows:
        return
    dataset = ray.data.from_items(list(rows), override_num_blocks=len(rows))
    for stage, plan, resources in stages:
        largest = resources.max_workers or _room(resources)
        largest = max(resources.min_workers, min(largest, len(rows)))
        dataset = dataset.map(
            stage,
            fn_constructor_args=(plan,),
            compute=ray.data.ActorPoolStrategy(min_size=resources.min_workers, max_size=largest),
            num_cpus=resources.num_cpus,
            num_gpus=resources.num_gpus or None,
        )
    try:
        yield from dataset.iter_rows()
    except RayTaskError as error:
        cause: BaseException | None = error
        while cause is not None and not isinstance(cause, HybridIRError):
            cause = getattr(cause, "cause", None) or cause.__cause__
        if cause is not None:
            raise cause from None
        raise


def _room(resources: StageResources) -> int:
    """How many workers the cluster, as it is now, could hold at most."""
    total = ray.cluster_resources()
    by_cpu = total.get("CPU", 1) / resources.num_cpus if resources.num_cpus else float("inf")
    by_gpu = total.get("GPU", 0) / resources.num_gpus if resources.num_gpus else float("inf")
    return max(1, int(min(by_cpu, by_gpu, 1024)))
