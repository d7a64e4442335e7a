"""What ranks high before any seed is heard: found once a build, and a candidate in every query.

A query's seeds are heard near them, but every entity has a logit, and one far away may be among the
best for what it is (under untrained weights most are).  Which are, depends little on the question,
so they are looked for with a sample of the build's own relations as questions.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import get_args

import numpy as np
from numpy.typing import NDArray

from hybrid_ir.errors import NotFound
from hybrid_ir.graph.knowledge_graph import Numbers
from hybrid_ir.graph.rankers import Ranker, relevance
from hybrid_ir.ranking import top
from hybrid_ir.store import Store

MOST = 1000
"""Entities, and chunks, that are kept."""
QUESTIONS = 32
_SEED = 5


@dataclass(frozen=True)
class Prior:
    """Numbers of entities and chunks, ascending."""

    entities: Numbers
    chunks: Numbers


def find(
    logits: Callable[[NDArray[np.float32]], NDArray[np.float32]],
    vectors: NDArray[np.float32],
    mention_indptr: Numbers,
    mention_chunk: Numbers,
    chunks: int,
) -> Prior:
    """``logits``: of all entities without seeds, for a question's text vector; ``vectors``: to draw questions from.

    Kept are those that reach the highest place in any question's ranking, by any ranker.
    """
    counts = np.diff(mention_indptr)
    if not len(counts):
        return Prior(np.zeros(0, np.int64), np.zeros(0, np.int64))
    entity_place, chunk_place = (np.full(size, MOST, np.int64) for size in (len(counts), chunks))
    random = np.random.default_rng(_SEED)
    for row in np.sort(random.choice(len(vectors), min(QUESTIONS, len(vectors)), replace=False)):
        found = logits(vectors[row])
        _improve(entity_place, np.exp(found - found.max()))
        for ranker in get_args(Ranker):
            if ranker != "top20":  # its chunks are those of the best entities
                shares = relevance(found, ranker, counts)
                _improve(chunk_place, np.bincount(mention_chunk, np.repeat(shares, counts), chunks).astype(np.float32))
    return Prior(_best(entity_place), _best(chunk_place))


def _improve(place: Numbers, scores: NDArray[np.float32]) -> None:
    """``place``: the best place so far; ranks by ``scores``, 0 for the highest."""
    best = top(scores, MOST)
    place[best] = np.minimum(place[best], np.arange(len(best)))


def _best(place: Numbers) -> Numbers:
    ranked = np.flatnonzero(place < MOST)
    return np.sort(ranked[np.argsort(place[ranked], kind="stable")[:MOST]])


def exists(store: Store, folder: str) -> bool:
    return all(store.exists(name) for name in _names(folder))


def write(store: Store, folder: str, prior: Prior) -> None:
    for name, numbers in zip(_names(folder), (prior.entities, prior.chunks), strict=True):
        store.write_array(name, numbers)


def open_prior(store: Store, folder: str) -> Prior:
    """Raises NotFound where there is none."""
    if not exists(store, folder):
        raise NotFound(f"{store.path(folder)} holds no list of prior candidates; run hybrid-ir prepare-gfm.")
    return Prior(*(np.array(store.array(name), np.int64) for name in _names(folder)))


def _names(folder: str) -> list[str]:
    return [f"{folder}/prior-{kind}.npy" for kind in ("entities", "chunks")]
