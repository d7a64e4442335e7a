"""Chains of triples from a question's entities to a chunk's: why the graph path brought it."""

from __future__ import annotations

import heapq
from collections.abc import Collection, Mapping
from dataclasses import dataclass

import numpy as np

from hybrid_ir.graph.messages import MessageGraph

MOST_HOPS = 4
MOST_SETTLED = 20_000
LEAST_WEIGHT = 1e-12
"""A chain that carries less is not followed further."""


@dataclass(frozen=True)
class Step:
    """A triple as the graph holds it, by number."""

    head: int
    relation: int
    tail: int


@dataclass(frozen=True)
class Chain:
    """From a seed to an entity of the chunk; no steps: the entity is itself a seed."""

    seed: int
    entity: int
    steps: tuple[Step, ...]
    weight: float
    """The seed's share of all seeds, times what each step passes on (damping over the node's edges)."""


def chains(
    graph: MessageGraph, seeds: Mapping[int, float], targets: Collection[int], damping: float, limit: int = 3
) -> list[Chain]:
    """The heaviest chains to ``targets``, at most one an entity, heaviest first.

    The weight of a chain is what a random walker from the seeds carries along it, so the heaviest is
    the one that contributed most to the entity's score.  Found by best-first search (Dijkstra on the
    logarithms); the work is bounded by the number of nodes settled.
    """
    total = sum(seeds.values())
    wanted = set(targets)
    best: dict[int, tuple[float, int]] = {}
    """Settled node -> (weight, hops)."""
    came: dict[int, tuple[int, Step]] = {}
    queue: list[tuple[float, int, int, int, Step | None]] = [
        (-weight / total, 0, node, -1, None) for node, weight in sorted(seeds.items()) if weight > 0
    ]
    heapq.heapify(queue)
    found: list[int] = []
    while queue and len(found) < limit and len(best) < MOST_SETTLED:
        weight, hops, node, before, step = heapq.heappop(queue)
        if node in best:
            continue
        best[node] = (-weight, hops)
        if step is not None:
            came[node] = (before, step)
        if node in wanted:
            found.append(node)
        first, end = int(graph.indptr[node]), int(graph.indptr[node + 1])
        passed = weight * damping / max(end - first, 1)
        if hops == MOST_HOPS or -passed < LEAST_WEIGHT:
            continue
        sources, relations = np.asarray(graph.source[first:end]), np.asarray(graph.relation[first:end])
        # Parallel relations carry together; the first of them names the step.
        others, at, parallel = np.unique(sources, return_index=True, return_counts=True)
        for other, place, count in zip(others.tolist(), at.tolist(), parallel.tolist(), strict=True):
            if other not in best:
                relation = int(relations[place])
                through = (
                    Step(node, relation, other)
                    if relation < graph.relations
                    else Step(other, relation - graph.relations, node)
                )
                heapq.heappush(queue, (passed * count, hops + 1, other, node, through))
    return [_chain(node, best, came) for node in found]


def _chain(node: int, best: Mapping[int, tuple[float, int]], came: Mapping[int, tuple[int, Step]]) -> Chain:
    steps: list[Step] = []
    at = node
    while at in came:
        at, step = came[at]
        steps.append(step)
    return Chain(seed=at, entity=node, steps=tuple(reversed(steps)), weight=best[node][0])
