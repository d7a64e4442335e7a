"""What BM25 must know of a whole build: how many live chunks hold each term, and how long they are."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hybrid_ir.sparse.postings import Hashes, Postings

MERGED_AT = 1 << 22
"""Terms that wait before they are merged; more where more are merged already, so that the work stays n log n."""


@dataclass(frozen=True)
class Statistics:
    """Over the live chunks of all shards."""

    terms: Hashes
    """Ascending; terms that live chunks hold."""
    frequencies: NDArray[np.int64]
    """Chunks that hold each."""
    chunks: int
    length: int
    """The sum of the chunks' lengths."""

    @property
    def average(self) -> float:
        """Length of a chunk; 1 where all are empty."""
        return self.length / self.chunks if self.length else 1.0

    def frequency(self, terms: Hashes) -> NDArray[np.int64]:
        """Of each term, 0 for one that is nowhere."""
        place, found = find(self.terms, terms)
        frequency = np.zeros(len(terms), np.int64)
        frequency[found] = self.frequencies[place[found]]
        return frequency

    def idf(self, frequency: NDArray[np.int64]) -> NDArray[np.float64]:
        """ln(1 + (N - df + 0.5) / (df + 0.5)), as Lucene has it; 0 for a term that is nowhere."""
        idf = np.log1p((self.chunks - frequency + 0.5) / (frequency + 0.5))
        return np.where(frequency > 0, idf, 0.0)


def gather(parts: Iterable[tuple[Postings, NDArray[np.bool_] | None]]) -> Statistics:
    """Of shards, each with a mask of its live chunks, None where all live."""
    held = np.zeros(0, np.uint64), np.zeros(0, np.int64)
    waiting, size, chunks, length = [held], 0, 0, 0
    for postings, live in parts:
        frequency = np.diff(postings.starts)
        terms, lengths = postings.terms, postings.lengths
        if live is not None:
            lengths = lengths[live]
            if len(terms):
                frequency = np.add.reduceat(live[postings.chunks].astype(np.int64), postings.starts[:-1])
            terms, frequency = terms[frequency > 0], frequency[frequency > 0]
        chunks, length = chunks + len(lengths), length + int(lengths.sum(dtype=np.int64))
        waiting.append((np.asarray(terms), frequency))
        size += len(terms)
        if size > max(MERGED_AT, len(held[0])):
            held, size = _merged(waiting), 0
            waiting = [held]
    return Statistics(*_merged(waiting), chunks, length)


def find(held: Hashes, wanted: Hashes) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    """Where each wanted term stands among those held (ascending), and whether it does."""
    if not len(held):
        return np.zeros(len(wanted), np.int64), np.zeros(len(wanted), bool)
    place = np.minimum(np.searchsorted(held, wanted), len(held) - 1)
    return place, held[place] == wanted


def _merged(parts: Sequence[tuple[Hashes, NDArray[np.int64]]]) -> tuple[Hashes, NDArray[np.int64]]:
    terms, where = np.unique(np.concatenate([part[0] for part in parts]), return_inverse=True)
    total = np.zeros(len(terms), np.int64)
    np.add.at(total, where, np.concatenate([part[1] for part in parts]))
    return terms, total
