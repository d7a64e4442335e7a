"""G_ent on disk, by partition: each opens alone, and all of them together give the whole graph.

Entities are relabelled so that those of one partition follow each other: an entity's relabelled
id is the first id of its partition (``starts``) plus its position there.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray
from pydantic import ValidationError

from hybrid_ir.errors import Damaged, NotFound
from hybrid_ir.graph.knowledge_graph import Numbers, indptr
from hybrid_ir.graph.partition import Assignment, Method, Standing
from hybrid_ir.records import Record
from hybrid_ir.store import FileEntry, Store


class Partitions(Record):
    """How G_ent is divided."""

    starts: tuple[int, ...]
    """First relabelled id of each partition, and after them the number of entities."""
    method: Method
    cut: float
    """Share of the edges between partitions."""
    balance: float
    """Entities of the largest partition over the mean."""
    scratch_cut: float | None = None
    """The cut when the graph was last divided from scratch; None: in this build."""
    kept: int = 0
    """Entities that are where they stood in the build that this one changed; 0: divided from scratch."""

    @property
    def count(self) -> int:
        return len(self.starts) - 1


@dataclass(frozen=True)
class Edges:
    """G_ent in CSR by the edge's tail: row i of ``source`` is source[indptr[i]:indptr[i + 1]]."""

    indptr: Numbers
    source: Numbers
    """The heads."""
    relation: NDArray[np.int32]
    weight: NDArray[np.float32]


@dataclass(frozen=True)
class StoredPartition:
    """One partition's rows, both ways; all arrays are mapped into memory.

    ``into`` and the ``out_`` arrays have one row for each of its entities; ``into.source`` and
    ``out_target`` are relabelled ids and may lie in other partitions.
    """

    number: int
    start: int
    """Relabelled id of its first entity."""
    entities: Numbers
    """Position -> entity number."""
    into: Edges
    out_indptr: Numbers
    out_target: Numbers
    out_relation: NDArray[np.int32]
    out_weight: NDArray[np.float32]


def write_partitions(store: Store, folder: str, edges: Edges, assignment: Assignment) -> dict[str, FileEntry]:
    """Write ``graph/``; ``edges`` by entity number.  Returns the files' entries by name.

    Rows stay in the order of entity numbers, within a partition and within each row.
    """
    part = assignment.part_of_entity
    entities = len(part)
    order = np.argsort(part, kind="stable")
    label = np.empty(entities, np.int64)
    label[order] = np.arange(entities)
    starts = indptr(part[order].astype(np.int64), assignment.parts)
    head, tail = label[edges.source], label[np.repeat(np.arange(entities), np.diff(edges.indptr))]
    into, out = np.argsort(tail, kind="stable"), np.argsort(head, kind="stable")
    into_rows, out_rows = indptr(tail[into], entities), indptr(head[out], entities)
    files: dict[str, FileEntry] = {}

    def array(name: str, content: NDArray[Any]) -> None:
        files[f"{folder}/{name}.npy"] = store.write_array(f"{folder}/{name}.npy", content)

    for number in range(assignment.parts):
        place = f"graph/partition-{number:05d}"
        first, end = int(starts[number]), int(starts[number + 1])
        array(f"{place}/entities", order[first:end])
        for prefix, rows, column, permutation, other in (
            ("", into_rows, "source", into, head),
            ("out_", out_rows, "target", out, tail),
        ):
            mine = permutation[rows[first] : rows[end]]
            array(f"{place}/{prefix}indptr", rows[first : end + 1] - rows[first])
            array(f"{place}/{prefix}{column}", other[mine])
            array(f"{place}/{prefix}relation", edges.relation[mine].astype(np.int32))
            array(f"{place}/{prefix}weight", edges.weight[mine])
    array("graph/relabelled", label)
    division = Partitions(
        starts=tuple(starts.tolist()),
        method=assignment.method,
        cut=assignment.cut,
        balance=assignment.balance,
        scratch_cut=assignment.scratch_cut,
        kept=assignment.kept,
    )
    name = f"{folder}/graph/partitions.json"
    files[name] = store.write(name, (division.model_dump_json() + "\n").encode(), division.count)
    return files


def read_partitions(store: Store, folder: str) -> Partitions:
    """How a build's G_ent is divided."""
    name = f"{folder}/graph/partitions.json"
    try:
        return Partitions.model_validate_json(store.read(name))
    except ValidationError as error:
        raise Damaged(f"{store.path(name)}: not a division of a graph ({str(error).splitlines()[0]}).") from error


def read_standing(store: Store, folder: str, entities: pa.Array) -> Standing:
    """How another build divided the entities named; those that it does not have are new."""
    division = read_partitions(store, folder)
    names = store.read_table(f"{folder}/entities/part-00000.parquet", ["name"])["name"].combine_chunks()
    number = pc.fill_null(pc.index_in(entities, value_set=names), -1).to_numpy(zero_copy_only=False).astype(np.int64)
    stood = number >= 0
    part = np.full(len(number), -1, np.int32)
    labels = np.asarray(open_relabelled(store, folder))[number[stood]]
    part[stood] = np.searchsorted(division.starts, labels, side="right") - 1
    cut = division.cut if division.scratch_cut is None else division.scratch_cut
    return Standing(part, division.count, division.method, cut)


def open_relabelled(store: Store, folder: str) -> Numbers:
    """Entity number -> relabelled id, mapped."""
    return store.array(f"{folder}/graph/relabelled.npy")


def open_partition(store: Store, folder: str, number: int) -> StoredPartition:
    """Map one partition and nothing else.  Raises NotFound where the build has no such partition."""
    division = read_partitions(store, folder)
    if not 0 <= number < division.count:
        raise NotFound(f"{store.path(folder)} has no graph partition {number}; it has 0 to {division.count - 1}.")

    def array(name: str) -> NDArray[Any]:
        return store.array(f"{folder}/graph/partition-{number:05d}/{name}.npy")

    return StoredPartition(
        number=number,
        start=division.starts[number],
        entities=array("entities"),
        into=Edges(array("indptr"), array("source"), array("relation"), array("weight")),
        out_indptr=array("out_indptr"),
        out_target=array("out_target"),
        out_relation=array("out_relation"),
        out_weight=array("out_weight"),
    )


def open_edges(store: Store, folder: str) -> Edges:
    """G_ent by entity number: mapped where there is one partition, else put together in memory."""
    division = read_partitions(store, folder)
    parts = [open_partition(store, folder, number) for number in range(division.count)]
    if len(parts) == 1:
        return parts[0].into
    number = np.concatenate([part.entities for part in parts])
    degree = np.concatenate([np.diff(part.into.indptr) for part in parts])
    rows = np.zeros(len(number) + 1, np.int64)
    rows[1:][number] = degree
    rows = np.cumsum(rows)
    stored = np.cumsum(degree) - degree
    to = np.repeat(rows[number] - stored, degree) + np.arange(len(stored) and int(rows[-1]))
    edges = Edges(rows, np.empty(len(to), np.int64), np.empty(len(to), np.int32), np.empty(len(to), np.float32))
    done = 0
    for part in parts:
        mine = to[done : done + len(part.into.source)]
        edges.source[mine] = number[part.into.source]
        edges.relation[mine], edges.weight[mine] = part.into.relation, part.into.weight
        done += len(mine)
    return edges
