"""A walk from the seeds over all owners, hop by hop: which entities a query will move.

Forward push (see :mod:`hybrid_ir.graph.push`) in rounds: in each hop every entity that holds enough
mass passes it on at once.  Mass is counted in whole units, so the outcome is the same however the
graph is divided.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from hybrid_ir.graph.gfm.owner import Owners
from hybrid_ir.graph.knowledge_graph import Numbers

UNITS = 1 << 50
"""Of all seeds together: products with a share stay exact in a double."""
MOST_HOPS = 50


def walk(owners: Owners, seeds: Mapping[int, float], damping: float, tolerance: float) -> tuple[Numbers, Numbers]:
    """The entities reached, ascending, and the mass that stayed with each, in units.

    An entity passes mass on while it holds more than ``tolerance`` x its edges of the whole; the
    work is bounded by 1 / ((1 - damping) x tolerance) edges.
    """
    ids = np.array(sorted(seeds), np.int64)
    weight = np.array([seeds[int(node)] for node in ids], np.float64)
    weight /= weight.sum()
    origin, held, kept = ids, np.floor(weight * UNITS).astype(np.int64), np.zeros(len(ids), np.int64)
    pending = np.ones(len(ids), np.bool_)
    for _ in range(MOST_HOPS):
        at = np.flatnonzero(pending)
        cuts = np.searchsorted(ids[at], owners.starts[1:-1])
        parts = np.split(at, cuts)
        results = owners.push([ids[part] for part in parts], [held[part] for part in parts], damping, tolerance * UNITS)
        settled = np.concatenate([part[result.settled] for part, result in zip(parts, results, strict=True)])
        if not len(settled):
            break
        kept[settled] += np.concatenate([result.kept for result in results])
        held[settled] = 0
        returned = sum(result.returned for result in results)
        back = np.floor(weight * returned).astype(np.int64)
        target = np.concatenate([*(result.target for result in results), origin[back > 0]])
        mass = np.concatenate([*(result.mass for result in results), back[back > 0]])
        reached = np.union1d(ids, target)
        place = np.searchsorted(reached, ids)
        grown_held, grown_kept = np.zeros(len(reached), np.int64), np.zeros(len(reached), np.int64)
        grown_held[place], grown_kept[place] = held, kept
        into = np.searchsorted(reached, target)
        np.add.at(grown_held, into, mass)
        pending = np.zeros(len(reached), np.bool_)
        pending[into] = True
        ids, held, kept = reached, grown_held, grown_kept
    return ids, kept + held
