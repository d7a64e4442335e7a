"""G_ent with both directions of every edge, sorted once by the node that receives."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hybrid_ir.graph.knowledge_graph import Numbers, indptr
from hybrid_ir.graph.partition_store import StoredPartition
from hybrid_ir.graph.store import StoredGraph

INVERSE = "inverse_"
"""Before the text of a relation that is read from its tail: the texts the weights were trained with."""


@dataclass(frozen=True)
class MessageGraph:
    """CSR by receiver: node i hears source[e] through relation[e] for e in indptr[i] to indptr[i + 1].

    Every triple (head, r, tail) is two messages: head <- tail through r, and tail <- head through
    its inverse, r + relations.  Parallel relations stay; nothing is weighted (GFM-RAG).
    """

    indptr: Numbers
    source: NDArray[np.int32]
    relation: NDArray[np.int32]
    relations: int
    """Without the inverses."""

    @property
    def nodes(self) -> int:
        return len(self.indptr) - 1

    @property
    def edges(self) -> int:
        return len(self.source)


def message_graph(
    head: Numbers, relation: NDArray[np.int32] | Numbers, tail: Numbers, nodes: int, relations: int
) -> MessageGraph:
    """From triples as three arrays of shape (triples,)."""
    receiver = np.concatenate([head, tail]).astype(np.int64)
    source = np.concatenate([tail, head]).astype(np.int32)
    through = np.concatenate([relation, np.asarray(relation) + relations]).astype(np.int32)
    order = np.lexsort((through, source, receiver))
    return MessageGraph(indptr(receiver[order], nodes), source[order], through[order], relations)


def messages_of(graph: StoredGraph) -> MessageGraph:
    """G_ent's triples and synonyms, by entity number."""
    tail = np.repeat(np.arange(graph.entities), np.diff(graph.edge_indptr))
    return message_graph(graph.edge_source, graph.edge_relation, tail, graph.entities, len(graph.relation_names))


def messages_of_partition(partition: StoredPartition, relations: int) -> MessageGraph:
    """One partition's entities as receivers, by position; sources by relabelled id, of any partition."""
    tails, heads = (np.diff(rows) for rows in (partition.out_indptr, partition.into.indptr))
    receiver = np.concatenate([np.repeat(np.arange(len(count)), count) for count in (tails, heads)])
    source = np.concatenate([partition.out_target, partition.into.source]).astype(np.int32)
    through = np.concatenate([partition.out_relation, partition.into.relation + relations]).astype(np.int32)
    order = np.lexsort((through, source, receiver))
    rows = indptr(receiver[order], len(partition.entities))
    return MessageGraph(rows, source[order], through[order], relations)


def joined(parts: Sequence[MessageGraph]) -> MessageGraph:
    """All partitions' rows as one graph by relabelled id."""
    rows = np.concatenate([[0], *(np.diff(part.indptr) for part in parts)]).cumsum()
    source, relation = (np.concatenate([getattr(part, name) for part in parts]) for name in ("source", "relation"))
    return MessageGraph(rows, source, relation, parts[0].relations)


def relation_texts(names: list[str]) -> list[str]:
    """What is encoded for each relation and then each inverse."""
    return [*names, *(INVERSE + name for name in names)]


def inverse(relation: NDArray[np.int32], relations: int) -> NDArray[np.int32]:
    """The other direction of each."""
    other: NDArray[np.int32] = np.where(relation < relations, relation + relations, relation - relations)
    return other
