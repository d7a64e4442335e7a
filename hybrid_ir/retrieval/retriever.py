"""The paths at the same time, fused into evidence."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

from hybrid_ir.errors import BadInput, HybridIRError
from hybrid_ir.index.chunk_store import ChunkStore
from hybrid_ir.records import Evidence, PathName, Retrieval
from hybrid_ir.retrieval.fusion import fuse
from hybrid_ir.retrieval.rerank import reordered
from hybrid_ir.roles import PathRanking, Query, Reranker, RetrievalPath
from hybrid_ir.settings import FusionSettings

RERANK: PathName = "rerank"
"""Its name beside the paths' in ``degraded`` and ``seconds``."""
PATHS_SHARE = 0.7
"""Of the time, before a reranker: one late path must not use up the reranker's too."""

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Ranked:
    """The lists of the paths that served, in the order in which they were named."""

    rankings: dict[PathName, PathRanking]
    seconds: dict[PathName, float]
    failures: dict[PathName, Exception]

    def of(self, paths: Collection[PathName]) -> Ranked:
        """Those of some paths alone."""
        return Ranked(
            {name: ranking for name, ranking in self.rankings.items() if name in paths},
            {name: seconds for name, seconds in self.seconds.items() if name in paths},
            {name: failure for name, failure in self.failures.items() if name in paths},
        )


class FusedRetriever:
    """See :class:`hybrid_ir.roles.Retriever`.  Its paths may live in this process or behind handles."""

    def __init__(
        self,
        paths: Mapping[PathName, RetrievalPath],
        chunks: ChunkStore,
        settings: FusionSettings,
        reranker: Reranker | None = None,
        rerank_top_n: int = 0,
    ) -> None:
        """``reranker`` puts the best ``rerank_top_n`` of the fused list in a new order."""
        self._paths, self._chunks, self._settings = paths, chunks, settings
        self._reranker, self._rerank_top_n = reranker, rerank_top_n if reranker else 0
        self.default_paths = tuple(name for name in settings.paths if name in paths)
        """Fused where a query names no paths."""
        absent = [name for name in settings.paths if name not in paths]
        if absent:
            log.warning("fusion.paths names %s, which this index does not have.", " and ".join(absent))

    @property
    def paths(self) -> tuple[PathName, ...]:
        """All that can be named."""
        return tuple(self._paths)

    async def retrieve(
        self, query: Query, k: int, paths: Sequence[PathName] | None = None, timeout_s: float | None = None
    ) -> Retrieval:
        """The k best chunks, duplicates by content folded into the best placed.

        A path that fails or passes ``timeout_s`` is named in ``degraded`` and the others serve;
        if none serves, one's error is raised, or TimeoutError where all were late.  A reranker gets
        a share of the time; where it fails or is late the fused order stands, ``degraded: rerank``.
        """
        ends = None if timeout_s is None else time.monotonic() + timeout_s
        wanted = max(_checked(k), self._rerank_top_n)
        for_paths = timeout_s if timeout_s is None or self._reranker is None else timeout_s * PATHS_SHARE
        ranked = await self.rank(query, wanted, paths, for_paths)
        found = list((await asyncio.to_thread(self.fused, ranked, wanted)).values())
        if self._reranker is not None and found:
            start = time.monotonic()
            try:
                async with asyncio.timeout(None if ends is None else max(ends - start, 0.0)):
                    found = await self._reranked(self._reranker, query, found)
                ranked.seconds[RERANK] = round(time.monotonic() - start, 6)
            except Exception as error:
                late = isinstance(error, TimeoutError) and not str(error)
                log.warning("The reranker failed: %s", "it did not answer in time" if late else error)
                ranked.failures[RERANK] = error
        return retrieval(query, ranked, found[:k])

    async def _reranked(self, reranker: Reranker, query: Query, fused: list[Evidence]) -> list[Evidence]:
        read, rest = fused[: self._rerank_top_n], fused[self._rerank_top_n :]
        return [*reordered(read, await reranker.rerank(query.text, [item.chunk for item in read])), *rest]

    async def rank(
        self, query: Query, k: int, paths: Sequence[PathName] | None = None, timeout_s: float | None = None
    ) -> Ranked:
        """Each path's own list, long enough for k chunks after fusion.

        A path that fails is among the failures.  Raises BadInput for what no path could do.
        """
        names = self._names(paths)
        if not query.text.strip():
            raise BadInput("The query is empty.")
        wanted = min(max(2 * _checked(k), self._settings.list_length), max(len(self._chunks), 1))
        results = await asyncio.gather(
            *(self._rank(name, query, wanted, timeout_s) for name in names), return_exceptions=True
        )
        ranked = Ranked({}, {}, {})
        for name, result in zip(names, results, strict=True):
            if isinstance(result, Exception):
                late = isinstance(result, TimeoutError) and not str(result)
                log.warning("The %s path failed: %s", name, "it did not answer in time" if late else result)
                ranked.failures[name] = result
            elif isinstance(result, BaseException):
                raise result  # cancelled: the caller has left
            else:
                ranked.rankings[name], ranked.seconds[name] = result
        return ranked

    def fused(self, ranked: Ranked, k: int) -> dict[int, Evidence]:
        """The k best by chunk number, best first, each content once; where no path served, its error is raised."""
        if not ranked.rankings:
            failures = list(ranked.failures.values())
            if all(isinstance(failure, TimeoutError) for failure in failures):
                raise TimeoutError("No path answered in time")
            readable = [failure for failure in failures if isinstance(failure, HybridIRError)]
            raise readable[0] if readable else RuntimeError("No path served") from failures[0]
        found: dict[int, Evidence] = {}
        seen: set[str] = set()
        for fused in fuse(ranked.rankings, self._settings):
            chunk = self._chunks.by_number(fused.chunk)
            content = " ".join(chunk.text.split())
            if content in seen:
                continue
            seen.add(content)
            found[fused.chunk] = Evidence(chunk=chunk, score=fused.score, paths=fused.paths)
            if len(found) == k:
                break
        return found

    def _names(self, paths: Sequence[PathName] | None) -> list[PathName]:
        names = list(dict.fromkeys(self.default_paths if paths is None else paths))
        unknown = [name for name in names if name not in self._paths]
        if unknown or not names:
            raise BadInput(
                f"Unknown path {', '.join(unknown) or '(none named)'}; this index has: {', '.join(self._paths)}."
            )
        return names

    async def _rank(self, name: PathName, query: Query, k: int, timeout_s: float | None) -> tuple[PathRanking, float]:
        start = time.monotonic()
        async with asyncio.timeout(timeout_s):
            ranking = await self._paths[name].rank(query, k)
        return ranking, round(time.monotonic() - start, 6)


def retrieval(query: Query, ranked: Ranked, evidence: Iterable[Evidence]) -> Retrieval:
    """The evidence with how it came about."""
    return Retrieval(
        query=query.text,
        evidence=tuple(evidence),
        links=tuple(link for ranking in ranked.rankings.values() for link in ranking.links),
        degraded=tuple(ranked.failures),
        seconds=ranked.seconds,
    )


def _checked(k: int) -> int:
    if k < 1:
        raise BadInput(f"k is {k}; ask for at least 1 chunk.")
    return k
