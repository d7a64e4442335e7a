"""The graph path: the query's entities, linked to the graph, spread over it to chunks."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from hybrid_ir.extraction.specific import is_specific
from hybrid_ir.index.chunk_filter import Allowed, unfiltered
from hybrid_ir.ranking import top
from hybrid_ir.records import EntityLink
from hybrid_ir.retrieval.linking import Linker
from hybrid_ir.roles import Extractor, GraphScorer, PathRanking, Query
from hybrid_ir.settings import GraphPathSettings


class GraphPath:
    """See :class:`hybrid_ir.roles.RetrievalPath`."""

    def __init__(
        self,
        linker: Linker,
        scorer: GraphScorer,
        extractor: Extractor,
        document_counts: NDArray[np.int64],
        settings: GraphPathSettings,
        allowed: Allowed = unfiltered,
    ) -> None:
        """``document_counts``: how many chunks hold each entity."""
        self._linker, self._scorer, self._extractor = linker, scorer, extractor
        self._document_counts, self._settings, self._allowed = document_counts, settings, allowed
        by_count = settings.seed_by_document_count
        self._divides = settings.scorer == "gfm" if by_count is None else by_count

    async def rank(self, query: Query, k: int) -> PathRanking:
        return await asyncio.to_thread(self.rank_now, query, k)

    def rank_now(self, query: Query, k: int) -> PathRanking:
        links, seeds = self.seeds(query)
        _, scores = self._scorer.score(seeds, query.text)
        allowed = self._allowed(query.filter)
        if allowed is not None:
            scores = np.where(allowed, scores, np.float32(0))
        best = top(scores, k)
        return PathRanking(chunks=tuple(best.tolist()), scores=tuple(scores[best].tolist()), links=tuple(links))

    def entity_scores(self, query: Query, seeds: Mapping[int, float]) -> NDArray[np.float32]:
        """Shape (entities,)."""
        return self._scorer.score(seeds, query.text)[0]

    def seeds(self, query: Query) -> tuple[list[EntityLink], dict[int, float]]:
        """The query's mentions as they were linked, and the entities that the scorer starts from with their weights."""
        # No entity named and none found in the text: the whole query is linked as if it were one.
        mentions = query.entities or self._extractor.mentions([query.text])[0] or (query.text,)
        seeds: dict[int, float] = {}
        links = []
        for link, entity in (one for found in self._linker.link_many(mentions) for one in found):
            links.append(link)
            if entity >= 0:
                held_by = max(int(self._document_counts[entity]), 1) if self._divides else 1
                said = 1.0 if is_specific(link.mention, query.text) else self._settings.plain_weight
                weight = said * link.similarity / held_by
                if weight > 0:
                    seeds[entity] = max(seeds.get(entity, 0.0), weight)
        return links, seeds
