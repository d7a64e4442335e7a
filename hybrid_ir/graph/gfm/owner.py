"""The owner of one partition: walks and rows of its own entities, from mapped files.

Several owners together answer as one that owns everything: what they exchange are ids and whole
numbers, whose sums do not depend on who adds them.  All ids here are relabelled ones, so that a
partition's entities are a range.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from hybrid_ir.graph.gfm.background import Background, Bits
from hybrid_ir.graph.gfm.projection import Head
from hybrid_ir.graph.knowledge_graph import Numbers, ranges
from hybrid_ir.graph.messages import MessageGraph, inverse


@dataclass(frozen=True)
class Pushed:
    """What a hop did at one owner."""

    settled: NDArray[np.bool_]
    """Of the ids given: which held enough mass to pass some on."""
    kept: Numbers
    """Of each settled one: the mass that stays with it."""
    target: Numbers
    """Entities of any owner, each once, ascending."""
    mass: Numbers
    returned: int
    """Mass of settled entities without edges: it goes back to the seeds."""


@dataclass(frozen=True)
class Rows:
    """The active entities of one owner: their messages from active entities, and their background."""

    indptr: Numbers
    source: NDArray[np.int32]
    """Places among all active entities."""
    relation: NDArray[np.int32]
    states: list[Bits | None]
    heard: list[Bits | None]


class Owners(Protocol):
    """All owners of a graph, in this process or behind handles."""

    @property
    def starts(self) -> Numbers:
        """The first id of each partition, and after them the number of entities."""
        ...

    def push(self, ids: Sequence[Numbers], mass: Sequence[Numbers], damping: float, least: float) -> list[Pushed]:
        """One hop: what each owner is given are ids of its own, ascending."""
        ...

    def hearers(self, seeds: Numbers) -> tuple[Numbers, Numbers, Numbers]:
        """Who hears ``seeds`` (ascending ids), and through which relation: (seed, hearer, relation) of each message."""
        ...

    def neighbours(self, ids: Numbers, most: int) -> tuple[Numbers, Numbers, Numbers]:
        """Of each of ``ids`` (ascending) whom it hears: (id, neighbour, messages of the id in all), an entry a message,
        evenly spaced ones where it hears more than ``most``."""
        ...

    def gather(self, active: Numbers) -> list[Rows]:
        """Of each owner its rows among ``active`` (ascending ids)."""
        ...

    def resting(self, ids: Numbers, head: Head) -> NDArray[np.float32]:
        """The logits that ``ids`` (ascending) have where no seed is heard; only ids and numbers are exchanged."""
        ...


class PartitionOwner:
    def __init__(self, start: int, nodes: int, messages: MessageGraph, background: Background) -> None:
        """``messages``: rows of its own entities, sources by id; ``nodes``: of the whole graph."""
        self.start, self._nodes, self._messages, self._background = start, nodes, messages, background

    def push(self, ids: Numbers, mass: Numbers, damping: float, least: float) -> Pushed:
        """Entities with more than ``least`` x their edges pass ``damping`` of their mass on, in equal whole parts."""
        from hybrid_ir.graph.gfm.kernels import push_rows

        rows = ids - self.start
        degree = self._messages.indptr[rows + 1] - self._messages.indptr[rows]
        settled = mass > least * np.maximum(degree, 1)
        rows, degree, given = rows[settled], degree[settled], mass[settled]
        part = np.floor(given * (damping / np.maximum(degree, 1))).astype(np.int64)
        target, moved = push_rows(self._messages.indptr, self._messages.source, rows, part, self._nodes)
        order = np.argsort(target)
        back = np.where(degree == 0, part, 0)
        kept = given - part * degree - back
        return Pushed(settled, kept, target[order], moved[order], int(back.sum()))

    def hearers(self, seeds: Numbers) -> tuple[Numbers, Numbers, Numbers]:
        """Messages are symmetric: whoever a seed hears, hears it through the inverse."""
        messages, rows = self._messages, self._own(seeds)
        at = ranges(messages.indptr[rows], messages.indptr[rows + 1])
        seed = np.repeat(rows + self.start, messages.indptr[rows + 1] - messages.indptr[rows])
        back = inverse(messages.relation[at], messages.relations)
        return seed, messages.source[at].astype(np.int64), back.astype(np.int64)

    def neighbours(self, ids: Numbers, most: int) -> tuple[Numbers, Numbers, Numbers]:
        """See :meth:`Owners.neighbours`; nothing of ids that others own."""
        rows = self._own(ids)
        first, count = self._messages.indptr[rows], self._messages.indptr[rows + 1] - self._messages.indptr[rows]
        looked_at = np.minimum(count, most)
        row = np.repeat(np.arange(len(rows)), looked_at)
        place = np.arange(len(row)) - np.repeat(np.cumsum(looked_at) - looked_at, looked_at)
        at = first[row] + place * count[row] // looked_at[row]
        return rows[row] + self.start, self._messages.source[at].astype(np.int64), count[row]

    def gather(self, active: Numbers) -> Rows:
        from hybrid_ir.graph.gfm.kernels import induced

        messages, rows = self._messages, self._own(active)
        indptr, source, relation = induced(
            messages.indptr, messages.source, messages.relation, rows, active, self._nodes
        )
        states = [None if held is None else held[rows] for held in self._background.states]
        heard = [None if held is None else held[rows] for held in self._background.heard]
        return Rows(indptr, source, relation, states, heard)

    def resting(self, ids: Numbers, head: Head) -> NDArray[np.float32]:
        from hybrid_ir.graph.gfm.kernels import resting_logits

        rows, hidden = self._own(ids), self._background.hidden
        logits: NDArray[np.float32] = resting_logits(hidden, rows, head.constant, head.last, head.bias)
        return logits

    def _own(self, ids: Numbers) -> Numbers:
        """Those of ``ids`` that are its own, as its rows."""
        rows: Numbers = ids[(ids >= self.start) & (ids < self.start + self._messages.nodes)] - self.start
        return rows


class LocalOwners:
    """See :class:`Owners`: all in this process."""

    def __init__(self, owners: Sequence[PartitionOwner], nodes: int) -> None:
        self._owners = owners
        self.starts: Numbers = np.array([*(owner.start for owner in owners), nodes], np.int64)

    def push(self, ids: Sequence[Numbers], mass: Sequence[Numbers], damping: float, least: float) -> list[Pushed]:
        given = zip(self._owners, ids, mass, strict=True)
        return [owner.push(own, held, damping, least) for owner, own, held in given]

    def hearers(self, seeds: Numbers) -> tuple[Numbers, Numbers, Numbers]:
        seed, hearer, relation = zip(*(owner.hearers(seeds) for owner in self._owners), strict=True)
        return np.concatenate(seed), np.concatenate(hearer), np.concatenate(relation)

    def neighbours(self, ids: Numbers, most: int) -> tuple[Numbers, Numbers, Numbers]:
        node, neighbour, messages = zip(*(owner.neighbours(ids, most) for owner in self._owners), strict=True)
        return np.concatenate(node), np.concatenate(neighbour), np.concatenate(messages)

    def gather(self, active: Numbers) -> list[Rows]:
        return [owner.gather(active) for owner in self._owners]

    def resting(self, ids: Numbers, head: Head) -> NDArray[np.float32]:
        return np.concatenate([owner.resting(ids, head) for owner in self._owners])
