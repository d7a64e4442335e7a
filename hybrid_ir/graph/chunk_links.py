"""G_doc: links between chunks, by similarity and by citation."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

SIMILARITY, CITATION = 0, 1


@dataclass(frozen=True)
class ChunkLinks:
    """Links from a chunk to another, sorted by (source, target, kind), each once."""

    source: NDArray[np.int64]
    target: NDArray[np.int64]
    weight: NDArray[np.float32]
    kind: NDArray[np.int8]

    def count(self, kind: int) -> int:
        return int((self.kind == kind).sum())


@dataclass(frozen=True)
class CitedDocument:
    """What citation links need of a document; ``chunk`` is its first chunk's number."""

    chunk: int
    pmid: str | None
    doi: str | None
    references: tuple[str, ...]


def nearest(
    chunks: NDArray[np.int64], scores: NDArray[np.float32], found: NDArray[np.int64], neighbours: int, floor: float
) -> ChunkLinks:
    """Links to each chunk's nearest others.

    ``scores`` and ``found`` (chunk numbers, -1 for none) have shape (chunks, at least
    neighbours + 1), best first, as a search for the chunks' own vectors gives them.
    """
    keep = (found >= 0) & (found != chunks[:, None]) & (scores >= floor)
    keep &= np.cumsum(keep, axis=1) <= neighbours
    row, column = np.nonzero(keep)
    return ChunkLinks(
        chunks[row], found[row, column], scores[row, column].astype(np.float32), np.full(len(row), SIMILARITY, np.int8)
    )


def citations(documents: Sequence[CitedDocument]) -> ChunkLinks:
    """The first chunk of a document to the first chunk of each document of the build that it cites."""
    by_name: dict[str, int] = {}
    for document in documents:
        if document.pmid:
            by_name.setdefault(f"pmid:{document.pmid}", document.chunk)
        if document.doi:
            by_name.setdefault(f"doi:{document.doi.lower()}", document.chunk)
    pairs = sorted(
        {
            (document.chunk, by_name[reference])
            for document in documents
            for reference in document.references
            if reference in by_name and by_name[reference] != document.chunk
        }
    )
    array = np.array(pairs, dtype=np.int64).reshape(-1, 2)
    ones = np.ones(len(pairs), np.float32)
    return ChunkLinks(array[:, 0].copy(), array[:, 1].copy(), ones, np.full(len(pairs), CITATION, np.int8))


def merge(parts: Sequence[ChunkLinks]) -> ChunkLinks:
    """All links in order."""
    source = np.concatenate([part.source for part in parts] or [np.zeros(0, np.int64)])
    target = np.concatenate([part.target for part in parts] or [np.zeros(0, np.int64)])
    weight = np.concatenate([part.weight for part in parts] or [np.zeros(0, np.float32)])
    kind = np.concatenate([part.kind for part in parts] or [np.zeros(0, np.int8)])
    order = np.lexsort((kind, target, source))
    return ChunkLinks(source[order], target[order], weight[order], kind[order])
