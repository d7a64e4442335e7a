"""Who competes for the best chunks beside the entities that a query moves.

A chunk's score is a sum over all its entities.  The chunks that may win are those that the active
entities give most, and the ones that rank high anyway (:mod:`prior`); all entities of these are
scored, so that their sums are whole.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from hybrid_ir.graph.gfm.prior import Prior
from hybrid_ir.graph.knowledge_graph import Numbers, indptr
from hybrid_ir.graph.rankers import chunk_scores
from hybrid_ir.ranking import top


class Candidates:
    """M read from both sides; memory: 4 bytes a mention beside the build's own."""

    def __init__(
        self, mention_indptr: Numbers, mention_chunk: Numbers, chunks: int, prior: Prior, most_chunks: int
    ) -> None:
        """M is CSR by entity; ``most_chunks``: of those that the active entities give something."""
        self._indptr, self._chunk, self._prior, self._most = mention_indptr, mention_chunk, prior, most_chunks
        order = np.argsort(mention_chunk, kind="stable")
        entity = np.repeat(np.arange(len(mention_indptr) - 1, dtype=np.int32), np.diff(mention_indptr))
        self._by_chunk, self._entity = indptr(mention_chunk[order], chunks), entity[order]

    def beside(self, active: Numbers, shares: NDArray[np.float64]) -> Numbers:
        """The other entities to score, ascending; ``shares``: what each active one gives its chunks."""
        found, given = chunk_scores(active, shares, self._indptr, self._chunk)
        chunks = np.union1d(found[top(given, self._most)], self._prior.chunks)
        held = [self._entity[self._by_chunk[chunk] : self._by_chunk[chunk + 1]] for chunk in chunks]
        return np.setdiff1d(np.concatenate([self._prior.entities, *held]), active)
