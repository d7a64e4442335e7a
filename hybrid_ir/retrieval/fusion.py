"""Fusion of the paths' lists: by rank, and by how far a chunk stands out in its list."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

from hybrid_ir.records import PathHit, PathName
from hybrid_ir.roles import PathRanking
from hybrid_ir.settings import FusionSettings


@dataclass(frozen=True)
class Fused:
    """A chunk with its fused score and its place in each list that holds it."""

    chunk: int
    score: float
    paths: dict[PathName, PathHit]


def fuse(rankings: Mapping[PathName, PathRanking], settings: FusionSettings) -> list[Fused]:
    """All chunks of all lists, best first, ties by chunk number: the sum of each list's ``votes``.

    A chunk missing from a list gets nothing from it.
    """
    scores: dict[int, float] = {}
    hits: dict[int, dict[PathName, PathHit]] = {}
    for path in sorted(rankings):
        ranking = rankings[path]
        given = votes(path, ranking, settings)
        for rank, (chunk, score) in enumerate(zip(ranking.chunks, ranking.scores, strict=True), start=1):
            if path in hits.setdefault(chunk, {}):
                continue  # a path that lists a chunk twice votes once, with its better rank
            hits[chunk][path] = PathHit(rank=rank, score=score)
            scores[chunk] = scores.get(chunk, 0.0) + given[rank - 1]
    order = sorted(scores, key=lambda chunk: (-scores[chunk], chunk))
    return [Fused(chunk, scores[chunk], hits[chunk]) for chunk in order]


def votes(path: PathName, ranking: PathRanking, settings: FusionSettings) -> list[float]:
    """What a list gives to each of its chunks, in its order.

        w / (eta + rank) + b max(pi(rank) - 1 / n, 0) / (eta + 1),   pi = softmax((s / s_1 - 1) / temperature)

    The first term is reciprocal rank fusion (Hybrid-IR, Eq. 5, where w is 1).  The second is ours:
    ``pi`` is near 1 for a first chunk that stands far above the others, and 1 / n for all n of a
    list of level scores; relative to the best score, so that it means the same for every encoder.  It falls with
    the rank as the first term does, so that a path alone keeps its order.
    """
    weight, eta = settings.weights.get(path, 1.0), settings.eta
    by_rank = [weight / (eta + rank) for rank in range(1, len(ranking.chunks) + 1)]
    peak = settings.peaks.get(path, 0.0)
    best = ranking.scores[0] if ranking.scores else 0.0
    if not peak or best <= 0:
        return by_rank
    shares = [math.exp(min(score / best - 1.0, 0.0) / settings.temperature) for score in ranking.scores]
    total, level = sum(shares), 1.0 / len(shares)
    return [
        vote + peak * max(share / total - level, 0.0) / (eta + 1.0) for vote, share in zip(by_rank, shares, strict=True)
    ]
