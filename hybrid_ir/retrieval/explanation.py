"""Why a query brought a chunk: what each path saw in it, and what each gave to its fused score."""

from __future__ import annotations

import numpy as np

from hybrid_ir.index import layout
from hybrid_ir.opened import Index
from hybrid_ir.records import Chunk, EntityLink, PathName, Record
from hybrid_ir.retrieval.comparison import Comparison
from hybrid_ir.retrieval.evidence_chains import EvidenceChain, evidence_chains
from hybrid_ir.retrieval.fusion import votes
from hybrid_ir.retrieval.retriever import Ranked
from hybrid_ir.roles import Query

TOP_MENTIONS = 10


class TermReason(Record):
    """A term of the query that the index has."""

    term: str
    chunks: int
    """Chunks of the index that hold it."""
    idf: float
    count: int
    """How often this chunk holds it."""
    score: float


class MentionReason(Record):
    """An entity that the chunk mentions."""

    entity: str
    score: float
    place: int
    """Among all entities, by score."""


class Seed(Record):
    entity: str
    weight: float


class FusedReason(Record):
    place: int | None
    """In the fused ranking, where it is among the first k."""
    score: float
    terms: dict[PathName, float]
    """What each fused path that lists it gives it; see :func:`hybrid_ir.retrieval.fusion.votes`."""


class DenseReason(Record):
    rank: int | None
    similarity: float
    """Inner product of the query's vector and the chunk's: the cosine where vectors are of unit length."""


class SparseReason(Record):
    rank: int | None
    score: float
    terms: tuple[TermReason, ...]


class GraphReason(Record):
    rank: int | None
    score: float | None
    """None: not in the path's list."""
    links: tuple[EntityLink, ...]
    seeds: tuple[Seed, ...]
    mentions: tuple[MentionReason, ...]
    """Those of this chunk with the highest scores."""
    chains: tuple[EvidenceChain, ...] = ()
    """From seeds to this chunk's entities, those that carry most."""


class Explanation(Record):
    """A path is None where it was not asked or failed; a rank is None where its list does not hold the chunk."""

    chunk: Chunk
    list_length: int
    """Most chunks of a path's list."""
    fused: FusedReason
    graph: GraphReason | None = None
    dense: DenseReason | None = None
    sparse: SparseReason | None = None


def explain(index: Index, query: Query, chunk_id: str, compared: Comparison, ranked: Ranked) -> Explanation:
    """Why (or why not) a query brought a chunk; ``ranked``: the lists that ``compared`` was made from.

    Raises NotFound where there is no such chunk.
    """
    fusion = index.settings.fusion
    number = index.chunks.number(chunk_id)
    ranks = {
        path: ranking.chunks.index(number) + 1 for path, ranking in ranked.rankings.items() if number in ranking.chunks
    }
    terms = {
        path: votes(path, ranked.rankings[path], fusion)[ranks[path] - 1] for path in compared.fused if path in ranks
    }
    place = next((row.place for row in compared.chunks if row.chunk.id == chunk_id), None)
    asked = ranked.rankings
    return Explanation(
        chunk=index.chunks.by_number(number),
        list_length=max(2 * compared.k, fusion.list_length),
        fused=FusedReason(place=place, score=sum(terms.values()), terms=terms),
        graph=_graph(index, query, number, ranks.get("graph"), ranked) if "graph" in asked else None,
        dense=_dense(index, query, number, ranks.get("dense")) if "dense" in asked else None,
        sparse=_sparse(index, query, number, ranks.get("sparse")) if "sparse" in asked else None,
    )


def _dense(index: Index, query: Query, number: int, rank: int | None) -> DenseReason:
    segment_id, shard, row = index.chunks.place(number)
    vector = index.store.array(layout.shard(segment_id, "vectors", shard))[row]
    similarity = index.chunk_encoder.encode_queries([query.text])[0] @ vector
    return DenseReason(rank=rank, similarity=float(similarity))


def _sparse(index: Index, query: Query, number: int, rank: int | None) -> SparseReason:
    found = index.sparse_path.index.explain(query.text, number)
    terms = tuple(TermReason(**vars(part)) for part in found)
    return SparseReason(rank=rank, score=sum(part.score for part in found), terms=terms)


def _graph(index: Index, query: Query, number: int, rank: int | None, ranked: Ranked) -> GraphReason:
    graph, path = index.graph, index.graph_path
    links, seeds = path.seeds(query)
    scores = path.entity_scores(query, seeds)
    # M is by entity; the whole of it is looked through for one chunk, which takes about a second for 1e9 mentions.
    rows = np.flatnonzero(np.asarray(graph.mention_chunk) == number)
    entities = np.searchsorted(graph.mention_indptr, rows, side="right") - 1
    best = entities[np.lexsort((entities, -scores[entities]))][:TOP_MENTIONS]
    mentions = tuple(
        MentionReason(
            entity=graph.entity_names[entity].as_py(),
            score=float(scores[entity]),
            place=int((scores > scores[entity]).sum()) + 1,
        )
        for entity in best.tolist()
        if scores[entity] > 0
    )
    order = sorted(seeds, key=lambda entity: (-seeds[entity], entity))
    return GraphReason(
        rank=rank,
        score=None if rank is None else ranked.rankings["graph"].scores[rank - 1],
        links=tuple(links),
        seeds=tuple(Seed(entity=graph.entity_names[entity].as_py(), weight=seeds[entity]) for entity in order),
        mentions=mentions,
        chains=evidence_chains(index, seeds, number) if seeds else (),
    )
