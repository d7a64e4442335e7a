"""Personalised PageRank over entities and chunks (HippoRAG's graph scorer).

It needs no training, so it is the default scorer and a baseline always.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from hybrid_ir.errors import BadInput
from hybrid_ir.graph.store import StoredGraph
from hybrid_ir.ranking import top
from hybrid_ir.settings import GraphPathSettings

log = logging.getLogger(__name__)


MOST_MEETING = 8
"""Seeds of which the meeting points are sought, the strongest: each is a walk of its own."""
MEETING_COARSER = 10
"""The seeds' own walks are pushed this much less finely: only the best meeting points are taken from them."""
UNREACHED = 1e-12
"""Stands for the score of an entity that a seed does not reach, so that one lonely seed forbids nothing."""


class PageRank:
    """p = (1 - d) s + d P p over the undirected graph of G_ent, G_link and G_doc.

    s: the seeds, summing to 1.  P: each node gives to its neighbours by edge weight (an edge's
    chunk count, a synonym's cosine, 1 for a mention, a link's similarity).  d: damping, 0.5 in
    HippoRAG.  What a node without edges holds goes back to the seeds.

    A graph of up to ``exact_up_to_edges`` edges is iterated until nothing moves; in a larger one
    mass is pushed from the seeds (see :mod:`push`), at a cost that does not grow with the graph.
    """

    def __init__(self, graph: StoredGraph, settings: GraphPathSettings) -> None:
        self._settings = settings
        self._entities, self._chunks = graph.entities, graph.chunks
        entity_edges = sp.csr_array(
            (graph.edge_weight, graph.edge_source, graph.edge_indptr), shape=(graph.entities, graph.entities)
        )
        mentions = sp.csr_array(
            (np.ones(len(graph.mention_chunk), np.float32), graph.mention_chunk, graph.mention_indptr),
            shape=(graph.entities, graph.chunks),
        )
        links = sp.csr_array(
            (graph.link_weight, graph.link_target, graph.link_indptr), shape=(graph.chunks, graph.chunks)
        )
        half: Any = sp.block_array([[entity_edges, mentions], [None, links]], format="csr")
        adjacency: Any = (half + half.T).tocsr()
        degree = np.asarray(adjacency.sum(axis=1)).ravel()
        self._dangling = degree == 0
        scale = sp.diags_array(
            np.divide(1.0, degree, out=np.zeros_like(degree, dtype=np.float64), where=~self._dangling)
        )
        # Scaled by rows, an edge holds what its node gives; by columns it is the transition matrix.
        self._push = _load_push() if adjacency.nnz > settings.exact_up_to_edges else None
        moves = scale @ adjacency if self._push else adjacency @ scale
        self._moves = moves.astype(np.float32).tocsr()
        if self._push and self._entities:
            self._push(self._moves.indptr, self._moves.indices, self._moves.data, {0: 1.0}, 0.5, 1.0)  # compiles

    def score(self, seeds: Mapping[int, float], query: str = "") -> tuple[NDArray[np.float32], NDArray[np.float32]]:
        """See :class:`hybrid_ir.roles.GraphScorer`.  No seeds: all zero."""
        return self.score_many([seeds], [query])[0]

    def score_many(
        self, seeds: Sequence[Mapping[int, float]], queries: Sequence[str]
    ) -> list[tuple[NDArray[np.float32], NDArray[np.float32]]]:
        """See :class:`hybrid_ir.roles.GraphScorer`."""
        starts = [self._starts(given) for given in seeds]
        somewhere = [number for number, given in enumerate(starts) if given]
        ranks = np.zeros((self._entities + self._chunks, len(seeds)), np.float32)
        if somewhere:
            ranks[:, somewhere] = self._walk([starts[number] for number in somewhere])
        return [(rank[: self._entities], rank[self._entities :]) for rank in np.ascontiguousarray(ranks.T)]

    def _starts(self, seeds: Mapping[int, float]) -> dict[int, float]:
        """Where the walk begins and begins again, weights that sum to 1; empty where there is no seed."""
        for entity in seeds:
            if not 0 <= entity < self._entities:
                raise BadInput(f"Seed {entity} is not an entity of this build (0 to {self._entities - 1}).")
        total = sum(seeds.values())
        if total <= 0 or not np.isfinite(total):
            return {}
        starts = {entity: weight / total for entity, weight in seeds.items() if weight > 0}
        share = self._settings.meeting_share
        if len(starts) > 1 and share > 0 and (meeting := self._meeting(starts)):
            starts = {entity: (1 - share) * weight for entity, weight in starts.items()}
            starts |= {entity: share * weight for entity, weight in meeting.items()}
        return starts

    def _meeting(self, starts: Mapping[int, float]) -> dict[int, float]:
        """The entities where walks from each seed meet, seeds apart: weights that sum to 1.

        meet(e) = prod over seeds i of p_i(e) ** w_i, p_i: PageRank from seed i alone, w_i: its weight.  A
        sum of walks ranks high what is near to one seed; what a question seeks is near to all it names.
        """
        strongest = sorted(starts, key=lambda entity: (-starts[entity], entity))[:MOST_MEETING]
        weights = np.array([starts[entity] for entity in strongest])
        entities, walks = self._alone(strongest)
        met = ((walks > 0).sum(axis=1) >= 2) & ~np.isin(entities, list(starts))
        entities, walks = entities[met], walks[met]
        together = np.exp(np.log(walks + UNREACHED) @ (weights / weights.sum())).astype(np.float32)
        best = top(together, self._settings.meeting_points)
        total = float(together[best].sum())
        return {int(entities[i]): float(together[i]) / total for i in best} if total > 0 else {}

    def _alone(self, seeds: Sequence[int]) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
        """PageRank from each seed alone: the entities that may be reached, ascending, and shape (entities, seeds)."""
        if not self._push:
            return np.arange(self._entities), self._walk([{seed: 1.0} for seed in seeds])[: self._entities]
        # Only where walks meet is looked at, at a cost that does not grow with the graph.
        found = [self._pushed({seed: 1.0}, MEETING_COARSER * self._settings.push_tolerance) for seed in seeds]
        reached = np.unique(np.concatenate([nodes for nodes, _ in found]))
        walks = np.zeros((len(reached), len(seeds)), np.float32)
        for column, (nodes, mass) in enumerate(found):
            walks[np.searchsorted(reached, nodes), column] = mass
        entities = reached < self._entities
        return reached[entities], walks[entities]

    def _pushed(self, seeds: Mapping[int, float], tolerance: float) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
        assert self._push is not None  # noqa: S101
        moves = self._moves
        nodes, mass = self._push(moves.indptr, moves.indices, moves.data, seeds, self._settings.damping, tolerance)
        return nodes, mass

    def _walk(self, starts: Sequence[Mapping[int, float]]) -> NDArray[np.float32]:
        """PageRank from each of several starts, shape (entities + chunks, starts)."""
        size, damping, moves = self._entities + self._chunks, self._settings.damping, self._moves
        rank = np.zeros((size, len(starts)), np.float32)
        if self._push:
            for column, given in enumerate(starts):
                reached, mass = self._pushed(given, self._settings.push_tolerance)
                rank[reached, column] = mass
            return rank
        for column, given in enumerate(starts):
            rank[list(given), column] = list(given.values())
        rank /= rank.sum(axis=0)
        start = rank
        for _ in range(self._settings.iterations):
            moved = moves @ rank
            moved += rank[self._dangling].sum(axis=0) * start
            following = ((1 - damping) * start + damping * moved).astype(np.float32)
            change = float(np.abs(following - rank).sum(axis=0).max())
            rank = following
            if change < self._settings.tolerance:
                break
        return rank


def _load_push() -> Callable[..., Any] | None:
    """None where numba, which belongs to an extra, is missing: then large graphs are iterated too, more slowly."""
    try:
        from hybrid_ir.graph.push import push
    except ModuleNotFoundError as error:
        if error.name != "numba":
            raise
        log.warning("numba is not installed: PageRank on this graph takes a pass over all edges for each step.")
        return None
    return push
