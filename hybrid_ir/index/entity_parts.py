"""Entities of a build in parts: their names, their vectors, and which of them are synonyms.

A part holds the names of a run of buckets (see ``layout``), so a name's vector is found in the
cache from whatever build it was first made for.  Each function writes one file of ``work/`` and
is a task of its own.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from hybrid_ir.graph import synonyms
from hybrid_ir.graph.knowledge_graph import Numbers
from hybrid_ir.graph.store import StoredGraph, open_graph
from hybrid_ir.index import layout
from hybrid_ir.index.cache import Cache, key
from hybrid_ir.index.plan import BuildPlan
from hybrid_ir.roles import Encoder

ENTITIES_PER_PART = 8192
"""At most; the vectors of a tile's two parts take 25 MB at 384 dimensions."""
NAMES_AT_A_TIME = 1 << 20

Pairs = tuple[Numbers, Numbers, NDArray[np.float32]]
"""(a, b, cosine) with a < b, sorted."""


def part_count(entities: int) -> int:
    """A power of two, so that a part of a larger build lies within one of a smaller."""
    return 1 << max(0, (max(entities, 1) - 1).bit_length() - (ENTITIES_PER_PART - 1).bit_length())


def write_names(plan: BuildPlan, entities: pa.Array) -> int:
    """Lay the names out by part; returns the number of parts."""
    parts = part_count(len(entities))
    names: list[str] = entities.to_pylist()
    part_of = np.fromiter((layout.shard_of(name, parts) for name in names), np.int64, len(names))
    for part in range(parts):
        ids = np.flatnonzero(part_of == part)
        plan.store.write_table(_names_file(plan, part), pa.table({"id": ids, "name": entities.take(pa.array(ids))}))
    return parts


def encode(plan: BuildPlan, part: int, parts: int, encoder: Encoder) -> tuple[int, int]:
    """Vectors of one part's names; returns how many, and how many the model was run on."""
    ids, names = load_names(plan, part)
    if plan.store.exists(_vectors_file(plan, part)):
        return len(ids), 0
    cache = Cache(plan.store, "names", encoder.fingerprint, pa.list_(pa.float32(), encoder.dimension))
    buckets = layout.buckets_of(part, parts)
    keys = [key(name) for name in names]
    known = cache.get(buckets, keys)
    missing = [row for row, k in enumerate(keys) if k not in known]
    vectors = np.zeros((len(names), encoder.dimension), np.float32)
    for row, k in enumerate(keys):
        if k in known:
            vectors[row] = known[k]
    vectors[missing] = encoder.encode_passages([""] * len(missing), [names[row] for row in missing])
    broken = np.isnan(vectors @ np.zeros(encoder.dimension, np.float32))  # NaN or infinite anywhere in the row
    vectors[broken] = 0.0  # similar to nothing
    fresh = [(layout.bucket_of(names[row]), keys[row], vectors[row]) for row in missing if not broken[row]]
    cache.put(buckets, f"{plan.build_id}-{part:05d}", fresh)
    plan.store.write_array(_vectors_file(plan, part), vectors)
    return len(ids), len(missing)


def tiles(plan: BuildPlan, parts: int) -> list[tuple[int, int]]:
    """The comparisons that cover all pairs: (row part, column part).

    Where the build changes another one, pairs of two old names are known from there: the rows are then
    blocks of the names that are new, gathered here.
    """
    if plan.previous is None:
        return [(row, column) for row in range(parts) for column in range(row, parts)]
    return [(row, column) for row in range(_gather_new(plan, parts)) for column in range(parts)]


def synonym_tile(plan: BuildPlan, row: int, column: int) -> int:
    """The similar pairs of one tile, whatever numbers their names hold; returns how many."""
    target = f"{plan.work}/synonyms/tile-{row:05d}-{column:05d}.parquet"
    if plan.store.exists(target):
        return int(plan.store.open_parquet(target).metadata.num_rows)
    right_ids, right = load_names(plan, column)[0], load_vectors(plan, column)
    if plan.previous is not None:
        left_ids, left = (plan.store.array(name) for name in _new_block(plan, row))
    elif row == column:
        left_ids, left = right_ids, right
    else:
        left_ids, left = load_names(plan, row)[0], load_vectors(plan, row)
    a, b, cosine = synonyms.similar_pairs(left_ids, left, right_ids, right, plan.settings.graph.synonym_threshold)
    plan.store.write_table(target, pa.table({"a": a, "b": b, "cosine": cosine}))
    return len(a)


def collect(plan: BuildPlan, entities: pa.Array) -> Pairs:
    """All synonym pairs of the build, sorted."""
    tables = [plan.store.read_table(name) for name in plan.store.files(f"{plan.work}/synonyms")]
    parts = [(t["a"].to_numpy(), t["b"].to_numpy(), t["cosine"].to_numpy()) for t in tables]
    if plan.previous is not None:
        parts.append(_inherited(open_graph(plan.store, layout.build(plan.previous)), entities))
    none = (np.zeros(0, np.int64), np.zeros(0, np.int64), np.zeros(0, np.float32))
    a, b, cosine = (np.concatenate([part[i] for part in parts] or [none[i]]) for i in range(3))
    found = synonyms.distinct(a.astype(np.int64), b.astype(np.int64), cosine.astype(np.float32))
    return numbers_agree(plan, entities, found)


def numbers_agree(plan: BuildPlan, entities: pa.Array, pairs: Pairs) -> Pairs:
    """The pairs whose names hold the same numbers, where the settings ask for it."""
    if not plan.settings.graph.synonym_digits_must_match or not len(pairs[0]):
        return pairs
    keep = np.zeros(len(pairs[0]), bool)
    for start in range(0, len(keep), NAMES_AT_A_TIME):
        some = slice(start, start + NAMES_AT_A_TIME)
        one, two = (entities.take(pa.array(side[some])).to_pylist() for side in pairs[:2])
        keep[some] = [synonyms.numbers_agree(a, b) for a, b in zip(one, two, strict=True)]
    return pairs[0][keep], pairs[1][keep], pairs[2][keep]


def load_names(plan: BuildPlan, part: int) -> tuple[Numbers, list[str]]:
    """(ids, names) of a part."""
    table = plan.store.read_table(_names_file(plan, part))
    return table["id"].to_numpy(), table["name"].to_pylist()


def load_vectors(plan: BuildPlan, part: int) -> NDArray[np.float32]:
    return plan.store.array(_vectors_file(plan, part))


def load_new(plan: BuildPlan, part: int) -> NDArray[np.bool_]:
    """Which names of a part the changed build did not have."""
    return plan.store.array(_new_file(plan, part))


def mark_new(plan: BuildPlan, parts: int) -> int:
    """Write, for each part, which names the changed build did not have; returns how many there are."""
    if plan.previous is None:
        return 0
    old = open_graph(plan.store, layout.build(plan.previous)).entity_names
    total = 0
    for part in range(parts):
        names = plan.store.read_table(_names_file(plan, part))["name"]
        new = pc.invert(pc.is_in(names, value_set=old)).to_numpy().astype(bool)
        plan.store.write_array(_new_file(plan, part), new)
        total += int(new.sum())
    return total


def _gather_new(plan: BuildPlan, parts: int) -> int:
    """Write the ids and vectors of all new names in blocks of a part's size; returns the number of blocks."""
    new = [np.flatnonzero(load_new(plan, part)) for part in range(parts)]
    total, block, held = sum(map(len, new)), 0, 0
    ids: list[Numbers] = []
    vectors: list[NDArray[np.float32]] = []
    for part, rows in enumerate(new):
        if len(rows):
            ids.append(load_names(plan, part)[0][rows])
            vectors.append(np.asarray(load_vectors(plan, part)[rows]))
            held += len(rows)
            total -= len(rows)
        if held >= ENTITIES_PER_PART or (held and not total):
            ids_file, vectors_file = _new_block(plan, block)
            plan.store.write_array(ids_file, np.concatenate(ids))
            plan.store.write_array(vectors_file, np.concatenate(vectors))
            ids, vectors, held, block = [], [], 0, block + 1
    return block


def _inherited(old: StoredGraph, entities: pa.Array) -> tuple[Numbers, Numbers, NDArray[np.float32]]:
    """The synonym pairs of an older graph whose two names are still there, under their new numbers."""
    number = pc.fill_null(pc.index_in(old.entity_names, value_set=entities), -1).to_numpy().astype(np.int64)
    tail = np.repeat(np.arange(old.entities), np.diff(old.edge_indptr))
    kept = np.asarray(old.edge_relation) == 0
    a, b = number[np.asarray(old.edge_source)[kept]], number[tail[kept]]
    alive = (a >= 0) & (b >= 0)
    return a[alive], b[alive], np.asarray(old.edge_weight)[kept][alive]


def _names_file(plan: BuildPlan, part: int) -> str:
    return f"{plan.work}/names/part-{part:05d}.parquet"


def _vectors_file(plan: BuildPlan, part: int) -> str:
    return f"{plan.work}/name-vectors/part-{part:05d}.npy"


def _new_block(plan: BuildPlan, block: int) -> tuple[str, str]:
    return f"{plan.work}/new-names/ids-{block:05d}.npy", f"{plan.work}/new-names/vectors-{block:05d}.npy"


def _new_file(plan: BuildPlan, part: int) -> str:
    return f"{plan.work}/new-names/part-{part:05d}.npy"
