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


class BoundedGFM:
    """Scores the entities near a query's seeds; walks and rows are the owners', the pass is made here."""

    def __init__(self, projected: Projected, owners: Owners, active: int, tolerance: float | None = None) -> None:
        """``active``: K.  ``tolerance``: of the walk that picks them; by default fine enough to reach a few times K."""
        self._projected, self._owners, self._active = projected, owners, active
        self._tolerance = tolerance or 0.02 / active

    def nearest(self, seeds: Mapping[int, float]) -> Numbers:
        """The active nodes, ascending: the seeds and those where a walk from them is most often."""
        reached, mass = walk(self._owners, seeds, WALK_DAMPING, self._tolerance)
        wanted = max(self._active, len(seeds))
        if len(reached) > wanted:
            reached = reached[np.lexsort((reached, -mass))[:wanted]]
        return np.union1d(reached, np.array(list(seeds), np.int64))

    def score(self, question: Tensor, seeds: Mapping[int, float]) -> tuple[Numbers, NDArray[np.float32]]:
        """The active nodes and their logits; ``question``: a text vector of shape (text dimension,)."""
        check_seeds([seeds], int(self._owners.starts[-1]))
        with torch.inference_mode():
            q = self._projected.question(question)
            if not seeds:
                return np.zeros(0, np.int64), np.zeros(0, np.float32)
            nodes = self.nearest(seeds)
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
