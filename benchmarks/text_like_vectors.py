"""Vectors made to lie as those of a text encoder do, seeded."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Vectors = NDArray[np.float32]

TOPICS, CENTRES = 60, 3000
AT_A_TIME = 50_000


def made(count: int, queries: int, dimension: int = 768, seed: int = 0) -> tuple[Vectors, Vectors]:
    """(vectors, queries), unit vectors of shape (count, dimension) and (queries, dimension).

    All lean to one mean direction (encoders' vectors do); topics lie around it, 3,000 centres
    around the topics at a cosine of .6 to .8, some of them in far more vectors than others, and
    each vector at a cosine of .6 to .9 to its centre.
    """
    rng = np.random.default_rng(seed)
    mean = _unit(rng.standard_normal((1, dimension), np.float32))
    topics = _around(rng, np.repeat(mean, TOPICS, axis=0), 0.4, 0.6)
    centres = _around(rng, topics[rng.integers(0, TOPICS, CENTRES)], 0.6, 0.8)
    weight = rng.pareto(1.5, CENTRES) + 0.2
    weight /= weight.sum()

    def draw(rows: int) -> Vectors:
        which = rng.choice(CENTRES, rows, p=weight)
        drawn = np.empty((rows, dimension), np.float32)
        for start in range(0, rows, AT_A_TIME):
            drawn[start : start + AT_A_TIME] = _around(rng, centres[which[start : start + AT_A_TIME]], 0.6, 0.9)
        return drawn

    return draw(count), draw(queries)


def _around(rng: np.random.Generator, near: Vectors, low: float, high: float) -> Vectors:
    """One unit vector for each, at a cosine between the bounds."""
    aside = rng.standard_normal(near.shape, np.float32)
    aside = _unit(aside - (aside * near).sum(axis=1, keepdims=True) * near)
    cosine = rng.uniform(low, high, (len(near), 1)).astype(np.float32)
    return cosine * near + np.sqrt(1 - cosine**2) * aside


def _unit(vectors: Vectors) -> Vectors:
    return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
