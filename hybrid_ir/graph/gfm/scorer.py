"""The GFM as the graph path's scorer, exact or bounded, with an audit of the bounded mode."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from hybrid_ir.graph.gfm.bounded import BoundedGFM
from hybrid_ir.graph.gfm.candidates import Candidates
from hybrid_ir.graph.gfm.exact import ExactGFM
from hybrid_ir.graph.gfm.projection import check_seeds
from hybrid_ir.graph.knowledge_graph import Numbers
from hybrid_ir.graph.rankers import Ranker, chunk_scores, relevance
from hybrid_ir.graph.store import StoredGraph
from hybrid_ir.roles import Encoder

AUDIT_TOP = 20


@dataclass(frozen=True)
class Near:
    """The bounded mode: the pass, and who else competes."""

    bounded: BoundedGFM
    candidates: Candidates


@dataclass(frozen=True)
class Audit:
    """Of one query: how far the bounded mode was from the exact one."""

    error: float
    """Mean absolute difference of the candidates' logits over the spread of the exact ones."""
    overlap: float
    """Share of the exact mode's top 20 chunks that the bounded mode has in its own."""


class GFMScorer:
    """See :class:`hybrid_ir.roles.GraphScorer`."""

    def __init__(
        self,
        graph: StoredGraph,
        labels: Numbers,
        numbers: Numbers,
        encoder: Encoder,
        exact: Callable[[], ExactGFM],
        near: Near | None,
        ranker: Ranker,
    ) -> None:
        """``labels``: entity number -> the passes' ids, ``numbers``: back.  ``near``: None for the exact mode.
        ``exact`` opens the whole graph: called when it is first needed, in the bounded mode for an audit.

        ``encoder``: of questions, as the weights were trained with.
        """
        self._graph, self._labels, self._numbers = graph, labels, numbers
        self._encoder, self._open_exact, self._near, self._ranker = encoder, exact, near, ranker

    @cached_property
    def _exact(self) -> ExactGFM:
        return self._open_exact()

    def score(self, seeds: Mapping[int, float], query: str) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
        """Relevance of entities, shape (entities,), and of chunks, shape (chunks,); no seeds: all zero."""
        return self.score_many([seeds], [query])[0]

    def score_many(
        self, seeds: Sequence[Mapping[int, float]], queries: Sequence[str]
    ) -> list[tuple[NDArray[np.float32], NDArray[np.float32]]]:
        """See :class:`hybrid_ir.roles.GraphScorer`; in the exact mode the queries share every pass."""
        results = [
            (np.zeros(self._graph.entities, np.float32), np.zeros(self._graph.chunks, np.float32)) for _ in seeds
        ]
        seeded = [number for number, given in enumerate(seeds) if given]
        logits = self._logits([seeds[number] for number in seeded], [queries[number] for number in seeded], self._near)
        for number, (entities, of_entities) in zip(seeded, logits, strict=True):
            shares, found, given = self._rank(entities, of_entities)
            results[number][0][entities], results[number][1][found] = shares, given
        return results

    def audit(self, seeds: Mapping[int, float], query: str) -> Audit:
        """Score one query both ways; raises ValueError in the exact mode."""
        if self._near is None:
            raise ValueError("the exact mode needs no audit")
        ((entities, logits),) = self._logits([seeds], [query], self._near)
        ((everyone, exact),) = self._logits([seeds], [query], None)
        best, wanted = self._top(entities, logits), self._top(everyone, exact)
        spread = float(exact.std()) or 1.0
        error = float(np.abs(logits - exact[self._labels[entities]]).mean()) / spread if len(entities) else 0.0
        return Audit(error, len(best & wanted) / len(wanted) if wanted else 1.0)

    def _logits(
        self, seeds: Sequence[Mapping[int, float]], queries: Sequence[str], near: Near | None
    ) -> list[tuple[Numbers, NDArray[np.float32]]]:
        """Of each query the entities by number, and their logits."""
        if not seeds:
            return []
        check_seeds(seeds, self._graph.entities)
        questions = torch.from_numpy(self._encoder.encode_queries(queries))
        labelled = [{int(self._labels[entity]): weight for entity, weight in given.items()} for given in seeds]
        if near is None:
            return [(self._numbers, logits) for logits in self._exact.score(questions, labelled)]
        return [self._near_logits(near, *query) for query in zip(questions, labelled, strict=True)]

    def _near_logits(
        self, near: Near, question: Tensor, seeds: Mapping[int, float]
    ) -> tuple[Numbers, NDArray[np.float32]]:
        """Of the active entities, and then of the others whose scores decide which chunks are best."""
        active, moved = near.bounded.score(question, seeds)
        entities = self._numbers[active]
        shares = relevance(moved, self._ranker, self._graph.document_counts[entities])
        others = near.candidates.beside(entities, shares)
        resting = near.bounded.resting(question, self._labels[others])
        return np.concatenate([entities, others]), np.concatenate([moved, resting])

    def _rank(
        self, entities: Numbers, logits: NDArray[np.float32]
    ) -> tuple[NDArray[np.float64], Numbers, NDArray[np.float32]]:
        shares = relevance(logits, self._ranker, self._graph.document_counts[entities])
        return shares, *chunk_scores(entities, shares, self._graph.mention_indptr, self._graph.mention_chunk)

    def _top(self, entities: Numbers, logits: NDArray[np.float32]) -> set[int]:
        _, found, given = self._rank(entities, logits)
        return set(found[np.lexsort((found, -given))[:AUDIT_TOP]].tolist())
