"""The bounded forward pass: K nodes near the seeds move, the rest keep their background.

A query changes states only where its seeds are heard.  With the trajectory without seeds at hand
(:mod:`background`), the aggregate of an active node is the background's plus what its active
neighbours changed:  u = u_bg + sum over active sources of R[r] * (x - x_bg) + x0.  The cost
depends on K, not on the graph; with every node active the result is the exact one, but for the
background's bfloat16.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from hybrid_ir.graph.gfm.background import Background, from_bits
from hybrid_ir.graph.gfm.exact import ExactGFM
from hybrid_ir.graph.knowledge_graph import Numbers
from hybrid_ir.graph.push import push

WALK_DAMPING = 0.85
"""Of the walk that picks the active nodes: six layers reach six hops."""


class BoundedGFM:
    """Scores the entities near a query's seeds; shares weights and projections with ``exact``."""

    def __init__(self, exact: ExactGFM, background: Background, active: int, tolerance: float | None = None) -> None:
        """``active``: K.  ``tolerance``: of the walk that picks them; by default fine enough to reach about 4 K."""
        self._exact, self._background, self._active = exact, background, active
        self._tolerance = tolerance or 0.02 / active
        degree = np.diff(exact.graph.indptr)
        self._share = np.repeat(1.0 / np.maximum(degree, 1), degree).astype(np.float32)

    def nearest(self, seeds: Mapping[int, float]) -> Numbers:
        """The active nodes, ascending: the seeds and those where a walk from them is most often."""
        graph = self._exact.graph
        reached, rank = push(graph.indptr, graph.source, self._share, seeds, WALK_DAMPING, self._tolerance)
        wanted = max(self._active, len(seeds))
        if len(reached) > wanted:
            reached = reached[np.lexsort((reached, -rank))[:wanted]]
        return np.union1d(reached, np.array(list(seeds), np.int64))

    def score(self, question: Tensor, seeds: Mapping[int, float]) -> tuple[Numbers, NDArray[np.float32]]:
        """The active nodes and their logits; ``question``: a text vector of shape (text dimension,).

        Nodes that are not active are no candidates: their final state is the background's, whose
        score depends on the question but says nothing of the seeds.
        """
        self._exact.check(question[None], [seeds])
        if not seeds:
            return np.zeros(0, np.int64), np.zeros(0, np.float32)
        nodes = self.nearest(seeds)
        with torch.inference_mode():
            q = self._exact.network.question_mlp(question)
            states = self.states(nodes, q, seeds)
            return nodes, self._exact.logits(states[:, None], q[None])[:, 0].numpy()

    def states(self, nodes: Numbers, q: Tensor, seeds: Mapping[int, float]) -> Tensor:
        """The last states of ``nodes`` (ascending), shape (nodes, dimension)."""
        from hybrid_ir.graph.gfm.kernels import aggregate, induced

        exact, graph = self._exact, self._exact.graph
        indptr, source, relation = induced(graph.indptr, graph.source, graph.relation, nodes)
        weights = torch.zeros(len(nodes), 1)
        weights[torch.from_numpy(np.searchsorted(nodes, np.array(list(seeds)))), 0] = torch.tensor(
            list(seeds.values()), dtype=torch.float32
        )
        x = x0 = weights * q
        heard = np.empty((len(nodes), 1, x.shape[1]), np.float32)
        for layer, projected, before, aggregated in zip(
            exact.layers, exact.projected, self._background.states[:-1], self._background.heard, strict=True
        ):
            changed = x if before is None else x - from_bits(before[nodes])
            aggregate(indptr, source, relation, projected, changed.numpy()[:, None], 0, heard)
            u = torch.from_numpy(heard[:, 0]) + x0
            x = layer(x, u if aggregated is None else u + from_bits(aggregated[nodes]))
        return x
