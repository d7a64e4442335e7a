"""Reciprocal rank fusion of the paths' lists."""

from __future__ import annotations

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
    """All chunks of all lists, best first, ties by chunk number.

    S(c) = sum over lists that hold c of w / (eta + rank), ranks from 1 (Hybrid-IR, Eq. 5, with
    a weight w for each path, 1 in the paper).  A chunk missing from a list gets no term from it.
    """
    scores: dict[int, float] = {}
    hits: dict[int, dict[PathName, PathHit]] = {}
    for path in sorted(rankings):
        weight = settings.weights.get(path, 1.0)
        ranking = rankings[path]
        for rank, (chunk, score) in enumerate(zip(ranking.chunks, ranking.scores, strict=True), start=1):
            if path in hits.setdefault(chunk, {}):
                continue  # a path that lists a chunk twice votes once, with its better rank
            hits[chunk][path] = PathHit(rank=rank, score=score)
            scores[chunk] = scores.get(chunk, 0.0) + weight / (settings.eta + rank)
    order = sorted(scores, key=lambda chunk: (-scores[chunk], chunk))
    return [Fused(chunk, scores[chunk], hits[chunk]) for chunk in order]
