"""Synonyms among more entities than can all be compared: only those that share a coarse cluster are.

Spherical k-means on a sample of the name vectors gives the clusters; each entity belongs to its
nearest few, so that two similar ones on either side of a border still meet.  What is missed is
estimated on a sample of entities that are compared with all others.  ``train``, ``assign`` and
``synonym_tile`` write files of ``work/`` and are tasks of their own.
"""

from __future__ import annotations

import faiss
import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from hybrid_ir.graph import synonyms
from hybrid_ir.graph.candidates import unit
from hybrid_ir.graph.knowledge_graph import Numbers
from hybrid_ir.index import entity_parts
from hybrid_ir.index.manifest import Resolution
from hybrid_ir.index.plan import BuildPlan

ENTITIES_PER_CLUSTER = 8192
"""On average, if each were in one cluster only."""
NEAREST = 4
"""Clusters that an entity belongs to."""
SAMPLE_PER_CLUSTER = 64
ENTITIES_PER_TILE = 16384
"""Of a cluster that is larger, runs of so many are compared with each other."""
CHECKED = 2000
"""Entities on which the recall is estimated."""
_SEED, _ITERATIONS = 7, 10


def wanted(plan: BuildPlan, entities: int) -> bool:
    return entities > plan.settings.graph.resolution_blocks_above


def train(plan: BuildPlan, parts: int) -> int:
    """Write the clusters' centres and the entities to check; returns the number of clusters."""
    if plan.store.exists(_file(plan, "centres")):
        return len(plan.store.array(_file(plan, "centres")))
    ids = [entity_parts.load_names(plan, part)[0] for part in range(parts)]
    entities = sum(map(len, ids))
    clusters = max(1, entities // ENTITIES_PER_CLUSTER)
    sample = _sample(plan, ids, clusters * SAMPLE_PER_CLUSTER)[1]
    sample = unit(sample[np.any(sample, axis=1)])
    clusters = max(1, min(clusters, len(sample)))
    dimension = sample.shape[1]
    centres = np.zeros((1, dimension), np.float32)
    if clusters > 1:
        kmeans = faiss.Kmeans(
            dimension, clusters, niter=_ITERATIONS, spherical=True, seed=_SEED, min_points_per_centroid=1
        )
        kmeans.train(sample)
        centres = np.asarray(kmeans.centroids, np.float32)
    checked_ids, checked = _sample(plan, ids, CHECKED)
    plan.store.write_array(_file(plan, "checked-ids"), checked_ids)
    plan.store.write_array(_file(plan, "checked-vectors"), checked)
    plan.store.write_array(_file(plan, "centres"), centres)
    return clusters


def assign(plan: BuildPlan, part: int) -> int:
    """Write which rows of a part belong to which cluster, and what the checked entities' synonyms there are."""
    if plan.store.exists(_file(plan, "offsets", part)):
        return len(plan.store.array(_file(plan, "rows", part)))
    vectors, ids = np.asarray(entity_parts.load_vectors(plan, part)), entity_parts.load_names(plan, part)[0]
    centres = np.asarray(plan.store.array(_file(plan, "centres")))
    index = faiss.IndexFlatIP(centres.shape[1])
    index.add(centres)
    filled = np.flatnonzero(np.any(vectors, axis=1))  # a zero vector is similar to nothing
    nearest = index.search(unit(vectors[filled]), min(NEAREST, len(centres)))[1]
    row, cluster = np.repeat(filled, nearest.shape[1]), nearest.ravel()
    order = np.lexsort((row, cluster))
    row, cluster = row[order], cluster[order]
    checked = plan.store.array(_file(plan, "checked-ids")), plan.store.array(_file(plan, "checked-vectors"))
    a, b, cosine = synonyms.similar_pairs(*checked, ids, vectors, plan.settings.graph.synonym_threshold)
    table = pa.table({"a": a, "b": b, "cosine": cosine})
    plan.store.write_table(f"{plan.work}/checked/part-{part:05d}.parquet", table)
    plan.store.write_array(_file(plan, "rows", part), row)
    plan.store.write_array(_file(plan, "ids", part), ids[row])
    plan.store.write_array(_file(plan, "offsets", part), np.searchsorted(cluster, np.arange(len(centres) + 1)))
    return len(row)


def tiles(plan: BuildPlan, parts: int) -> list[tuple[int, int, int]]:
    """The comparisons to make: (cluster, run of its entities, another run of them)."""
    sizes = sum(np.diff(plan.store.array(_file(plan, "offsets", part))) for part in range(parts))
    found = []
    for cluster, size in enumerate(np.atleast_1d(sizes).tolist()):
        runs = -(-size // ENTITIES_PER_TILE)
        found += [(cluster, i, j) for i in range(runs) for j in range(i, runs)]
    return found


def synonym_tile(plan: BuildPlan, parts: int, cluster: int, first: int, second: int) -> int:
    """The pairs of one tile, whatever numbers their names hold; returns how many.

    As ``entity_parts.synonym_tile``: of two names that the changed build had, the pair is known.
    """
    target = f"{plan.work}/synonyms/cluster-{cluster:06d}-{first:03d}-{second:03d}.parquet"
    if plan.store.exists(target):
        return int(plan.store.open_parquet(target).metadata.num_rows)
    threshold = plan.settings.graph.synonym_threshold
    one = _members(plan, parts, cluster, first)
    two = one if first == second else _members(plan, parts, cluster, second)
    if plan.previous is None:
        found = [synonyms.similar_pairs(*one[:2], *two[:2], threshold)]
    else:
        found = [
            synonyms.similar_pairs(left[0][left[2]], left[1][left[2]], *right[:2], threshold)
            for left, right in ((one, two), (two, one))[: 1 if first == second else 2]
        ]
    a, b, cosine = synonyms.distinct(*(np.concatenate([part[i] for part in found]) for i in range(3)))
    plan.store.write_table(target, pa.table({"a": a, "b": b, "cosine": cosine}))
    return len(a)


def resolution(plan: BuildPlan, entities: pa.Array, pairs: entity_parts.Pairs) -> Resolution:
    """How many of the checked entities' synonyms are among all pairs that were found."""
    tables = [plan.store.read_table(name) for name in plan.store.files(f"{plan.work}/checked")]
    known = synonyms.distinct(*(np.concatenate([t[name].to_numpy() for t in tables]) for name in ("a", "b", "cosine")))
    known = entity_parts.numbers_agree(plan, entities, known)
    size = len(entities)
    hit = np.isin(known[0] * size + known[1], pairs[0] * size + pairs[1])
    clusters = len(plan.store.array(_file(plan, "centres")))
    return Resolution(
        clusters=clusters,
        clusters_per_entity=min(NEAREST, clusters),
        checked_entities=len(plan.store.array(_file(plan, "checked-ids"))),
        checked_pairs=len(hit),
        recall=float(hit.mean()) if len(hit) else None,
    )


def _sample(plan: BuildPlan, ids: list[Numbers], count: int) -> tuple[Numbers, NDArray[np.float32]]:
    """Ids and vectors of about so many entities, evenly from all parts (which are by hash of the name)."""
    share = min(1.0, count / max(1, sum(map(len, ids))))
    rows = [np.linspace(0, len(part) - 1, round(np.ceil(share * len(part)))).astype(np.int64) for part in ids]
    vectors = [np.asarray(entity_parts.load_vectors(plan, part)[row]) for part, row in enumerate(rows)]
    return np.concatenate([part[row] for part, row in zip(ids, rows, strict=True)]), np.concatenate(vectors)


def _members(
    plan: BuildPlan, parts: int, cluster: int, run: int
) -> tuple[Numbers, NDArray[np.float32], NDArray[np.bool_]]:
    """(ids, vectors, which are new to the changed build) of one run of a cluster's entities."""
    ids, vectors, new, passed = [], [], [], 0
    first, end = run * ENTITIES_PER_TILE, (run + 1) * ENTITIES_PER_TILE
    for part in range(parts):
        offsets = plan.store.array(_file(plan, "offsets", part))
        start, size = int(offsets[cluster]), int(offsets[cluster + 1] - offsets[cluster])
        here = slice(start + min(max(first - passed, 0), size), start + min(max(end - passed, 0), size))
        passed += size
        rows = plan.store.array(_file(plan, "rows", part))[here]
        ids.append(plan.store.array(_file(plan, "ids", part))[here])
        vectors.append(entity_parts.load_vectors(plan, part)[rows])
        new.append(entity_parts.load_new(plan, part)[rows] if plan.previous else np.ones(len(rows), bool))
    return np.concatenate(ids), np.concatenate(vectors), np.concatenate(new)


def _file(plan: BuildPlan, name: str, part: int | None = None) -> str:
    return f"{plan.work}/clusters/{name}{'' if part is None else f'-{part:05d}'}.npy"
