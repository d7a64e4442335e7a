"""The sentences of the evidence, with vectors and entities that are computed once."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from typing import Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

from hybrid_ir.reasoning.words import content_words
from hybrid_ir.records import Chunk, Evidence, LoopState
from hybrid_ir.roles import Encoder, Extractor, Vectors
from hybrid_ir.text import sentence_spans

MAX_SENTENCES = 400
"""Looked at in one call: 3 rounds of 3 sub-questions with 5 chunks of 9 sentences.  Encoding them is what costs."""
MAX_SENTENCE_CHARS = 1000
"""A longer "sentence" is a table or a list; it is quoted whole only where it is short enough to be read."""
CACHED = 8192
"""Sentences kept between calls; 12 MiB of vectors at 384 dimensions."""

Key = TypeVar("Key", bound=Hashable)
Value = TypeVar("Value")


@dataclass(frozen=True)
class Sentence:
    """A sentence of a chunk, verbatim."""

    text: str
    chunk: Chunk
    position: int
    """Its place in the chunk."""
    last: bool
    """Whether it ends its chunk: abstracts conclude there."""

    @property
    def words(self) -> frozenset[str]:
        return content_words(self.text)


def sentences_of(evidence: Sequence[Evidence], limit: int = MAX_SENTENCES) -> list[Sentence]:
    """The sentences of the evidence, best chunk first, at most ``limit``; each text once."""
    found: dict[str, Sentence] = {}
    for item in evidence:
        spans = sentence_spans(item.chunk.text)
        for position, (start, end) in enumerate(spans):
            if len(found) == limit:
                return list(found.values())
            text = item.chunk.text[start:end]
            if len(text) <= MAX_SENTENCE_CHARS and text not in found:
                found[text] = Sentence(text, item.chunk, position, last=position == len(spans) - 1)
    return list(found.values())


def gathered(state: LoopState) -> list[Evidence]:
    """All evidence of the state, each chunk once: the first of every sub-question, then the second, and so on.

    Scores of different sub-questions do not compare, ranks do; so no sub-question crowds out another.
    """
    lists = [sub.retrieval.evidence for round_ in state.rounds for sub in round_.sub_answers]
    found: dict[str, Evidence] = {}
    for row in zip_longest(*lists):
        for item in row:
            if item is not None:
                found.setdefault(item.chunk.id, item)
    return list(found.values())


class _Lru(Generic[Key, Value]):
    """Compute what is missing in one batch, keep the ``size`` used last."""

    def __init__(self, size: int) -> None:
        self._size = size
        self._held: OrderedDict[Key, Value] = OrderedDict()

    def get(self, keys: Sequence[Key], compute: Callable[[list[Key]], Sequence[Value]]) -> list[Value]:
        missing = list(dict.fromkeys(key for key in keys if key not in self._held))
        fresh = dict(zip(missing, compute(missing), strict=True)) if missing else {}
        values: list[Value] = []
        for key in keys:
            value = fresh[key] if key in fresh else self._held[key]
            self._held[key] = value
            self._held.move_to_end(key)
            values.append(value)
        while len(self._held) > self._size:
            self._held.popitem(last=False)
        return values


class Reader:
    """An encoder and an extractor behind a cache and a lock.

    Calls come from several threads at once, one for each sub-question; the models use all the
    cores they are given, so that taking turns costs nothing, and a parser need not be thread-safe.
    """

    def __init__(self, encoder: Encoder, extractor: Extractor) -> None:
        self._encoder = encoder
        self._extractor = extractor
        self._vectors: _Lru[tuple[str, str], NDArray[np.float32]] = _Lru(CACHED)
        self._queries: _Lru[str, NDArray[np.float32]] = _Lru(CACHED // 8)
        self._mentions: _Lru[str, tuple[str, ...]] = _Lru(CACHED)
        self._lock = threading.Lock()

    def vectors(self, sentences: Sequence[Sentence]) -> Vectors:
        """Unit vectors of shape (sentences, dimension); a sentence is read under its chunk's title."""
        keys = [(sentence.chunk.title, sentence.text) for sentence in sentences]
        with self._lock:
            rows = self._vectors.get(
                keys, lambda new: list(_unit(self._encoder.encode_passages([k[0] for k in new], [k[1] for k in new])))
            )
        return np.stack(rows) if rows else np.zeros((0, self._encoder.dimension), np.float32)

    def query_vectors(self, texts: Sequence[str]) -> Vectors:
        """Unit vectors of shape (texts, dimension)."""
        with self._lock:
            rows = self._queries.get(list(texts), lambda new: list(_unit(self._encoder.encode_queries(new))))
        return np.stack(rows) if rows else np.zeros((0, self._encoder.dimension), np.float32)

    def mentions(self, texts: Sequence[str]) -> list[tuple[str, ...]]:
        """The entities that each text names."""
        with self._lock:
            return self._mentions.get(list(texts), self._extractor.mentions)


def _unit(vectors: Vectors) -> Vectors:
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    lengths[lengths == 0] = 1.0
    unit: Vectors = vectors / lengths
    return unit
