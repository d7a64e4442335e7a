"""The interfaces behind which the methods of the field can be exchanged.

Offline roles are synchronous: a job gives each worker one object and one batch at a time.
Online roles are asynchronous: the paths of one sub-question and the sub-questions of one
round run at the same time, in this process or behind a Serve handle.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping, Sequence
from typing import Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from hybrid_ir.llm.records import Message, Prompt, Reply
from hybrid_ir.records import (
    Chunk,
    Conclusion,
    Decomposition,
    EntityLink,
    Extraction,
    Filter,
    Findings,
    LoopState,
    PathName,
    Record,
    Retrieval,
    SubQuestion,
)

Vectors = NDArray[np.float32]
"""Shape (texts, dimension)."""


class Extractor(Protocol):
    """Chunk -> mentions and triples (OpenIE)."""

    @property
    def fingerprint(self) -> dict[str, str]:
        """All that its output depends on: kind, model, prompt, vocabulary versions."""
        ...

    def extract(self, chunks: Sequence[Chunk]) -> list[Extraction | str]:
        """One result a chunk, in order; a string is the reason why that chunk failed."""
        ...

    def mentions(self, texts: Sequence[str]) -> list[tuple[str, ...]]:
        """The entities that each text names, as they would stand in the graph; for queries."""
        ...


class Encoder(Protocol):
    """Texts -> vectors."""

    @property
    def fingerprint(self) -> dict[str, str]:
        """Model, revision or weights hash, pooling, lengths, normalisation."""
        ...

    @property
    def dimension(self) -> int: ...

    def encode_queries(self, texts: Sequence[str]) -> Vectors: ...

    def encode_passages(self, titles: Sequence[str], texts: Sequence[str]) -> Vectors:
        """Titles and texts have equal length; a title may be empty."""
        ...


class GraphScorer(Protocol):
    """Seeds -> scores of all entities and chunks of one graph."""

    def score(self, seeds: Mapping[int, float], query: str) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
        """Seeds map an entity's number to its weight (> 0); ``query``: the text, for scorers that read it.

        Returns scores of shape (entities,) and (chunks,), 0 where nothing is known.
        """
        ...

    def score_many(
        self, seeds: Sequence[Mapping[int, float]], queries: Sequence[str]
    ) -> list[tuple[NDArray[np.float32], NDArray[np.float32]]]:
        """The scores of several queries, which share a pass over the graph where the scorer can."""
        ...


class Query(Record):
    """What a path ranks for."""

    text: str
    entities: tuple[str, ...] = ()
    """Empty: the path finds them in the text."""
    filter: Filter | None = None
    """``None``: every chunk of the build."""


class PathRanking(Record):
    """One path's chunks by number, best first."""

    chunks: tuple[int, ...]
    scores: tuple[float, ...]
    links: tuple[EntityLink, ...] = ()


class RetrievalPath(Protocol):
    """Query -> ranked chunks, for one build."""

    async def rank(self, query: Query, k: int) -> PathRanking:
        """At most k chunks with a score above nothing, ties by chunk number."""
        ...


class Reranker(Protocol):
    """Reads the query with each of the best fused chunks."""

    async def rerank(self, query: str, chunks: Sequence[Chunk]) -> tuple[float, ...]:
        """One score for each chunk, in order; higher fits better."""
        ...


class Retriever(Protocol):
    """Query -> evidence: the paths, fused."""

    async def retrieve(
        self, query: Query, k: int, paths: Sequence[PathName] | None = None, timeout_s: float | None = None
    ) -> Retrieval: ...


class LLM(Protocol):
    """Messages -> text: one language model behind one backend.

    A cancelled call stops the backend's work too.  Raises Unavailable when the backend does not
    answer after all tries, and BadInput where it refuses the call (a prompt over its window).
    """

    @property
    def name(self) -> str:
        """The model's, as it stands in answers and fingerprints."""
        ...

    async def complete(self, prompt: Prompt) -> Reply: ...

    def stream(self, prompt: Prompt) -> AsyncGenerator[str | Reply, None]:
        """The text piece by piece, then the whole reply."""
        ...

    async def count(self, messages: Sequence[Message]) -> int:
        """Tokens of the messages with the chat template around them, by the backend's own tokenizer."""
        ...

    async def window(self) -> int:
        """Tokens of prompt and reply together."""
        ...

    async def close(self) -> None: ...


class Reasoner(Protocol):
    """The calls of Algorithm 1 that need understanding."""

    @property
    def name(self) -> str:
        """Stands in every answer: ``extractive``, or the model's name."""
        ...

    async def decompose(self, state: LoopState, limit: int) -> Decomposition:
        """Up to ``limit`` sub-questions on what is missing; none when nothing is."""
        ...

    async def answer(self, state: LoopState, sub_question: SubQuestion, retrieval: Retrieval) -> Findings:
        """Statements on the sub-question with the ids of chunks in ``retrieval``; none: not enough evidence."""
        ...

    async def conclude(self, state: LoopState) -> Conclusion:
        """The answer from everything in ``state``."""
        ...


@runtime_checkable
class StreamingReasoner(Reasoner, Protocol):
    """A reasoner whose answer can be read while it is written."""

    def concluding(self, state: LoopState) -> AsyncGenerator[str | Conclusion, None]:
        """Pieces of text, nothing in them checked; then what ``conclude`` returns."""
        ...
