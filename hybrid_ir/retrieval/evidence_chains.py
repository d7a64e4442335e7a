"""Why the graph path brought a chunk, as chains of triples that can be cited.

``(caves, habitat, bats) (bats, carry, rabies virus)``: from an entity of the question to one of the
chunk, each triple with a chunk that states it.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from hybrid_ir.graph.chains import Chain, chains
from hybrid_ir.opened import Index
from hybrid_ir.records import Record

CHAINS = 3


class CitedTriple(Record):
    head: str
    relation: str
    tail: str
    chunk_id: str | None
    """A chunk that states it; None: a synonym, found by the names' vectors."""


class EvidenceChain(Record):
    """From a seed to an entity that the chunk mentions; no triples: the chunk mentions the seed itself."""

    seed: str
    entity: str
    triples: tuple[CitedTriple, ...]
    weight: float
    """The part of the seeds' mass that the walk carries along the chain."""

    def __str__(self) -> str:
        steps = " ".join(f"({step.head}, {step.relation}, {step.tail})" for step in self.triples)
        return steps or f"names {self.entity}"


def evidence_chains(
    index: Index, seeds: Mapping[int, float], chunk: int, limit: int = CHAINS
) -> tuple[EvidenceChain, ...]:
    """The heaviest chains from ``seeds`` (entity number -> weight) to the entities of a chunk, by its number."""
    graph = index.graph
    # M is by entity; the whole of it is looked through for one chunk, which takes about a second for 1e9 mentions.
    rows = np.flatnonzero(np.asarray(graph.mention_chunk) == chunk)
    entities = np.searchsorted(graph.mention_indptr, rows, side="right") - 1
    found = chains(index.messages, seeds, entities.tolist(), index.settings.graph_path.damping, limit)
    return tuple(_cited(index, chain, chunk) for chain in found)


def _cited(index: Index, chain: Chain, chunk: int) -> EvidenceChain:
    names, relations = index.graph.entity_names, index.graph.relation_names
    triples = []
    for step in chain.steps:
        number = index.statements.stating(step.head, step.relation, step.tail, first=chunk)
        triples.append(
            CitedTriple(
                head=names[step.head].as_py(),
                relation=relations[step.relation].as_py(),
                tail=names[step.tail].as_py(),
                chunk_id=None if number is None else index.chunks.by_number(number).id,
            )
        )
    return EvidenceChain(
        seed=names[chain.seed].as_py(), entity=names[chain.entity].as_py(), triples=tuple(triples), weight=chain.weight
    )
