"""The shards of a build divided among groups: each finds what the whole index would find among its own.

What the groups found, merged, is what one index over all shards finds, id for id: a group looks
into the lists that the whole would look into, and brings as many candidates as could count.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

import numpy as np

from hybrid_ir.dense.index import LEAST_CANDIDATES, DenseIndex, Inverted, Shard
from hybrid_ir.dense.search import TIES, best, by_rows, nothing, search_flat, search_lists
from hybrid_ir.dense.shards import Ids, Mask, Scores, Vectors, open_shard
from hybrid_ir.settings import DenseSettings
from hybrid_ir.store import Store


@dataclass(frozen=True)
class Found:
    """Candidates of one query, best first, from a group's shards of one folder (of all flat ones: "")."""

    folder: str
    passing: int
    """Vectors of the whole folder that may be found; 0 where that decides nothing."""
    most: int
    """Of all groups' candidates together so many are looked at."""
    scores: Scores
    """Shape (n,); what candidates are chosen by."""
    ids: Ids
    exact: Scores | None
    """What they are ranked by, where that is another."""


@dataclass(frozen=True)
class Elsewhere:
    """A shard of another group."""

    offset: int
    size: int
    live: int
    alive: Mask | None

    def passing(self, allowed: Mask | None) -> int:
        if allowed is None:
            return self.live
        mask = allowed[self.offset : self.offset + self.size]
        count = int((mask if self.alive is None else mask & self.alive).sum())
        return self.live if self.alive is None and count == self.size else count


class DenseGroup(DenseIndex):
    """Some of a build's shards.  Of the others it keeps how many vectors each of their lists holds."""

    def __init__(
        self,
        store: Store,
        shards: Sequence[Shard],
        held: range,
        dead: Ids | None = None,
        settings: DenseSettings | None = None,
    ) -> None:
        """``shards``: all of the build; ``held``: the places of this group's.

        The others' inverted files are each opened once, counted, and let go; flat ones are not opened.
        """
        super().__init__(store, [shards[place] for place in held], dead, settings)
        dead = np.zeros(0, np.int64) if dead is None else dead
        self._elsewhere: dict[str, list[Elsewhere]] = {folder: [] for folder in self._inverted}
        for place, shard in enumerate(shards):
            folder = shard.name.rpartition("/")[0]
            if place in held or folder not in self._inverted:
                continue
            other = open_shard(store, shard.name, shard.offset, dead)
            self._elsewhere[folder].append(Elsewhere(other.offset, other.size, other.live, other.alive))
            self._inverted[folder].sizes = self._inverted[folder].sizes + other.list_sizes()

    def find(
        self, query: Vectors, k: int, allowed: Mask | None = None, everywhere: Collection[str] = ()
    ) -> list[Found]:
        """Candidates for one query, shape (1, dimension); of ``everywhere``'s folders all lists are looked into.

        Raises as :meth:`search`.
        """
        self.search(query, min(k, 0))  # refuses what it would refuse, and finds nothing
        query = np.ascontiguousarray(query, np.float32)
        if not k or not query.any():
            return []
        found = []
        if self._flat:
            scores, ids = best(self._map(lambda shard: search_flat(shard, query, k, allowed), self._flat), 1, k)
            found.append(Found("", 0, k, scores[0], ids[0], None))
        for folder, group in self._inverted.items():
            found.append(self._find_inverted(folder, group, query, k, allowed, folder in everywhere))
        return found

    def _find_inverted(
        self, folder: str, group: Inverted, query: Vectors, k: int, allowed: Mask | None, everywhere: bool
    ) -> Found:
        ranges = group.trained.ranges
        most = k if ranges is None else max(self._settings.refine * k, LEAST_CANDIDATES)
        chosen = [(shard, *shard.selected(allowed)) for shard in group.shards]
        chosen = [(shard, selector, count) for shard, selector, count in chosen if count]
        passing = sum(count for _, _, count in chosen)
        passing += sum(other.passing(allowed) for other in self._elsewhere[folder])
        if not chosen:
            scores, ids = nothing(1, 0)
            return Found(folder, passing, most, scores[0], ids[0], None if ranges is None else scores[0])
        turned = group.trained.turned(query)
        if everywhere:
            near, lists = group.trained.index.quantizer.search(turned, group.trained.lists)
        else:
            near, lists = self._lists(group, turned, passing)
        wanted = k + TIES if ranges is None else most
        parts = self._map(
            lambda part: search_lists(part[0], part[1], turned, lists, near, min(wanted, part[2])), chosen
        )
        scores, ids = best(parts, 1, most)
        if ranges is None:
            return Found(folder, passing, most, scores[0], ids[0], None)
        exact, order = by_rows(group.shards, ranges, query, ids, most)
        by_id = dict(zip(order[0].tolist(), exact[0].tolist(), strict=True))
        return Found(
            folder, passing, most, scores[0], ids[0], np.array([by_id[i] for i in ids[0].tolist()], np.float32)
        )


def merged(groups: Sequence[Sequence[Found]], k: int) -> tuple[Scores, Ids, frozenset[str]]:
    """The k best of all groups, best first, equal scores by id: scores and ids of shape (up to k,).

    And the folders whose nearest lists held fewer than k, and fewer than could be found: where there are
    any, the groups are to be asked again with ``everywhere`` naming them.
    """
    by_folder: dict[str, list[Found]] = {}
    for found in (one for some in groups for one in some):
        by_folder.setdefault(found.folder, []).append(found)
    scores, ids, short = [np.zeros(0, np.float32)], [np.zeros(0, np.int64)], set()
    for folder, parts in by_folder.items():
        of_folder, numbers = _of_folder(parts, k)
        if len(numbers) < min(k, parts[0].passing):
            short.add(folder)
        scores.append(of_folder)
        ids.append(numbers)
    score, number = _first(np.concatenate(scores), np.concatenate(ids), k)
    return score, number, frozenset(short)


def _of_folder(parts: Sequence[Found], k: int) -> tuple[Scores, Ids]:
    scores, ids = (np.concatenate([getattr(part, field) for part in parts]) for field in ("scores", "ids"))
    ranked = np.concatenate([part.scores if part.exact is None else part.exact for part in parts])
    there = np.flatnonzero(ids >= 0)
    scores, ids, ranked = scores[there], ids[there], ranked[there]
    candidates = np.lexsort((ids, -scores))[: parts[0].most]
    return _first(ranked[candidates], ids[candidates], k)


def _first(scores: Scores, ids: Ids, k: int) -> tuple[Scores, Ids]:
    order = np.lexsort((ids, -scores))[:k]
    return scores[order], ids[order]
