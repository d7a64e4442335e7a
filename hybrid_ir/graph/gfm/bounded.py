"""The bounded forward pass: K nodes near the seeds move, the rest keep their background.

A query changes states only where its seeds are heard.  With the trajectory without seeds at hand
(:mod:`background`), the aggregate of an active node is the background's plus what its active
neighbours changed:  u = u_bg + sum over active sources of R[r] * (x - x_bg) + x0.  The cost
depends on K, not on the graph; with every node active the result is the exact one, but for the
background's bfloat16.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from hybrid_ir.graph.gfm.background import Bits, from_bits
from hybrid_ir.graph.gfm.owner import Owners, Rows
from hybrid_ir.graph.gfm.projection import Projected, check_seeds
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


class BoundedGFM:
    """Scores the entities near a query's seeds; walks and rows are the owners', the pass is made here."""

    def __init__(self, projected: Projected, owners: Owners, active: int, tolerance: float | None = None) -> None:
        """``active``: K.  ``tolerance``: of the walk that picks them; by default fine enough to reach a few times K."""
        self._projected, self._owners, self._active = projected, owners, active
        self._tolerance = tolerance or 0.02 / active

    def nearest(self, q: Tensor, seeds: Mapping[int, float]) -> Numbers:
        """The active nodes, ascending: seeds, the hearers they change most, and those where a walk from both is most.

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
        left = max(self._active - len(chosen), 0)
        return np.union1d(chosen, reached[np.lexsort((reached, -mass))[:left]])

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
        best = np.lexsort((ids, -most))[: int(STRONGEST * self._active)]
        best = np.sort(best[most[best] > 0])
        return ids[best], most[best]

    def score(self, question: Tensor, seeds: Mapping[int, float]) -> tuple[Numbers, NDArray[np.float32]]:
        """The active nodes and their logits; ``question``: a text vector of shape (text dimension,)."""
        check_seeds([seeds], int(self._owners.starts[-1]))
        with torch.inference_mode():
            q = self._projected.question(question)
            if not seeds:
                return np.zeros(0, np.int64), np.zeros(0, np.float32)
            nodes = self.nearest(q, seeds)
            states = self.states(nodes, q, seeds)
            return nodes, self._projected.logits(states[:, None], q[None])[:, 0].numpy()

    def resting(self, question: Tensor, nodes: Numbers) -> NDArray[np.float32]:
        """The logits of nodes that a query does not move, in their order: their last state is the background's,
        but the score also reads the question."""
        with torch.inference_mode():
            head = self._projected.head(self._projected.question(question))
        order = np.argsort(nodes)
        logits = np.empty(len(nodes), np.float32)
        logits[order] = self._owners.resting(nodes[order], head)
        return logits

    def states(self, nodes: Numbers, q: Tensor, seeds: Mapping[int, float]) -> Tensor:
        """The last states of ``nodes`` (ascending), shape (nodes, dimension)."""
        from hybrid_ir.graph.gfm.kernels import aggregate  # compiles with numba: only who scores waits for it

        rows = self._owners.gather(nodes)
        indptr = np.concatenate([[0], *(np.diff(part.indptr) for part in rows)]).cumsum()
        source, relation = (np.concatenate([getattr(part, name) for part in rows]) for name in ("source", "relation"))
        weights = torch.zeros(len(nodes), 1)
        weights[torch.from_numpy(np.searchsorted(nodes, np.array(list(seeds)))), 0] = torch.tensor(
            list(seeds.values()), dtype=torch.float32
        )
        x = x0 = weights * q
        heard = np.empty((len(nodes), 1, x.shape[1]), np.float32)
        for number, layer in enumerate(self._projected.layers):
            before, aggregated = (_joined(rows, kind, number) for kind in ("states", "heard"))
            changed = x if before is None else x - before
            projected = self._projected.relations[number]
            aggregate(indptr, source, relation, projected, changed.numpy()[:, None], 0, heard)
            u = torch.from_numpy(heard[:, 0]) + x0
            x = layer(x, u if aggregated is None else u + aggregated)
        return x


def _joined(rows: Sequence[Rows], kind: str, number: int) -> Tensor | None:
    """The background of one layer over all owners' active nodes; None where it is zero."""
    parts: list[Bits | None] = [getattr(part, kind)[number] for part in rows]
    held = [part for part in parts if part is not None]
    return from_bits(np.concatenate(held)) if held else None
