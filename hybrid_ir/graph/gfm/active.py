"""Which entities move for a query: near the seeds, loud to the question, and samples of what hubs hear back.

A hub that a seed changes says so to all its neighbours, and hears them say it back two layers
later: a sum over more nodes than can be active.  A sample of the neighbours stands for the rest.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from hybrid_ir.graph.gfm.owner import Owners
from hybrid_ir.graph.gfm.projection import Projected
from hybrid_ir.graph.gfm.walk import walk
from hybrid_ir.graph.knowledge_graph import Numbers

WALK_DAMPING = 0.85
"""Of the walk that picks the active nodes: six layers reach six hops."""
STRONGEST = 0.25
"""Of the active nodes so many at most are hearers of seeds, those that the first layer changes most."""
HEARERS_SHARE = 0.5
"""Of the mass that the walk starts with; the seeds have the rest."""
MOST_RELATIONS = 2048
"""Pairs of a seed and a relation whose first layer is computed; the loudest where there are more."""
HUBS = 16
"""Hearers, the most changed, whose neighbours are sampled; seeds always are."""
ECHO = 0.5
"""Of the active nodes so many at most are there for their hubs."""
MOST_NEIGHBOURS = 4096
"""Of a hub are looked at, evenly spaced; the others count as these."""
_SPREAD = np.uint64(11400714819323198485)
"""Odd: times this, ids are ordered as if at random, and everywhere alike."""


@dataclass(frozen=True)
class Sample:
    """Neighbours that stand for all of a hub's that are not active."""

    hub: int
    neighbours: Numbers
    """Ascending, all active."""
    times: float
    """What each says to the hub counts so often; at least 1."""


@dataclass(frozen=True)
class Active:
    nodes: Numbers
    """Ascending."""
    samples: tuple[Sample, ...] = ()


class Choice:
    """Picks the active nodes of a query."""

    def __init__(self, projected: Projected, owners: Owners, most: int, tolerance: float) -> None:
        """``most``: K.  ``tolerance``: of the walk."""
        self._projected, self._owners, self._most, self._tolerance = projected, owners, most, tolerance

    def of(self, q: Tensor, seeds: Mapping[int, float]) -> Active:
        """Seeds, the hearers they change most, samples for the echo of both, and those where a walk from both is most.

        A walk alone does not know the question: of a hub's thousand neighbours it prefers none, where
        the network picks those behind the relation that was asked for.
        """
        given = np.array(sorted(seeds), np.int64)
        total = sum(seeds.values())
        hearers, change = self._hearers(q, seeds)
        start = {node: weight / total for node, weight in seeds.items()}
        if len(hearers):
            start = {node: (1 - HEARERS_SHARE) * weight for node, weight in start.items()}
            start |= dict(zip(hearers.tolist(), (HEARERS_SHARE * change / change.sum()).tolist(), strict=True))
        reached, mass = walk(self._owners, start, WALK_DAMPING, self._tolerance)
        chosen = np.union1d(given, hearers)
        others = np.isin(reached, chosen, invert=True)
        reached, mass = reached[others], mass[others]
        left = max(self._most - len(chosen), 0)
        spare = left - len(reached)
        for_echo = spare if spare >= 0 else min(int(ECHO * self._most), left)
        near = reached[np.lexsort((reached, -mass))[: left - for_echo]]
        hubs = np.union1d(given, hearers[np.lexsort((hearers, -change))[:HUBS]])
        return self._with_samples(np.union1d(chosen, near), hubs, for_echo)

    def _hearers(self, q: Tensor, seeds: Mapping[int, float]) -> tuple[Numbers, NDArray[np.float64]]:
        """Neighbours of the seeds that the first layer changes most, ascending, and by how much (> 0)."""
        seed, hearer, relation = self._owners.hearers(np.array(sorted(seeds), np.int64))
        beside = np.isin(hearer, np.array(list(seeds)), invert=True)
        seed, hearer, relation = seed[beside], hearer[beside], relation[beside].astype(np.int64)
        # What a seed says through a relation is the same for all who hear it: computed once.
        relations = len(self._projected.relations[0])
        pairs, place = np.unique(seed * relations + relation, return_inverse=True)
        weight = np.array([seeds[node] for node in (pairs // relations).tolist()], np.float32)
        said = torch.from_numpy(self._projected.relations[0][pairs % relations] * weight[:, None]) * q
        loud = torch.linalg.vector_norm(said, dim=1).argsort(descending=True, stable=True)[:MOST_RELATIONS]
        change = np.zeros(len(pairs))
        layer = self._projected.layers[0]
        change[loud.numpy()] = torch.linalg.vector_norm(
            layer(torch.zeros(len(loud), len(q)), said[loud]) - layer.idle(), dim=1
        ).numpy()
        ids, at = np.unique(hearer, return_inverse=True)
        most = np.zeros(len(ids))
        np.maximum.at(most, at, change[place])
        best = np.lexsort((ids, -most))[: int(STRONGEST * self._most)]
        best = np.sort(best[most[best] > 0])
        return ids[best], most[best]

    def _with_samples(self, nodes: Numbers, hubs: Numbers, budget: int) -> Active:
        """``nodes`` and up to ``budget`` neighbours of ``hubs``; who has few leaves the rest of its share to others."""
        hub, neighbour, messages = self._owners.neighbours(hubs, MOST_NEIGHBOURS)
        outside: list[tuple[int, int, Numbers, float]] = []
        for one in hubs.tolist():
            of_hub = hub == one
            held = np.unique(neighbour[of_hub])
            held = held[np.isin(held, nodes, invert=True)]
            if len(held):
                outside.append((len(held), one, held, float(messages[of_hub][0]) / int(of_hub.sum())))
        outside.sort(key=lambda entry: entry[:2])
        drawn: list[tuple[int, Numbers, Numbers, float]] = []
        for number, (count, one, held, standing) in enumerate(outside):
            order = np.argsort(held.astype(np.uint64) * _SPREAD, kind="stable")
            some = np.sort(held[order[: min(count, budget // (len(outside) - number))]])
            budget -= len(some)
            drawn.append((one, some, held, standing))
        added = np.unique(np.concatenate([np.zeros(0, np.int64), *(some for _, some, _, _ in drawn)]))
        samples = []
        for one, some, held, standing in drawn:
            if len(some):
                # A neighbour drawn for another hub says its own to this one as well, and stands for nobody.
                silent = len(held) * standing - int(np.isin(held, added).sum()) + len(some)
                samples.append(Sample(one, some, max(silent / len(some), 1.0)))
        return Active(np.union1d(nodes, added), tuple(samples))
