"""The graph path: the query's entities, linked to the graph, spread over it to chunks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from hybrid_ir.extraction.specific import is_specific
from hybrid_ir.index.chunk_filter import Allowed, unfiltered
from hybrid_ir.ranking import top
from hybrid_ir.records import EntityLink
from hybrid_ir.retrieval.linking import Linker
from hybrid_ir.retrieval.together import Together
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
        self._linker, self.scorer, self._extractor = linker, scorer, extractor
        self._document_counts, self._settings, self._allowed = document_counts, settings, allowed
        by_count = settings.seed_by_document_count
        self._divides = settings.scorer == "gfm" if by_count is None else by_count
        self._together = Together(self._rank_each)

    async def rank(self, query: Query, k: int) -> PathRanking:
        return await self._together.ask((query, k))

    def rank_now(self, query: Query, k: int) -> PathRanking:
        return self.rank_many([query], [k])[0]

    def rank_many(self, queries: Sequence[Query], ks: Sequence[int]) -> list[PathRanking]:
        """Several queries at once: one call of each model, and a shared pass over the graph where the scorer can."""
        found = self.seeds_many(queries)
        scored = self.scorer.score_many([seeds for _, seeds in found], [query.text for query in queries])
        rankings = []
        for query, k, (links, _), (_, scores) in zip(queries, ks, found, scored, strict=True):
            allowed = self._allowed(query.filter)
            if allowed is not None:
                scores = np.where(allowed, scores, np.float32(0))
            best = top(scores, k)
            ranking = PathRanking(chunks=tuple(best.tolist()), scores=tuple(scores[best].tolist()), links=tuple(links))
            rankings.append(ranking)
        return rankings

    def _rank_each(self, asked: Sequence[tuple[Query, int]]) -> list[PathRanking]:
        return self.rank_many([query for query, _ in asked], [k for _, k in asked])

    def entity_scores(self, query: Query, seeds: Mapping[int, float]) -> NDArray[np.float32]:
        """Shape (entities,)."""
        return self.scorer.score(seeds, query.text)[0]

    def seeds(self, query: Query) -> tuple[list[EntityLink], dict[int, float]]:
        """The query's mentions as they were linked, and the entities that the scorer starts from with their weights."""
        return self.seeds_many([query])[0]

    def seeds_many(self, queries: Sequence[Query]) -> list[tuple[list[EntityLink], dict[int, float]]]:
        """See :meth:`seeds`; all mentions of all queries are linked in one call."""
        unnamed = [query.text for query in queries if not query.entities]
        in_text = iter(self._extractor.mentions(unnamed) if unnamed else [])
        # No entity named and none found in the text: the whole query is linked as if it were one.
        mentions = [query.entities or next(in_text) or (query.text,) for query in queries]
        linked = iter(self._linker.link_many([one for some in mentions for one in some]))
        return [
            self._weighed(query, [next(linked) for _ in some]) for query, some in zip(queries, mentions, strict=True)
        ]

    def _weighed(
        self, query: Query, linked: Sequence[Sequence[tuple[EntityLink, int]]]
    ) -> tuple[list[EntityLink], dict[int, float]]:
        seeds: dict[int, float] = {}
        links = []
        for link, entity in (one for found in linked for one in found):
            links.append(link)
            if entity >= 0:
                held_by = max(int(self._document_counts[entity]), 1) if self._divides else 1
                said = 1.0 if is_specific(link.mention, query.text) else self._settings.plain_weight
                weight = said * link.similarity / held_by
                if weight > 0:
                    seeds[entity] = max(seeds.get(entity, 0.0), weight)
        return links, seeds
