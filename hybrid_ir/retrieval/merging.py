"""The lists that one path made of several parts of a build, as one."""

from __future__ import annotations

from collections.abc import Sequence

from hybrid_ir.roles import PathRanking


def merged_rankings(rankings: Sequence[PathRanking], k: int) -> PathRanking:
    """The k best chunks, equal scores by number; the parts have no chunk in common, and their scores compare."""
    found = [pair for ranking in rankings for pair in zip(ranking.scores, ranking.chunks, strict=True)]
    best = sorted(found, key=lambda pair: (-pair[0], pair[1]))[:k]
    return PathRanking(chunks=tuple(chunk for _, chunk in best), scores=tuple(score for score, _ in best))
