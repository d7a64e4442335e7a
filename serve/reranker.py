"""The reranker as a deployment: a cross-encoder over the best fused chunks.  There only where one is configured."""

from __future__ import annotations

from collections.abc import Sequence

from hybrid_ir.encoders.cross_encoder import CrossEncoder
from hybrid_ir.errors import BadInput
from hybrid_ir.records import Chunk
from hybrid_ir.settings import Settings
from serve.pinned import WARM_UP


class Reranker:
    """Ready means warm: the model has read one pair of texts."""

    def __init__(self, root: str, build_id: str, settings: Settings) -> None:
        if settings.rerank is None:
            raise BadInput("rerank names no model.")
        self._reranker = CrossEncoder(settings.rerank)
        self._reranker.scores(WARM_UP, [WARM_UP])

    async def rerank(self, build_id: str, query: str, chunks: Sequence[Chunk]) -> tuple[float, ...]:
        return await self._reranker.rerank(query, chunks)

    async def ready(self, build_id: str) -> None:
        """It reads texts alone, so it is ready for any build."""
