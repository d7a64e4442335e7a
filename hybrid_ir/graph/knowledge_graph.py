"""G_ent and M as plain arrays: what extraction found, with names turned into numbers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

EQUIVALENT = "equivalent"
"""The synonym relation; always relation number 0."""

Numbers = NDArray[np.int64]


@dataclass(frozen=True)
class KnowledgeGraph:
    """Entities are numbered in the order of their names (code points), relations too, after number 0.

    Edges are distinct (head, relation, tail), so parallel relations between one pair are kept;
    ``weight`` is the number of chunks that state the edge.  ``mention_entity`` and
    ``mention_chunk`` are the ones of the 0/1 matrix M, sorted, each pair once.
    """

    entities: pa.Array
    relations: pa.Array
    head: Numbers
    relation: Numbers
    tail: Numbers
    weight: NDArray[np.float32]
    mention_entity: Numbers
    mention_chunk: Numbers
    statements: int
    """Distinct (chunk, head, relation, tail)."""


def build(triples: Sequence[pa.Table], mentions: Sequence[pa.Table]) -> KnowledgeGraph:
    """Number the names and make edges and M distinct.

    Both kinds of table carry an int64 column ``chunk`` (the build's chunk number); triples
    carry ``head, relation, tail``, mentions ``name``.  A triple's head and tail count as
    mentions of its chunk.
    """
    triple = pa.concat_tables(triples) if triples else _EMPTY_TRIPLES
    mention = pa.concat_tables(mentions) if mentions else _EMPTY_MENTIONS
    names = pa.chunked_array(
        [*triple["head"].chunks, *triple["tail"].chunks, *mention["name"].chunks], type=pa.string()
    )
    entities = _sorted_unique(names)
    relations = pa.concat_arrays(
        [
            pa.array([EQUIVALENT]),
            _sorted_unique(pc.filter(triple["relation"], pc.not_equal(triple["relation"], EQUIVALENT))),
        ]
    )

    head, tail = _number(triple["head"], entities), _number(triple["tail"], entities)
    relation, chunk = _number(triple["relation"], relations), _to_numpy(triple["chunk"])
    stated = np.unique(np.stack([tail, head, relation, chunk], axis=1), axis=0)
    edges, counts = np.unique(stated[:, :3], axis=0, return_counts=True)

    pairs = np.concatenate(
        [
            np.stack([head, chunk], axis=1),
            np.stack([tail, chunk], axis=1),
            np.stack([_number(mention["name"], entities), _to_numpy(mention["chunk"])], axis=1),
        ]
    )
    pairs = np.unique(pairs, axis=0)
    return KnowledgeGraph(
        entities=entities,
        relations=relations,
        head=np.ascontiguousarray(edges[:, 1]),
        relation=np.ascontiguousarray(edges[:, 2]),
        tail=np.ascontiguousarray(edges[:, 0]),
        weight=counts.astype(np.float32),
        mention_entity=np.ascontiguousarray(pairs[:, 0]),
        mention_chunk=np.ascontiguousarray(pairs[:, 1]),
        statements=len(stated),
    )


def indptr(sorted_rows: Numbers, rows: int) -> Numbers:
    """CSR offsets, shape (rows + 1,), of row numbers in ascending order."""
    return np.searchsorted(sorted_rows, np.arange(rows + 1)).astype(np.int64)


def ranges(starts: Numbers, ends: Numbers) -> Numbers:
    """All numbers of all ranges, in order."""
    count = ends - starts
    numbers: Numbers = np.arange(int(count.sum())) + np.repeat(starts - (np.cumsum(count) - count), count)
    return numbers


_EMPTY_TRIPLES = pa.table(
    {"chunk": pa.array([], pa.int64()), **{name: pa.array([], pa.string()) for name in ("head", "relation", "tail")}}
)
_EMPTY_MENTIONS = pa.table({"chunk": pa.array([], pa.int64()), "name": pa.array([], pa.string())})


def _sorted_unique(values: Any) -> pa.Array:
    unique = pc.unique(values)
    return unique.take(pc.sort_indices(unique))


def _number(values: Any, names: pa.Array) -> Numbers:
    return _to_numpy(pc.index_in(values, value_set=names))


def _to_numpy(values: Any) -> Numbers:
    return np.asarray(values.to_numpy(), dtype=np.int64)
