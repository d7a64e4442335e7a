"""A transformer encoder: tokenise, run, pool, normalise.

MedCPT, Contriever, all-mpnet-base-v2 and MiniLM differ in pooling, in how a title enters and
in whether queries have a model of their own; these are settings, so one class serves them all.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any

import numpy as np
import torch
import transformers
from transformers import AutoModel, AutoTokenizer

from hybrid_ir.encoders.location import ModelLocation, locate
from hybrid_ir.errors import BadInput
from hybrid_ir.roles import Vectors
from hybrid_ir.settings import EncoderSettings


class Tower:
    """One model with its tokenizer: token ids -> pooled vectors of shape (texts, dimension)."""

    def __init__(self, location: ModelLocation, settings: EncoderSettings) -> None:
        transformers.utils.logging.disable_progress_bar()  # type: ignore[no-untyped-call]
        try:
            self._tokenizer: Any = AutoTokenizer.from_pretrained(location.source)
            model: Any = AutoModel.from_pretrained(location.source, dtype=getattr(torch, settings.dtype))
        except (OSError, ValueError) as error:
            raise BadInput(
                f"The encoder {location.name} could not be loaded ({str(error).splitlines()[0]}). "
                "Give a local folder, or a hub name on a machine with a network."
            ) from error
        self._device = _device(settings.device)
        self._model = model.eval().to(self._device)
        self._settings = settings
        self._longest = int(getattr(model.config, "max_position_embeddings", 512))
        self.dimension = int(model.config.hidden_size)
        self.commit: str | None = getattr(model.config, "_commit_hash", None)

    def encode(self, texts: Sequence[str], max_tokens: int, pairs: Sequence[str] | None = None) -> Vectors:
        """Encode texts, or (text, pair) where the model was trained on title and text as a pair.

        Batches are made of texts of similar length: padding costs as much as words.
        """
        out = np.zeros((len(texts), self.dimension), dtype=np.float32)
        lengths = [len(text) + (len(pairs[i]) if pairs else 0) for i, text in enumerate(texts)]
        order = sorted(range(len(texts)), key=lambda i: (lengths[i], i))
        for start in range(0, len(order), self._settings.batch_size):
            rows = order[start : start + self._settings.batch_size]
            tokens = self._tokenizer(
                [texts[i] for i in rows],
                [pairs[i] for i in rows] if pairs else None,
                padding=True,
                truncation=True,
                max_length=min(max_tokens, self._longest),
                return_tensors="pt",
            ).to(self._device)
            with torch.inference_mode():
                states = self._model(**tokens).last_hidden_state
            out[rows] = self._pool(states, tokens["attention_mask"]).cpu().numpy()
        return out

    def _pool(self, states: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        states = states.float()
        if self._settings.pooling == "cls":
            pooled = states[:, 0]
        else:
            weights = mask.unsqueeze(-1).float()
            pooled = (states * weights).sum(1) / weights.sum(1).clamp(min=1.0)
        return torch.nn.functional.normalize(pooled, dim=1) if self._settings.normalise else pooled


class TransformerEncoder:
    """See :class:`hybrid_ir.roles.Encoder`."""

    def __init__(self, settings: EncoderSettings) -> None:
        self._settings = settings
        self._location = locate(settings.model)
        self._query_location = locate(settings.query_model) if settings.query_model else self._location

    @cached_property
    def _passages(self) -> Tower:
        return Tower(self._location, self._settings)

    @cached_property
    def _queries(self) -> Tower:
        return Tower(self._query_location, self._settings) if self._settings.query_model else self._passages

    @property
    def dimension(self) -> int:
        return self._passages.dimension

    @cached_property
    def fingerprint(self) -> dict[str, str]:
        """What two sets of vectors must share to be comparable."""
        settings = self._settings
        return {
            "model": self._location.name,
            "revision": self._revision(self._location),
            "query_model": self._query_location.name,
            "query_revision": self._revision(self._query_location),
            "pooling": settings.pooling,
            "title": settings.title,
            "max_passage_tokens": str(settings.max_passage_tokens),
            "max_query_tokens": str(settings.max_query_tokens),
            "normalise": str(settings.normalise).lower(),
            "dtype": settings.dtype,
        }

    def _revision(self, location: ModelLocation) -> str:
        """Only a model from the hub must be loaded to tell its version."""
        if location.folder is not None:
            return location.revision(None)
        return location.revision((self._passages if location is self._location else self._queries).commit)

    def encode_queries(self, texts: Sequence[str]) -> Vectors:
        return self._queries.encode([_clean(text) for text in texts], self._settings.max_query_tokens)

    def encode_passages(self, titles: Sequence[str], texts: Sequence[str]) -> Vectors:
        titles, texts = [_clean(title) for title in titles], [_clean(text) for text in texts]
        if self._settings.title == "pair":
            return self._passages.encode(titles, self._settings.max_passage_tokens, texts)
        if self._settings.title == "prefix":
            texts = [f"{title}. {text}" if title else text for title, text in zip(titles, texts, strict=True)]
        return self._passages.encode(texts, self._settings.max_passage_tokens)


def _device(wanted: str) -> torch.device:
    if wanted == "auto":
        wanted = "cuda" if torch.cuda.is_available() else "cpu"
    return torch.device(wanted)


def _clean(text: str) -> str:
    """Tokenizers refuse lone surrogates; a query may carry them."""
    return text.encode("utf-8", "replace").decode("utf-8")
