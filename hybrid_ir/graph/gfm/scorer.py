"""The GFM as the graph path's scorer, exact or bounded, with an audit of the bounded mode."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray

from hybrid_ir.graph.gfm.bounded import BoundedGFM
from hybrid_ir.graph.gfm.exact import ExactGFM
from hybrid_ir.graph.knowledge_graph import Numbers
from hybrid_ir.graph.rankers import Ranker, chunk_scores, relevance
from hybrid_ir.graph.store import StoredGraph
from hybrid_ir.roles import Encoder

AUDIT_TOP = 20


@dataclass(frozen=True)
class Audit:
    """Of one query: how far the bounded mode was from the exact one."""

    error: float
    """Mean absolute difference of the active entities' logits over the exact ones' spread."""
    overlap: float
    """Share of the exact mode's top 20 chunks that the bounded mode has in its own."""


class GFMScorer:
    """See :class:`hybrid_ir.roles.GraphScorer`."""

    def __init__(
        self, graph: StoredGraph, encoder: Encoder, exact: ExactGFM, bounded: BoundedGFM | None, ranker: Ranker
    ) -> None:
        """``bounded``: None for the exact mode.  ``encoder``: of questions, as the weights were trained with."""
        self._graph, self._encoder, self._exact, self._bounded, self._ranker = graph, encoder, exact, bounded, ranker

    def score(self, seeds: Mapping[int, float], query: str) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
        """Relevance of entities, shape (entities,), and of chunks, shape (chunks,); no seeds: all zero."""
        entity_scores = np.zeros(self._graph.entities, np.float32)
        scores = np.zeros(self._graph.chunks, np.float32)
        if seeds:
            entities, logits = self._logits(seeds, query, self._bounded)
            shares, found, given = self._rank(entities, logits)
            entity_scores[entities], scores[found] = shares, given
        return entity_scores, scores

    def audit(self, seeds: Mapping[int, float], query: str) -> Audit:
        """Score one query both ways; raises ValueError in the exact mode."""
        if self._bounded is None:
            raise ValueError("the exact mode needs no audit")
        entities, logits = self._logits(seeds, query, self._bounded)
        everyone, exact = self._logits(seeds, query, None)
        best, wanted = self._top(entities, logits), self._top(everyone, exact)
        spread = float(exact.std()) or 1.0
        error = float(np.abs(logits - exact[entities]).mean()) / spread if len(entities) else 0.0
        return Audit(error, len(best & wanted) / len(wanted) if wanted else 1.0)

    def _logits(
        self, seeds: Mapping[int, float], query: str, bounded: BoundedGFM | None
    ) -> tuple[Numbers, NDArray[np.float32]]:
        question = torch.from_numpy(self._encoder.encode_queries([query]))
        if bounded is not None:
            return bounded.score(question[0], seeds)
        return np.arange(self._graph.entities), self._exact.score(question, [seeds])[0]

    def _rank(
        self, entities: Numbers, logits: NDArray[np.float32]
    ) -> tuple[NDArray[np.float64], Numbers, NDArray[np.float32]]:
        shares = relevance(logits, self._ranker, self._graph.document_counts[entities])
        return shares, *chunk_scores(entities, shares, self._graph.mention_indptr, self._graph.mention_chunk)

    def _top(self, entities: Numbers, logits: NDArray[np.float32]) -> set[int]:
        _, found, given = self._rank(entities, logits)
        return set(found[np.lexsort((found, -given))[:AUDIT_TOP]].tolist())
