"""The shards of a build, searched together by BM25 with the statistics of the whole."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hybrid_ir.ranking import top
from hybrid_ir.settings import SparsePathSettings
from hybrid_ir.sparse.analyzer import terms as terms_of
from hybrid_ir.sparse.postings import Hashes, Postings, hashes_of
from hybrid_ir.sparse.statistics import Statistics, find

MOST_TERMS = 256
"""Distinct terms of a query that count, those that weigh most: a query of 10,000 words costs no more than this."""


@dataclass(frozen=True)
class Contribution:
    """What one term of the query gave to a chunk's score."""

    term: str
    chunks: int
    """Live chunks of the build that hold it."""
    idf: float
    count: int
    """How often the chunk holds it."""
    score: float


class SparseIndex:
    """BM25 over shards; how the chunks are divided among them changes no score and no order."""

    def __init__(
        self,
        shards: Sequence[tuple[Postings, int]],
        statistics: Statistics,
        settings: SparsePathSettings,
        dead: NDArray[np.int64] | None = None,
    ) -> None:
        """Each shard with the number of its first chunk; ``dead``: chunk numbers, ascending, that are never found."""
        self._statistics, self._settings = statistics, settings
        self._shards = []
        for postings, first in shards:
            norm = settings.b * np.asarray(postings.lengths, np.float32) / np.float32(statistics.average)
            norm = (settings.k1 * (1 - settings.b + norm)).astype(np.float32)
            here = np.zeros(0, np.int64) if dead is None else dead
            here = here[np.searchsorted(here, first) : np.searchsorted(here, first + len(norm))] - first
            self._shards.append((postings, first, norm, here))

    def search(
        self, query: str, k: int, allowed: NDArray[np.bool_] | None = None
    ) -> tuple[NDArray[np.float32], NDArray[np.int64]]:
        """The k best chunks with any of the query's terms: scores and numbers, best first, ties by number.

        S(c) = sum over terms t of the query, repeated ones repeatedly:
        idf(t) tf / (tf + k1 (1 - b + b |c| / average)); as Lucene's BM25, without its constant factor.
        ``allowed``: shape (chunks,), which chunks may be found; the statistics stay those of the build.
        """
        _, hashes, weights = self._weighed(query)
        scores, numbers = [np.zeros(0, np.float32)], [np.zeros(0, np.int64)]
        for postings, first, norm, dead in self._shards:
            score = np.zeros(len(norm), np.float32)
            place, found = find(postings.terms, hashes)
            for term, weight in zip(place[found].tolist(), weights[found], strict=True):
                start, end = postings.starts[term], postings.starts[term + 1]
                chunks, count = postings.chunks[start:end], postings.counts[start:end].astype(np.float32)
                score[chunks] += weight * (count / (count + norm[chunks]))
            score[dead] = 0.0
            if allowed is not None:
                score[~allowed[first : first + len(score)]] = 0.0
            best = top(score, k)
            scores.append(score[best])
            numbers.append(best + first)
        score, number = np.concatenate(scores), np.concatenate(numbers)
        order = np.lexsort((number, -score))[:k]
        return score[order], number[order]

    def explain(self, query: str, chunk: int) -> list[Contribution]:
        """What each term of the query gives to one chunk, most first; those that count and are in the build."""
        names, hashes, weights = self._weighed(query)
        frequency = self._statistics.frequency(hashes)
        counts, norm = np.zeros(len(names), np.int64), np.float32(1.0)
        for postings, first, norms, _ in self._shards:
            if not first <= chunk < first + len(norms):
                continue
            norm = norms[chunk - first]
            place, found = find(postings.terms, hashes)
            for i in np.flatnonzero(found).tolist():
                start, end = postings.starts[place[i]], postings.starts[place[i] + 1]
                at = start + np.searchsorted(postings.chunks[start:end], chunk - first)
                if at < end and postings.chunks[at] == chunk - first:
                    counts[i] = postings.counts[at]
        scores = weights * counts / (counts + norm)
        idf = self._statistics.idf(frequency)
        order = np.lexsort((np.arange(len(names)), -idf, -scores)).tolist()
        return [
            Contribution(names[i], int(frequency[i]), float(idf[i]), int(counts[i]), float(scores[i])) for i in order
        ]

    def _weighed(self, query: str) -> tuple[list[str], Hashes, NDArray[np.float32]]:
        """The query's terms that the build has, at most MOST_TERMS, by their hashes; each with its idf times its count.

        The order is that of the hashes, so that a chunk's score is the same sum in the same order in every shard.
        """
        counted = Counter(terms_of(query))
        names = list(counted)
        hashes = hashes_of(names)
        weights = self._statistics.idf(self._statistics.frequency(hashes)) * np.array(list(counted.values()), float)
        kept = np.lexsort((hashes, -weights))[:MOST_TERMS]
        kept = kept[weights[kept] > 0]
        kept = kept[np.argsort(hashes[kept])]
        return [names[i] for i in kept.tolist()], hashes[kept], weights[kept].astype(np.float32)
