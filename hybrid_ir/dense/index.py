"""FAISS shards with explicit ids, searched together."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeVar

import faiss
import numpy as np

from hybrid_ir.dense import training
from hybrid_ir.dense.search import TIES, best, by_rows, nothing, search_flat, search_lists
from hybrid_ir.dense.shards import Ids, Mask, OpenShard, Scores, Vectors, open_shard, share_centroids, write_shard
from hybrid_ir.dense.training import Trained, open_trained
from hybrid_ir.errors import BadInput, Conflict
from hybrid_ir.settings import DenseSettings
from hybrid_ir.store import FileEntry, Store

__all__ = ["DenseIndex", "Shard", "write_shard", "write_vectors"]

T = TypeVar("T")

LEAST_CANDIDATES = 160
"""What RaBitQ brings at least to be compared by rows: a short list has the same recall as a long one."""
SQ8_LOOKED_AT, RABITQ_LOOKED_AT = 2.5, 48.0
"""Vectors that a query is compared with, times all to the power of 2/3, and times their root: RaBitQ's are cheaper,
and its recall is its rows'."""
MOST_PROBES = 8
"""Lists that a query looks into at most, times the root of all."""
WORTH_A_THREAD = 50_000
"""Vectors in all shards together from which on shards are searched at the same time."""


@dataclass(frozen=True)
class Shard:
    """A file of the store, and what to add to its ids to make them the build's."""

    name: str
    offset: int = 0


class DenseIndex:
    """All shards of a build as one index, by inner product.

    A zero vector is similar to nothing: none is ever found, and a query that is one finds nothing.
    """

    def __init__(
        self, store: Store, shards: Sequence[Shard], dead: Ids | None = None, settings: DenseSettings | None = None
    ) -> None:
        """``dead``: ids, ascending, that no search finds.  Of the settings those of searching count."""
        dead = np.zeros(0, np.int64) if dead is None else dead
        self._settings = settings or DenseSettings()
        self._flat: list[OpenShard] = []
        self._inverted: dict[str, Inverted] = {}
        for shard in shards:
            opened = open_shard(store, shard.name, shard.offset, dead)
            if not isinstance(opened.index, faiss.IndexIVF):
                self._flat.append(opened)
                continue
            folder = shard.name.rpartition("/")[0]
            if folder not in self._inverted:
                self._inverted[folder] = Inverted(open_trained(store, folder), [])
            share_centroids(opened, self._inverted[folder].trained)
            self._inverted[folder].shards.append(opened)

    def __len__(self) -> int:
        return sum(shard.index.ntotal for shard in self._shards())

    def search(self, queries: Vectors, k: int, allowed: Mask | None = None) -> tuple[Scores, Ids]:
        """The k best of all shards for each query: scores and ids of shape (queries, k).

        ``allowed``: of the build's numbers, which may be found; None: all.  Best first, equal
        scores by id, so that the number of shards changes nothing; where fewer than k exist,
        id -1 and score -inf.
        """
        queries = np.ascontiguousarray(queries, np.float32)
        if k < 0:
            raise BadInput(f"k is {k}; ask for 0 or more.")
        if not np.isfinite(queries).all():
            raise BadInput("A query vector holds NaN or infinite values; the encoder is at fault.")
        for shard in self._shards():
            if shard.index.d != queries.shape[1]:
                raise Conflict(
                    f"The index holds vectors of {shard.index.d} dimensions, the query's has {queries.shape[1]}: "
                    "it was built with another encoder. Use the settings it was built with, or index again."
                )
        scores, ids = nothing(len(queries), k)
        asking = np.flatnonzero(queries.any(axis=1))
        if not k or not len(asking):
            return scores, ids
        found = self._map(lambda shard: search_flat(shard, queries[asking], k, allowed), self._flat)
        for group in self._inverted.values():
            found.append(self._search_inverted(group, queries[asking], k, allowed))
        scores[asking], ids[asking] = best(found, len(asking), k)
        return scores, ids

    def _search_inverted(self, group: Inverted, queries: Vectors, k: int, allowed: Mask | None) -> tuple[Scores, Ids]:
        """Look into the lists nearest to each query; into all of them where that brings too few."""
        chosen = [(shard, *shard.selected(allowed)) for shard in group.shards]
        chosen = [(shard, selector, count) for shard, selector, count in chosen if count]
        passing = sum(count for _, _, count in chosen)
        if not passing:
            return nothing(len(queries), k)
        turned = group.trained.turned(queries)
        near, lists = self._lists(group, turned, passing)
        scores, ids = self._look(group, chosen, queries, turned, near, lists, k)
        # `passing` counts zero vectors too, which are in no list: then all lists are looked into for nothing.
        short = np.flatnonzero((ids >= 0).sum(axis=1) < min(k, passing))
        if len(short):
            near, lists = group.trained.index.quantizer.search(turned[short], group.trained.lists)
            scores[short], ids[short] = self._look(group, chosen, queries[short], turned[short], near, lists, k)
        return scores, ids

    def _lists(self, group: Inverted, turned: Vectors, passing: int) -> tuple[Scores, Ids]:
        """The lists to look into and how near they are, shape (queries, lists), -1 behind a query's last one.

        ``passing``: the fewer vectors may be found, the more lists.  ``auto``: so many lists that
        they hold a multiple of the root of all vectors, as lists differ much in length.
        """
        total, lists = int(group.sizes.sum()), group.trained.lists
        share = max(total / passing, 1.0)
        probes = MOST_PROBES * math.sqrt(lists) if self._settings.probes == "auto" else self._settings.probes
        near, found = group.trained.index.quantizer.search(turned, min(lists, math.ceil(probes * share)))
        if self._settings.probes != "auto":
            return near, found
        sq8 = group.trained.ranges is None
        looked_at = share * (SQ8_LOOKED_AT * total ** (2 / 3) if sq8 else RABITQ_LOOKED_AT * math.sqrt(total))
        sizes = group.sizes[found]
        found[np.cumsum(sizes, axis=1) - sizes >= looked_at] = -1
        wanted = int((found >= 0).sum(axis=1).max())
        return np.ascontiguousarray(near[:, :wanted]), np.ascontiguousarray(found[:, :wanted])

    def _look(
        self,
        group: Inverted,
        chosen: Sequence[tuple[OpenShard, Any, int]],
        queries: Vectors,
        turned: Vectors,
        near: Scores,
        lists: Ids,
        k: int,
    ) -> tuple[Scores, Ids]:
        ranges = group.trained.ranges
        wanted = k + TIES if ranges is None else max(self._settings.refine * k, LEAST_CANDIDATES)

        def one(part: tuple[OpenShard, Any, int]) -> tuple[Scores, Ids]:
            shard, selector, count = part
            return search_lists(shard, selector, turned, lists, near, min(wanted, count))

        found = self._map(one, chosen)
        if ranges is None:
            return best(found, len(queries), k)
        return by_rows(group.shards, ranges, queries, best(found, len(queries), wanted)[1], k)

    def _shards(self) -> Iterable[OpenShard]:
        yield from self._flat
        for group in self._inverted.values():
            yield from group.shards

    def _map(self, search: Callable[[T], tuple[Scores, Ids]], parts: Sequence[T]) -> list[tuple[Scores, Ids]]:
        if self._pool is None or len(parts) < 2:
            return [search(part) for part in parts]
        return list(self._pool.map(search, parts))

    @cached_property
    def _pool(self) -> ThreadPoolExecutor | None:
        threads = faiss.omp_get_max_threads()
        if threads < 2 or len(self) < WORTH_A_THREAD:
            return None
        return ThreadPoolExecutor(threads, "dense", faiss.omp_set_num_threads, (1,))


@dataclass
class Inverted:
    """The shards of one folder and what they share."""

    trained: Trained
    shards: list[OpenShard]

    @cached_property
    def sizes(self) -> Ids:
        """Vectors in each list, of all shards together, shape (lists,)."""
        sizes = np.zeros(self.trained.lists, np.int64)
        for shard in self.shards:
            sizes += shard.list_sizes()
        return sizes


def write_vectors(
    store: Store, name: str, vectors: Vectors, settings: DenseSettings, older: str | None = None
) -> dict[str, FileEntry]:
    """All vectors, shape (n, dimension), under the ids 0 to n - 1, in one shard; trained first where they are many.

    ``older``: a folder of nearly the same vectors, whose training may serve again.
    """
    kind, trained, files = training.kind_for(len(vectors), settings), None, {}
    if kind != "flat":
        folder = name.rpartition("/")[0]
        inherited = training.inherit(store, folder, older, len(vectors), kind, settings) if older else None
        if inherited is None:
            sample = vectors[training.sample_rows(len(vectors), settings)]
            inherited = training.train(store, folder, sample, len(vectors), kind, settings)
        files = inherited
        trained = open_trained(store, folder)
    return files | write_shard(store, name, vectors, np.arange(len(vectors)), trained)
