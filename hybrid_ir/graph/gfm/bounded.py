"""The bounded forward pass: K nodes near the seeds move, the rest keep their background.

A query changes states only where its seeds are heard.  With the trajectory without seeds at hand
(:mod:`background`), the aggregate of an active node is the background's plus what its active
neighbours changed:  u = u_bg + sum over active sources of R[r] * (x - x_bg) + x0, where the sampled
neighbours of a hub (:mod:`active`) count for those that are not active.  The cost depends on K, not
on the graph; with every node active the result is the exact one, but for the background's bfloat16.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from hybrid_ir.graph.gfm.active import Active, Choice
from hybrid_ir.graph.gfm.background import Bits, from_bits
from hybrid_ir.graph.gfm.owner import Owners, Rows
from hybrid_ir.graph.gfm.projection import Projected, check_seeds
from hybrid_ir.graph.knowledge_graph import Numbers


class BoundedGFM:
    """Scores the entities near a query's seeds; walks and rows are the owners', the pass is made here."""

    def __init__(self, projected: Projected, owners: Owners, active: int, tolerance: float | None = None) -> None:
        """``active``: K.  ``tolerance``: of the walk that picks them; by default fine enough to reach a few times K."""
        self._projected, self._owners = projected, owners
        self._choice = Choice(projected, owners, active, tolerance or 0.02 / active)

    def nearest(self, q: Tensor, seeds: Mapping[int, float]) -> Active:
        """The nodes that move, at most K."""
        return self._choice.of(q, seeds)

    def score(self, question: Tensor, seeds: Mapping[int, float]) -> tuple[Numbers, NDArray[np.float32]]:
        """The active nodes and their logits; ``question``: a text vector of shape (text dimension,)."""
        check_seeds([seeds], int(self._owners.starts[-1]))
        with torch.inference_mode():
            q = self._projected.question(question)
            if not seeds:
                return np.zeros(0, np.int64), np.zeros(0, np.float32)
            active = self.nearest(q, seeds)
            states = self.states(active, q, seeds)
            return active.nodes, self._projected.logits(states[:, None], q[None])[:, 0].numpy()

    def resting(self, question: Tensor, nodes: Numbers) -> NDArray[np.float32]:
        """The logits of nodes that a query does not move, in their order: their last state is the background's,
        but the score also reads the question."""
        with torch.inference_mode():
            head = self._projected.head(self._projected.question(question))
        order = np.argsort(nodes)
        logits = np.empty(len(nodes), np.float32)
        logits[order] = self._owners.resting(nodes[order], head)
        return logits

    def states(self, active: Active, q: Tensor, seeds: Mapping[int, float]) -> Tensor:
        """The last states of the active nodes, shape (nodes, dimension)."""
        from hybrid_ir.graph.gfm.kernels import aggregate  # compiles with numba: only who scores waits for it

        nodes = active.nodes
        rows = self._owners.gather(nodes)
        indptr = np.concatenate([[0], *(np.diff(part.indptr) for part in rows)]).cumsum()
        source, relation = (np.concatenate([getattr(part, name) for part in rows]) for name in ("source", "relation"))
        echo = _echo(active, indptr, source)
        weights = torch.zeros(len(nodes), 1)
        weights[torch.from_numpy(np.searchsorted(nodes, np.array(list(seeds)))), 0] = torch.tensor(
            list(seeds.values()), dtype=torch.float32
        )
        x = x0 = weights * q
        heard = np.empty((len(nodes), 1, x.shape[1]), np.float32)
        again = np.empty((len(echo.hubs), 1, x.shape[1]), np.float32)
        for number, layer in enumerate(self._projected.layers):
            before, aggregated = (_joined(rows, kind, number) for kind in ("states", "heard"))
            changed = (x if before is None else x - before).numpy()[:, None]
            projected = self._projected.relations[number]
            aggregate(indptr, source, relation, projected, changed, 0, heard)
            if len(echo.hubs):
                aggregate(echo.indptr, source[echo.at], relation[echo.at], projected, changed, 0, again)
                heard[echo.hubs, 0] += echo.more[:, None] * again[:, 0]
            u = torch.from_numpy(heard[:, 0]) + x0
            x = layer(x, u if aggregated is None else u + aggregated)
        return x


@dataclass(frozen=True)
class _Echo:
    """The messages from samples to their hubs, CSR by hub."""

    hubs: Numbers
    """Places among the active nodes."""
    indptr: Numbers
    at: Numbers
    """Places among all messages."""
    more: NDArray[np.float32]
    """How often each of a hub's counts beside the once that every message does."""


def _echo(active: Active, indptr: Numbers, source: NDArray[np.int32]) -> _Echo:
    samples = [sample for sample in active.samples if sample.times > 1.0]
    hubs = np.searchsorted(active.nodes, np.array([sample.hub for sample in samples], np.int64))
    at = []
    for hub, sample in zip(hubs.tolist(), samples, strict=True):
        places = np.searchsorted(active.nodes, sample.neighbours)
        at.append(indptr[hub] + np.flatnonzero(np.isin(source[indptr[hub] : indptr[hub + 1]], places)))
    counts = np.cumsum([0, *map(len, at)])
    more = np.array([sample.times - 1.0 for sample in samples], np.float32)
    return _Echo(hubs, counts, np.concatenate([np.zeros(0, np.int64), *at]), more)


def _joined(rows: Sequence[Rows], kind: str, number: int) -> Tensor | None:
    """The background of one layer over all owners' active nodes; None where it is zero."""
    parts: list[Bits | None] = [getattr(part, kind)[number] for part in rows]
    held = [part for part in parts if part is not None]
    return from_bits(np.concatenate(held)) if held else None
