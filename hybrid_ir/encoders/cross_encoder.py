"""A cross-encoder: query and passage read together, one number for how well they fit.

MedCPT's (``ncbi/MedCPT-Cross-Encoder``), or any model with one logit for a pair of texts, or two
of which the second stands for "relevant".
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import torch
from transformers import AutoModelForSequenceClassification

from hybrid_ir.encoders.location import locate
from hybrid_ir.encoders.weights import Model, clean
from hybrid_ir.errors import BadInput
from hybrid_ir.records import Chunk
from hybrid_ir.settings import RerankSettings


class CrossEncoder:
    """See :class:`hybrid_ir.roles.Reranker`."""

    def __init__(self, settings: RerankSettings) -> None:
        """Raises :class:`BadInput` where the model is missing, broken, or no cross-encoder."""
        location = locate(settings.model, settings.revision)
        self._model = Model(location, AutoModelForSequenceClassification, settings.device, settings.dtype)
        self._settings = settings
        logits = int(self._model.network.config.num_labels)
        if logits not in (1, 2):
            raise BadInput(
                f"The reranker {location.name} gives {logits} values for a pair; a cross-encoder gives 1 or 2."
            )

    async def rerank(self, query: str, chunks: Sequence[Chunk]) -> tuple[float, ...]:
        return await asyncio.to_thread(self.scores, query, [passage(chunk) for chunk in chunks])

    def scores(self, query: str, passages: Sequence[str]) -> tuple[float, ...]:
        """One logit for each passage, in order: of two, how far "relevant" is above the other."""
        order = sorted(range(len(passages)), key=lambda i: (len(passages[i]), i))  # padding costs as much as words
        found = [0.0] * len(passages)
        for start in range(0, len(order), self._settings.batch_size):
            rows = order[start : start + self._settings.batch_size]
            texts = [clean(passages[i]) for i in rows]
            tokens = self._model.tokens([clean(query)] * len(rows), texts, self._settings.max_tokens)
            with torch.inference_mode():
                logits = self._model.network(**tokens).logits.float()
            values = logits[:, 0] if logits.shape[1] == 1 else logits[:, 1] - logits[:, 0]
            for i, value in zip(rows, values.tolist(), strict=True):
                found[i] = value
        return tuple(found)


def passage(chunk: Chunk) -> str:
    """Title and text as MedCPT's cross-encoder was trained to read them."""
    return f"{chunk.title}. {chunk.text}" if chunk.title else chunk.text
