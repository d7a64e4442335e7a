"""Which partition each entity of G_ent belongs to: few edges between partitions, none much larger than another."""

from __future__ import annotations

from dataclasses import dataclass
from importlib.util import find_spec
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from hybrid_ir.errors import BadInput
from hybrid_ir.graph.knowledge_graph import Numbers
from hybrid_ir.settings import Partitioner

Method = Literal["whole", "metis", "stream", "hash"]
"""``whole``: one partition, nothing to divide."""

METIS_EDGES = 10_000_000
"""Above so many distinct undirected edges ``auto`` takes the streaming partitioner."""
ENTITIES_PER_PART = 1_000_000
SLACK = 1.05
"""No partition holds more than this times its even share of the entities, rounded up."""
KEPT_BALANCE = 1.2
KEPT_CUT, KEPT_CUT_MORE = 1.25, 0.02
"""What an update may make of a division before the graph is divided anew: the largest partition over the
mean (rounded up as with ``SLACK``), and the cut that it had when it was made, times this and plus that."""
_SEED = 7


@dataclass(frozen=True)
class Standing:
    """How the entities of a graph were divided in the build that an update changes."""

    part_of_entity: NDArray[np.int32]
    """Shape (entities,) of the new graph; -1: the entity is new."""
    parts: int
    method: Method
    scratch_cut: float


@dataclass(frozen=True)
class Assignment:
    """``part_of_entity`` has shape (entities,)."""

    part_of_entity: NDArray[np.int32]
    parts: int
    method: Method
    """The one that was used."""
    cut: float
    """Share of the edges whose ends lie in different partitions."""
    balance: float
    """Entities of the largest partition over the mean; at most about ``SLACK``, ``KEPT_BALANCE`` after updates."""
    scratch_cut: float
    """The cut when the graph was last divided from scratch."""
    kept: int = 0
    """Entities that are where they stood in the build before."""


def part_count(entities: int, setting: int | Literal["auto"]) -> int:
    """The number of partitions that ``GraphSettings.partitions`` asks for."""
    return max(1, -(-entities // ENTITIES_PER_PART)) if setting == "auto" else setting


def assign(
    entities: int,
    head: Numbers,
    tail: Numbers,
    parts: int,
    method: Partitioner = "auto",
    standing: Standing | None = None,
) -> Assignment:
    """Divide the entities 0 … entities - 1 into ``parts``; the same input gives the same division.

    ``head`` and ``tail`` are the edges' ends; direction does not count, parallel edges do.
    ``auto``: METIS up to ``METIS_EDGES``, the streaming partitioner above, and where neither
    ``pymetis`` nor ``numba`` is installed, equal parts of the entities in a scattered order
    (``hash``).  Entities without edges go where there is most room.

    With ``standing`` all entities stay where they stood and the streaming rule places the new ones,
    unless there are now more or fewer partitions, or ``KEPT_BALANCE`` or ``KEPT_CUT`` would not hold.
    """
    if parts < 1:
        raise BadInput(f"partitions: {parts}; there must be at least 1.")
    if parts == 1:
        return Assignment(np.zeros(entities, np.int32), 1, "whole", 0.0, 1.0, 0.0)
    used: Method
    if standing is not None and standing.parts == parts:
        part = _extended(standing, head, tail)
        worst = KEPT_CUT * standing.scratch_cut + KEPT_CUT_MORE
        if _largest(part, parts) <= _capacity(entities, parts, KEPT_BALANCE) and _cut(part, head, tail) <= worst:
            kept = int(np.sum(standing.part_of_entity >= 0))
            return _measured(part, parts, standing.method, head, tail, standing.scratch_cut, kept)
    if method == "hash":
        part, used = _scatter(entities, parts), "hash"
    else:
        adjacency = _undirected(entities, head, tail)
        used = _choose(adjacency.nnz // 2) if method == "auto" else method
        part = {"metis": _metis, "stream": _stream}.get(used, lambda _, k: _scatter(entities, k))(adjacency, parts)
    part = _even_out(part, parts, _capacity(entities, parts))
    return _measured(part, parts, used, head, tail)


def _measured(
    part: NDArray[np.int32],
    parts: int,
    method: Method,
    head: Numbers,
    tail: Numbers,
    scratch_cut: float | None = None,
    kept: int = 0,
) -> Assignment:
    cut = _cut(part, head, tail)
    balance = _largest(part, parts) * parts / len(part) if len(part) else 1.0
    return Assignment(part, parts, method, cut, balance, cut if scratch_cut is None else scratch_cut, kept)


def _cut(part: NDArray[np.int32], head: Numbers, tail: Numbers) -> float:
    return float(np.mean(part[head] != part[tail])) if len(head) else 0.0


def _largest(part: NDArray[np.int32], parts: int) -> int:
    """Entities of the largest part; those without one (-1) do not count."""
    return int(np.bincount(part[part >= 0], minlength=parts).max())


def _extended(standing: Standing, head: Numbers, tail: Numbers) -> NDArray[np.int32]:
    """The standing division with the new entities in it; none of the others is moved."""
    part, parts = standing.part_of_entity, standing.parts
    largest = _largest(part, parts)
    if standing.method != "hash" and find_spec("numba"):
        part = _stream(_undirected(len(part), head, tail), parts, part)
    return _even_out(part, parts, max(largest, _capacity(len(part), parts)))


def _choose(edges: int) -> Method:
    if edges <= METIS_EDGES and find_spec("pymetis"):
        return "metis"
    return "stream" if find_spec("numba") else "hash"


def _undirected(entities: int, head: Numbers, tail: Numbers) -> Any:
    """Symmetric CSR adjacency without loops; an entry is the number of edges between the two."""
    import scipy.sparse as sp

    apart = head != tail
    low, high = np.minimum(head[apart], tail[apart]), np.maximum(head[apart], tail[apart])
    once: Any = sp.coo_array((np.ones(len(low), np.int32), (low, high)), shape=(entities, entities)).tocsr()
    both = (once + once.T).tocsr()
    both.sort_indices()
    return both


def _metis(adjacency: Any, parts: int) -> NDArray[np.int32]:
    """Multilevel k-way partitioning (Karypis and Kumar 1998) of the entities that have edges."""
    import pymetis

    number = pymetis.zero_copy_dtype()
    joined = np.flatnonzero(np.diff(adjacency.indptr))
    part = np.full(adjacency.shape[0], -1, np.int32)
    if not len(joined):
        return part
    dense = np.zeros(adjacency.shape[0], number)
    dense[joined] = np.arange(len(joined))
    found = pymetis.part_graph(
        min(parts, len(joined)),
        pymetis.CSRAdjacency(
            np.append(adjacency.indptr[joined], adjacency.nnz).astype(number), dense[adjacency.indices]
        ),
        eweights=adjacency.data.astype(number),
        options=pymetis.Options(seed=_SEED),
        recursive=False,
    )
    part[joined] = found.vertex_part
    return part


def _stream(adjacency: Any, parts: int, before: NDArray[np.int32] | None = None) -> NDArray[np.int32]:
    from hybrid_ir.graph.stream_partition import fennel

    capacity = _capacity(adjacency.shape[0], parts)
    return np.asarray(fennel(adjacency.indptr, adjacency.indices, adjacency.data, parts, capacity, before), np.int32)


def _scatter(entities: int, parts: int) -> NDArray[np.int32]:
    """Equal parts of the entities in the order of a hash of their numbers (the finaliser of SplitMix64)."""
    mixed = np.arange(1, entities + 1, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15)
    for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
        mixed = (mixed ^ (mixed >> np.uint64(shift))) * np.uint64(factor)
    part = np.empty(entities, np.int32)
    part[np.argsort(mixed, kind="stable")] = np.arange(entities) * parts // max(entities, 1)
    return part


def _capacity(entities: int, parts: int, slack: float = SLACK) -> int:
    return int(np.ceil(slack * entities / parts))


def _even_out(part: NDArray[np.int32], parts: int, capacity: int) -> NDArray[np.int32]:
    """Entities without a part (-1), and the last ones of a part beyond its capacity, go where there is most room."""
    part = part.copy()
    sizes = np.bincount(part[part >= 0], minlength=parts)
    for full in np.flatnonzero(sizes > capacity):
        part[np.flatnonzero(part == full)[capacity:]] = -1
    sizes, free = np.minimum(sizes, capacity), np.flatnonzero(part < 0)
    low, high = 0, len(part)
    while low < high:  # the lowest level up to which all parts can be filled
        level = (low + high) // 2
        low, high = (low, level) if np.maximum(level - sizes, 0).sum() >= len(free) else (level + 1, high)
    part[free] = np.repeat(np.arange(parts), np.maximum(low - sizes, 0))[: len(free)]
    return part
