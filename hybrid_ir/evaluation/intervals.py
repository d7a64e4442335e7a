"""How sure a mean is, and a difference of two: seeded bootstrap over questions; Wilson's interval of a share."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

RESAMPLES = 10_000
SEED = 0


@dataclass(frozen=True)
class Interval:
    """A mean with the bounds of its 95 % interval."""

    mean: float
    low: float
    high: float


@dataclass(frozen=True)
class Difference:
    """Mean of a - b over the same questions."""

    interval: Interval
    p: float
    """Two-sided: twice the share of resamples on the far side of 0.

    At least 1 / RESAMPLES, and at least what an exact test of signs can give with so many questions that differ
    (2 ** (1 - n)): of five questions that all go one way none is proof, and resamples of them cannot tell.
    """


def bootstrap(values: Sequence[float], resamples: int = RESAMPLES, seed: int = SEED) -> Interval:
    """The percentile interval (Efron 1979) of the mean; values of one method, one a question."""
    data = np.asarray(values, np.float64)
    if not len(data):
        return Interval(float("nan"), float("nan"), float("nan"))
    means = _resampled(data, resamples, seed)
    low, high = np.quantile(means, (0.025, 0.975))
    return Interval(float(data.mean()), float(low), float(high))


def paired(a: Sequence[float], b: Sequence[float], resamples: int = RESAMPLES, seed: int = SEED) -> Difference:
    """Of two methods on the same questions, in the same order."""
    data = np.asarray(a, np.float64) - np.asarray(b, np.float64)
    means = _resampled(data, resamples, seed)
    interval = bootstrap(data.tolist(), resamples, seed)
    p = 2.0 * min(float((means <= 0).mean()), float((means >= 0).mean()))
    least = 2.0 ** (1 - int(np.count_nonzero(data)))
    return Difference(interval, min(max(p, least, 1.0 / resamples), 1.0))


def wilson(right: int, asked: int, z: float = 1.959964) -> Interval:
    """The score interval of a share (Wilson 1927), 95 % by default; NaN where nothing was asked."""
    if asked == 0:
        return Interval(float("nan"), float("nan"), float("nan"))
    share, spread = right / asked, z * z / asked
    middle = (share + spread / 2) / (1 + spread)
    half = z / (1 + spread) * math.sqrt(share * (1 - share) / asked + spread / (4 * asked))
    low, high = middle - half if right else 0.0, middle + half if right < asked else 1.0
    return Interval(share, low, high)


def _resampled(data: NDArray[np.float64], resamples: int, seed: int) -> NDArray[np.float64]:
    """Means of ``resamples`` draws with replacement, in blocks that stay small."""
    random, means, block = np.random.default_rng(seed), [], max(1, 2_000_000 // len(data))
    for start in range(0, resamples, block):
        rows = min(block, resamples - start)
        means.append(data[random.integers(0, len(data), (rows, len(data)))].mean(axis=1))
    return np.concatenate(means)
