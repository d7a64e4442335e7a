"""Chunks from entities: how the relevance of entities becomes a ranking of chunks through M.

The paper aggregates "relevance probabilities" and leaves open how logits become such; the peer's
default gives its top 20 entities 1 / df each.  All are here by name.
"""

from __future__ import annotations

from typing import Literal

import numpy as np
from numpy.typing import NDArray

from hybrid_ir.graph.knowledge_graph import Numbers, ranges

Ranker = Literal["softmax", "sigmoid", "idf", "top20"]
TOP_ENTITIES = 20


def relevance(logits: NDArray[np.float32], ranker: Ranker, document_counts: Numbers) -> NDArray[np.float64]:
    """What each entity gives to every chunk that mentions it; ``document_counts``: chunks that do.

    softmax: its probability among the entities given.  sigmoid: its own probability.  idf: its
    softmax / df.  top20: 1 / df for the best twenty, 0 for the rest (GFM-RAG's default).
    """
    if not len(logits):
        return np.zeros(0, np.float64)
    given = logits.astype(np.float64)
    shares: NDArray[np.float64]
    held = np.maximum(document_counts, 1)
    if ranker == "sigmoid":
        shares = 1.0 / (1.0 + np.exp(-given))
        return shares
    if ranker == "top20":
        best = np.lexsort((np.arange(len(given)), -given))[:TOP_ENTITIES]
        shares = np.zeros(len(given))
        shares[best] = 1.0 / held[best]
        return shares
    shares = np.exp(given - given.max())
    shares /= shares.sum()
    return np.divide(shares, held) if ranker == "idf" else shares


def chunk_scores(
    entities: Numbers, shares: NDArray[np.float64], indptr: Numbers, chunk: Numbers
) -> tuple[Numbers, NDArray[np.float32]]:
    """The chunks that ``entities`` are mentioned in and the sum of what each gives (M's transpose times shares).

    M is CSR by entity.  Only rows of the entities given are read.
    """
    giving = np.flatnonzero(shares > 0)
    entities, shares = entities[giving], shares[giving]
    count = indptr[entities + 1] - indptr[entities]
    if not count.sum():
        return np.zeros(0, np.int64), np.zeros(0, np.float32)
    at = ranges(indptr[entities], indptr[entities + 1])
    found, place = np.unique(chunk[at], return_inverse=True)
    return found, np.bincount(place, np.repeat(shares, count), len(found)).astype(np.float32)
