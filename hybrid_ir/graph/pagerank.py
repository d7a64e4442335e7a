"""Personalised PageRank over entities and chunks (HippoRAG's graph scorer).

It needs no training, so it is the default scorer and a baseline always.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from hybrid_ir.errors import BadInput
from hybrid_ir.graph.store import StoredGraph
from hybrid_ir.ranking import top
from hybrid_ir.settings import GraphPathSettings

if TYPE_CHECKING:
    from hybrid_ir.graph.push import Pusher

log = logging.getLogger(__name__)


MOST_MEETING = 8
"""Seeds of which the meeting points are sought, the strongest: each is a walk of its own."""
MEETING_COARSER = 10
"""The seeds' own walks are pushed this much less finely: only the best meeting points are taken from them."""
UNREACHED = 1e-6
"""Added to each seed's scores: what is near to most seeds and reached by all but one is still a point where they meet,
and it makes little difference whether that one's score is far below a millionth or nothing."""


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
        pushed = adjacency.nnz > settings.exact_up_to_edges and _has_numba()
        moves = (scale @ adjacency if pushed else adjacency @ scale).astype(np.float32).tocsr()
        self._moves, self._pusher = moves, _pusher(moves) if pushed else None

    def score(self, seeds: Mapping[int, float], query: str = "") -> tuple[NDArray[np.float32], NDArray[np.float32]]:
        """See :class:`hybrid_ir.roles.GraphScorer`.  No seeds: all zero."""
        return self.score_many([seeds], [query])[0]

    def score_many(
        self, seeds: Sequence[Mapping[int, float]], queries: Sequence[str]
    ) -> list[tuple[NDArray[np.float32], NDArray[np.float32]]]:
        """See :class:`hybrid_ir.roles.GraphScorer`."""
        starts = [self._starts(given) for given in seeds]
        somewhere = [number for number, given in enumerate(starts) if given]
        ranks = np.zeros((len(seeds), self._entities + self._chunks), np.float32)
        if somewhere:
            self._walk([starts[number] for number in somewhere], ranks, somewhere)
        return [(rank[: self._entities], rank[self._entities :]) for rank in ranks]

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

        meet(e) = prod over seeds i of (p_i(e) + u) ** w_i, p_i: PageRank from seed i alone, w_i: its weight.  A
        sum of walks ranks high what is near to one seed; what a question seeks is near to all it names.
        """
        strongest = np.array(sorted(starts, key=lambda entity: (-starts[entity], entity))[:MOST_MEETING])
        weights = np.array([starts[entity] for entity in strongest.tolist()])
        entities, logs = self._met(strongest, weights / weights.sum())
        if not len(entities):
            return {}
        enough = min(len(logs), self._settings.meeting_points + len(starts))  # the seeds are among the best
        best = logs >= np.partition(logs, -enough)[-enough]
        entities, logs = entities[best], logs[best]
        others = np.isin(entities, list(starts), invert=True)
        order = np.argsort(entities[others])
        entities, together = entities[others][order], np.exp(logs[others][order]).astype(np.float32)
        best = top(together, self._settings.meeting_points)
        total = float(together[best].sum())
        return {int(entities[i]): float(together[i]) / total for i in best} if total > 0 else {}

    def _met(self, seeds: NDArray[np.int64], weights: NDArray[np.float64]) -> tuple[NDArray[Any], NDArray[np.float64]]:
        """The entities that a walk from any seed reaches, and log meet(e); none where no two walks meet."""
        if self._pusher:  # only what they reach is looked at, at a cost that does not grow with the graph
            tolerance = MEETING_COARSER * self._settings.push_tolerance
            return self._pusher.meet(seeds, weights, self._entities, UNREACHED, self._settings.damping, tolerance)
        walks = np.zeros((len(seeds), self._entities + self._chunks), np.float32)
        self._walk([{int(seed): 1.0} for seed in seeds], walks, range(len(seeds)))
        alone = walks[:, : self._entities]
        reached = (alone > 0).sum(axis=0)
        entities = np.flatnonzero(reached if (reached > 1).any() else reached > 1)
        return entities, weights @ np.log(alone[:, entities] + UNREACHED)

    def _walk(self, starts: Sequence[Mapping[int, float]], ranks: NDArray[np.float32], rows: Sequence[int]) -> None:
        """PageRank from each of several starts, into those rows of ``ranks``, shape (starts, entities + chunks)."""
        size, damping, moves = self._entities + self._chunks, self._settings.damping, self._moves
        if self._pusher:
            for row, given in zip(rows, starts, strict=True):
                reached, mass = self._pusher.push(given, damping, self._settings.push_tolerance)
                ranks[row, reached] = mass
            return
        rank = np.zeros((size, len(starts)), np.float32)
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
        ranks[list(rows)] = rank.T


def _has_numba() -> bool:
    """It belongs to an extra; without it large graphs are iterated too, more slowly."""
    if find_spec("numba") is None:
        log.warning("numba is not installed: PageRank on this graph takes a pass over all edges for each step.")
        return False
    return True


def _pusher(moves: Any) -> Pusher:
    from hybrid_ir.graph.push import Pusher

    # scipy counts in 64 bits as soon as one part does; half of that is half of the memory to walk through.
    ids = moves.indices.astype(np.int32) if moves.shape[0] < 1 << 31 else moves.indices
    pusher = Pusher(moves.indptr.astype(np.int64), ids, moves.data)
    if moves.shape[0]:
        pusher.meet(np.zeros(1, np.int64), np.ones(1), 1, UNREACHED, 0.5, 1.0)  # compiles
        pusher.push({0: 1.0}, 0.5, 1.0)
    return pusher
