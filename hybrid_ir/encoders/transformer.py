"""A transformer encoder: tokenise, run, pool, normalise.

MedCPT, Contriever, all-mpnet-base-v2 and MiniLM differ in pooling, in how a title enters and
in whether queries have a model of their own; these are settings, so one class serves them all.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import cached_property

import numpy as np
import torch
from transformers import AutoModel

from hybrid_ir.encoders import sentence_files
from hybrid_ir.encoders.location import ModelLocation, locate
from hybrid_ir.encoders.sentence_files import SentenceModel
from hybrid_ir.encoders.weights import Model, clean
from hybrid_ir.errors import BadInput
from hybrid_ir.roles import Vectors
from hybrid_ir.settings import EncoderSettings

FEW_TOKENS = 1024
"""A batch of no more is run by one thread: others, where cores have anything else to do, are waited for longer than
they compute (measured: 350 ms in place of 11 for one question)."""


class Tower:
    """One model: texts -> pooled vectors of shape (texts, dimension)."""

    def __init__(self, location: ModelLocation, settings: EncoderSettings, usage: SentenceModel) -> None:
        self._model = Model(location, AutoModel, settings.device, settings.dtype)
        self._usage, self._batch_size = usage, settings.batch_size
        self.dimension = int(self._model.network.config.hidden_size)
        self.commit = self._model.commit

    def encode(self, texts: Sequence[str], max_tokens: int, pairs: Sequence[str] | None = None) -> Vectors:
        """Encode texts, or (text, pair) where the model was trained on title and text as a pair.

        Batches are made of texts of similar length: padding costs as much as words.
        """
        out = np.zeros((len(texts), self.dimension), dtype=np.float32)
        lengths = [len(text) + (len(pairs[i]) if pairs else 0) for i, text in enumerate(texts)]
        order = sorted(range(len(texts)), key=lambda i: (lengths[i], i))
        for start in range(0, len(order), self._batch_size):
            rows = order[start : start + self._batch_size]
            tokens = self._model.tokens(
                [texts[i].lower() if self._usage.lower_case else texts[i] for i in rows],
                [pairs[i] for i in rows] if pairs else None,
                min(max_tokens, self._usage.max_tokens or max_tokens),
            )
            with torch.inference_mode(), _one_thread(tokens["input_ids"].numel() <= FEW_TOKENS):
                states = self._model.network(**tokens).last_hidden_state
            out[rows] = self._pool(states, tokens["attention_mask"]).cpu().numpy()
        return out

    def _pool(self, states: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        states = states.float()
        if self._usage.pooling == "cls":
            pooled = states[:, 0]
        else:
            weights = mask.unsqueeze(-1).float()
            pooled = (states * weights).sum(1) / weights.sum(1).clamp(min=1.0)
        return torch.nn.functional.normalize(pooled, dim=1) if self._usage.normalise else pooled


@contextmanager
def _one_thread(wanted: bool) -> Iterator[None]:
    """The number of threads is the calling thread's own."""
    threads = torch.get_num_threads()
    if not wanted or threads == 1:
        yield
        return
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(threads)


class TransformerEncoder:
    """See :class:`hybrid_ir.roles.Encoder`."""

    def __init__(self, settings: EncoderSettings) -> None:
        self._settings = settings
        self._location = locate(settings.model, settings.revision)
        self._query_location = self._location
        if settings.query_model:
            self._query_location = locate(settings.query_model, settings.query_revision)

    @cached_property
    def _usage(self) -> SentenceModel:
        return usage(self._location, self._settings)

    @cached_property
    def _query_usage(self) -> SentenceModel:
        return usage(self._query_location, self._settings) if self._settings.query_model else self._usage

    @cached_property
    def _passages(self) -> Tower:
        return Tower(self._location, self._settings, self._usage)

    @cached_property
    def _queries(self) -> Tower:
        if not self._settings.query_model:
            return self._passages
        return Tower(self._query_location, self._settings, self._query_usage)

    @property
    def dimension(self) -> int:
        return self._passages.dimension

    @cached_property
    def fingerprint(self) -> dict[str, str]:
        """What two sets of vectors must share to be comparable."""
        settings, used, for_queries = self._settings, self._usage, self._query_usage
        return {
            "model": self._location.name,
            "revision": self._revision(self._location),
            "query_model": self._query_location.name,
            "query_revision": self._revision(self._query_location),
            "pooling": used.pooling if used.pooling == for_queries.pooling else f"{used.pooling}/{for_queries.pooling}",
            "title": settings.title,
            "max_passage_tokens": str(min(settings.max_passage_tokens, used.max_tokens or settings.max_passage_tokens)),
            "max_query_tokens": str(
                min(settings.max_query_tokens, for_queries.max_tokens or settings.max_query_tokens)
            ),
            "normalise": str(used.normalise).lower(),
            "prompts": f"{for_queries.query_prompt}|{used.passage_prompt}",
            "dtype": settings.dtype,
        }

    def _revision(self, location: ModelLocation) -> str:
        """Only a model from the hub must be loaded to tell its version."""
        if location.folder is not None:
            return location.revision(None)
        return location.revision((self._passages if location is self._location else self._queries).commit)

    def encode_queries(self, texts: Sequence[str]) -> Vectors:
        used = self._query_usage
        return self._queries.encode(
            [used.query_prompt + clean(text) for text in texts], self._settings.max_query_tokens
        )

    def encode_passages(self, titles: Sequence[str], texts: Sequence[str]) -> Vectors:
        titles, texts = [clean(title) for title in titles], [clean(text) for text in texts]
        prompt, most = self._usage.passage_prompt, self._settings.max_passage_tokens
        if self._settings.title == "pair":
            return self._passages.encode([prompt + title for title in titles], most, texts)
        if self._settings.title == "prefix":
            texts = [f"{title}. {text}" if title else text for title, text in zip(titles, texts, strict=True)]
        return self._passages.encode([prompt + text for text in texts], most)


def usage(location: ModelLocation, settings: EncoderSettings) -> SentenceModel:
    """How a model is used: as the settings say, or with ``pooling: auto`` as the model says of itself."""
    if settings.pooling != "auto":
        return SentenceModel(settings.pooling, settings.normalise, None, False, "", "")
    said = sentence_files.read(location)
    if said is None:
        raise BadInput(
            f"The encoder {location.name} has no modules.json that says how it pools: set pooling to what its authors "
            "used (cls for MedCPT, mean for Contriever)."
        )
    return replace(said, normalise=said.normalise or settings.normalise)
