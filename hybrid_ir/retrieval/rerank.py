"""Reranking: the best of the fused evidence in the order that a cross-encoder gives it."""

from __future__ import annotations

import math
from collections.abc import Sequence

from hybrid_ir.records import Evidence
from hybrid_ir.roles import Reranker
from hybrid_ir.settings import RerankSettings


def load(settings: RerankSettings) -> Reranker:
    """The cross-encoder that the settings name; a missing model is a :class:`BadInput` that says what to do."""
    # torch and transformers take seconds to import: only who reranks pays for them.
    from hybrid_ir.encoders.cross_encoder import CrossEncoder

    return CrossEncoder(settings)


def reordered(evidence: Sequence[Evidence], scores: Sequence[float]) -> list[Evidence]:
    """Best score first, equal scores as they were; each piece carries its score beside its fused one.

    Raises where there is not one number for each piece.
    """
    if len(scores) != len(evidence) or not all(math.isfinite(score) for score in scores):
        raise RuntimeError(f"The reranker gave {len(scores)} scores for {len(evidence)} chunks, or one is no number.")
    scored = [item.model_copy(update={"rerank": score}) for item, score in zip(evidence, scores, strict=True)]
    return sorted(scored, key=lambda item: -float(item.rerank or 0.0))
