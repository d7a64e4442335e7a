"""The two paths at the same time, fused into evidence."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Mapping, Sequence

from hybrid_ir.errors import BadInput, HybridIRError
from hybrid_ir.index.chunk_store import ChunkStore
from hybrid_ir.records import Evidence, PathName, Retrieval
from hybrid_ir.retrieval.fusion import fuse
from hybrid_ir.roles import PathRanking, Query, RetrievalPath
from hybrid_ir.settings import FusionSettings

log = logging.getLogger(__name__)


class FusedRetriever:
    """See :class:`hybrid_ir.roles.Retriever`.  Its paths may live in this process or behind handles."""

    def __init__(self, paths: Mapping[PathName, RetrievalPath], chunks: ChunkStore, settings: FusionSettings) -> None:
        self._paths, self._chunks, self._settings = paths, chunks, settings

    async def retrieve(
        self, query: Query, k: int, paths: Sequence[PathName] | None = None, timeout_s: float | None = None
    ) -> Retrieval:
        """The k best chunks, duplicates by content folded into the best placed.

        A path that fails or passes ``timeout_s`` is named in ``degraded`` and the others serve;
        if none serves, one's error is raised, or TimeoutError where all were late.
        """
        names = self._names(paths)
        if k < 1:
            raise BadInput(f"k is {k}; ask for at least 1 chunk.")
        if not query.text.strip():
            raise BadInput("The query is empty.")
        wanted = max(2 * k, self._settings.list_length)
        results = await asyncio.gather(
            *(self._rank(name, query, wanted, timeout_s) for name in names), return_exceptions=True
        )
        rankings: dict[PathName, PathRanking] = {}
        seconds: dict[PathName, float] = {}
        degraded: list[PathName] = []
        failures: list[Exception] = []
        for name, result in zip(names, results, strict=True):
            if isinstance(result, Exception):
                late = isinstance(result, TimeoutError) and not str(result)
                log.warning("The %s path failed: %s", name, "it did not answer in time" if late else result)
                degraded.append(name)
                failures.append(result)
            elif isinstance(result, BaseException):
                raise result  # cancelled: the caller has left
            else:
                rankings[name], seconds[name] = result
        if not rankings:
            if all(isinstance(failure, TimeoutError) for failure in failures):
                raise TimeoutError(f"No path answered within {timeout_s} s")
            readable = [failure for failure in failures if isinstance(failure, HybridIRError)]
            raise readable[0] if readable else RuntimeError("No path served") from failures[0]
        links = tuple(link for name in names if name in rankings for link in rankings[name].links)
        evidence = await asyncio.to_thread(self._evidence, rankings, k)
        return Retrieval(query=query.text, evidence=evidence, links=links, degraded=tuple(degraded), seconds=seconds)

    def _names(self, paths: Sequence[PathName] | None) -> list[PathName]:
        names = list(dict.fromkeys(paths)) if paths is not None else list(self._paths)
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

    def _evidence(self, rankings: Mapping[PathName, PathRanking], k: int) -> tuple[Evidence, ...]:
        evidence: list[Evidence] = []
        seen: set[str] = set()
        for fused in fuse(rankings, self._settings):
            chunk = self._chunks.by_number(fused.chunk)
            content = " ".join(chunk.text.split())
            if content in seen:
                continue
            seen.add(content)
            evidence.append(Evidence(chunk=chunk, score=fused.score, paths=fused.paths))
            if len(evidence) == k:
                break
        return tuple(evidence)
