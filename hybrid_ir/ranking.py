"""The best of an array of scores."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray


def top(scores: NDArray[np.float32], k: int) -> NDArray[np.int64]:
    """The numbers of the k highest scores above zero, best first, ties by number."""
    k = min(k, int((scores > 0).sum()))
    if k == 0:
        return np.zeros(0, np.int64)
    threshold = np.partition(scores, -k)[-k]
    candidates = np.flatnonzero(scores >= threshold)
    return candidates[np.lexsort((candidates, -scores[candidates]))[:k]]
