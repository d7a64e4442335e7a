"""Ray Data stages: each wraps one function of the library and carries only small rows.

A row names a piece of work (a shard, a part, a tile); the function reads and writes files of
the root itself, so no data travels through the object store and a retried task finds or
overwrites its own file.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Sequence
from functools import partial, wraps
from typing import Any

import ray.data
from ray.exceptions import NodeDiedError, OutOfMemoryError, RayActorError, WorkerCrashedError

from hybrid_ir import encoders
from hybrid_ir.corpus.source import FileRange
from hybrid_ir.errors import Failed, HybridIRError
from hybrid_ir.extraction.load import load as load_extractor
from hybrid_ir.index import compaction, dense_shards, entity_blocks, entity_parts, estimate, links, shard, sparse_shards
from hybrid_ir.index.plan import BuildPlan
from hybrid_ir.index.shard import SegmentPlan
from hybrid_ir.settings import BuildSettings, StageResources

AGAIN = "Nothing was published. Run the same command again: finished work is kept."

Row = dict[str, Any]
Stage = tuple[Callable[..., Any], Any, StageResources]
"""What runs, what it is given, and what it takes."""


def reported(call: Callable[..., Row]) -> Callable[..., Row]:
    """An error meant for a person, or of a disk, comes back as a row: of an exception Ray keeps only the text."""

    @wraps(call)
    def run_one(*given: Any) -> Row:
        row: Row = next(item for item in given if isinstance(item, dict))
        if "error" in row:
            return row  # an earlier stage of the chain failed
        try:
            return call(*given)
        except (HybridIRError, OSError) as error:
            return {"error": str(error), "kind": type(error).__name__}

    return run_one


@reported
def read(row: Row, plan: SegmentPlan) -> Row:
    files = [FileRange.model_validate_json(file) for file in row["files"]]
    return {"read": shard.read(plan, row["part"], files).model_dump_json()}


@reported
def chunk(row: Row, plan: SegmentPlan) -> Row:
    return {"chunk": [result.model_dump_json() for result in shard.chunk(plan, row["group"])]}


@reported
def sparse(row: Row, plan: SegmentPlan) -> Row:
    return {**row, "sparse": sparse_shards.sparse(plan, row["shard"]).model_dump_json()}


@reported
def merge(row: Row, plans: tuple[SegmentPlan, BuildPlan]) -> Row:
    return {"merge": compaction.merge(*plans, row["shard"]).model_dump_json()}


@reported
def train_dense(row: Row, plan: SegmentPlan) -> Row:
    return {"dense": dense_shards.train(plan, row["counts"]).model_dump_json()}


@reported
def write_dense(row: Row, plan: SegmentPlan) -> Row:
    return {"dense": dense_shards.write(plan, row["number"], row["group"], row["trained"]).model_dump_json()}


@reported
def survey(row: Row, settings: BuildSettings) -> Row:
    files = [FileRange.model_validate_json(file) for file in row["files"]]
    return {"survey": estimate.survey(files, settings).model_dump_json()}


class Extract:
    def __init__(self, plan: SegmentPlan) -> None:
        self._plan = plan
        self._extractor = load_extractor(plan.settings.extractor)

    @reported
    def __call__(self, row: Row) -> Row:
        return {**row, "extract": shard.extract(self._plan, row["shard"], self._extractor).model_dump_json()}


class Encode:
    def __init__(self, plan: SegmentPlan) -> None:
        self._plan = plan
        self._encoder = encoders.load(plan.settings.chunk_encoder)

    @reported
    def __call__(self, row: Row) -> Row:
        return {**row, "encode": shard.encode(self._plan, row["shard"], self._encoder).model_dump_json()}


class EncodeNames:
    def __init__(self, plan: BuildPlan) -> None:
        self._plan = plan
        self._encoder = encoders.load(plan.settings.entity_encoder)

    @reported
    def __call__(self, row: Row) -> Row:
        rows, computed = entity_parts.encode(self._plan, row["part"], row["parts"], self._encoder)
        return {"rows": rows, "computed": computed}


@reported
def synonym_tile(row: Row, plan: BuildPlan) -> Row:
    return {"rows": entity_parts.synonym_tile(plan, row["row"], row["column"])}


@reported
def train_clusters(row: Row, plan: BuildPlan) -> Row:
    return {"clusters": entity_blocks.train(plan, row["parts"])}


@reported
def assign_clusters(row: Row, plan: BuildPlan) -> Row:
    return {"rows": entity_blocks.assign(plan, row["part"])}


@reported
def synonym_cluster_tile(row: Row, plan: BuildPlan) -> Row:
    tile = row["cluster"], row["first"], row["second"]
    return {"rows": entity_blocks.synonym_tile(plan, row["parts"], *tile)}


class Neighbours:
    def __init__(self, plan: BuildPlan) -> None:
        self._here = links.open_neighbourhood(plan)

    @reported
    def __call__(self, row: Row) -> Row:
        return {"rows": links.neighbours(self._here, row["segment"], row["shard"], row["first"])}


def run(rows: Sequence[Row], *stages: Stage) -> Iterator[Row]:
    """Stream rows through (stage, plan, resources); results come as they are ready, in any order.

    A class keeps a model in an actor, a function runs as a task.  Raises the library's own
    error where a stage raised one, and Failed where workers or disks did not hold.
    """
    if not rows:
        return
    dataset: ray.data.Dataset = ray.data.from_items(list(rows), override_num_blocks=len(rows))
    for stage, plan, resources in stages:
        largest = max(resources.min_workers, min(resources.max_workers or _room(resources), len(rows)))
        if isinstance(stage, type):
            smallest = min(resources.min_workers, len(rows))
            pool: Any = ray.data.ActorPoolStrategy(min_size=smallest, max_size=largest)
            # A task waits for its actor as long as that is started again: while a node is lost, every try counts.
            retries = {"max_restarts": resources.max_retries, "max_task_retries": -1}
            how: dict[str, Any] = {"compute": pool, "fn_constructor_args": (plan,)}
        else:
            pool = ray.data.TaskPoolStrategy(size=largest)
            retries = {"max_retries": resources.max_retries}
            how = {"compute": pool, "fn_args": (plan,)}
        how["ray_remote_args_fn"] = partial(dict, retries)
        with warnings.catch_warnings():
            # Ray 2.60 names no other way to limit restarts and says that this one ends with 2.64.
            warnings.simplefilter("ignore")
            dataset = dataset.map(stage, num_cpus=resources.num_cpus, num_gpus=resources.num_gpus or None, **how)
    try:
        for row in dataset.iter_rows():
            if "error" in row:
                raise _error(row)
            yield row
    except (RayActorError, WorkerCrashedError, NodeDiedError, OutOfMemoryError) as error:
        reason = str(error).strip().splitlines()[0]
        raise Failed(f"A worker died more often than it is restarted ({reason}). {AGAIN}") from error


def _error(row: Row) -> HybridIRError:
    for kind in HybridIRError.__subclasses__():
        if kind.__name__ == row["kind"]:
            return kind(row["error"])
    return Failed(f"A worker could not read or write: {row['error']}. {AGAIN}")


def _room(resources: StageResources) -> int:
    """How many workers the cluster, as it is now, could hold at most."""
    total: dict[str, float] = ray.cluster_resources()  # type: ignore[no-untyped-call]
    by_cpu = total.get("CPU", 1) / resources.num_cpus if resources.num_cpus else float("inf")
    by_gpu = total.get("GPU", 0) / resources.num_gpus if resources.num_gpus else float("inf")
    return max(1, int(min(by_cpu, by_gpu, 1024)))
