"""The paths of one query side by side: what each alone would have brought, and what fusion makes of them."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from hybrid_ir.index.chunk_store import ChunkStore
from hybrid_ir.records import Chunk, PathHit, PathName, Record, Retrieval
from hybrid_ir.retrieval.retriever import FusedRetriever, Ranked, retrieval
from hybrid_ir.roles import Query


class Compared(Record):
    """A chunk that is among the first k of the fused ranking or of a path's own list."""

    chunk: Chunk
    place: int | None
    """In the fused ranking, where it is among the first k."""
    paths: dict[PathName, PathHit]
    """Its place in each path's own list, which is at least 2k and ``fusion.list_length`` long."""


class Comparison(Record):
    """The fused ranking beside the paths' own."""

    k: int
    retrieval: Retrieval
    fused: tuple[PathName, ...]
    shown: tuple[PathName, ...]
    """The fused ones, and others that are only looked at."""
    chunks: tuple[Compared, ...]
    """The fused in their order, then the others by their best rank."""


async def compare(
    retriever: FusedRetriever, chunks: ChunkStore, query: Query, k: int, paths: Sequence[PathName] | None = None
) -> tuple[Comparison, Ranked]:
    """The comparison, and the lists of all paths shown.

    ``paths`` are fused and shown; None: those of the settings are fused, and all that the index
    has are shown.  Raises as :meth:`FusedRetriever.retrieve`; a path that is only shown may fail.
    """
    fused = tuple(dict.fromkeys(retriever.default_paths if paths is None else paths))
    shown = tuple(dict.fromkeys([*fused, *retriever.paths])) if paths is None else fused
    ranked = await retriever.rank(query, k, shown)
    return await asyncio.to_thread(_compare, retriever, chunks, query, k, fused, shown, ranked), ranked


def _compare(
    retriever: FusedRetriever,
    chunks: ChunkStore,
    query: Query,
    k: int,
    fused: tuple[PathName, ...],
    shown: tuple[PathName, ...],
    ranked: Ranked,
) -> Comparison:
    best = retriever.fused(ranked.of(fused), k)
    hits: dict[int, dict[PathName, PathHit]] = {}
    for path, ranking in ranked.rankings.items():
        for rank, (number, score) in enumerate(zip(ranking.chunks, ranking.scores, strict=True), start=1):
            hits.setdefault(number, {}).setdefault(path, PathHit(rank=rank, score=score))
    best_rank = {number: min(hit.rank for hit in found.values()) for number, found in hits.items()}
    others = sorted((n for n in hits if n not in best and best_rank[n] <= k), key=lambda n: (best_rank[n], n))
    rows = [
        Compared(chunk=item.chunk, place=place, paths=hits[number])
        for place, (number, item) in enumerate(best.items(), start=1)
    ]
    rows += [Compared(chunk=chunks.by_number(number), place=None, paths=hits[number]) for number in others]
    brought = retrieval(query, ranked.of(fused), best.values())
    return Comparison(k=k, retrieval=brought, fused=fused, shown=shown, chunks=tuple(rows))
