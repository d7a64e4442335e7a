"""Which shards of a build a group of replicas holds, where they are divided among several."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate


@dataclass(frozen=True)
class ShardGroup:
    """One of several; group 0 of 1 holds everything."""

    number: int
    of: int

    def held(self, rows: Sequence[int]) -> range:
        """The places of this group's shards, given each shard's rows: neighbours, so that each group has about
        equally many rows.  Every shard is in one group; with fewer shards than groups some hold none."""
        total = max(sum(rows), 1)
        # By the middle of each shard; one without rows goes with its neighbour.
        middles = [end - n / 2 for n, end in zip(rows, accumulate(rows), strict=True)]
        groups = [min(int(middle * self.of / total), self.of - 1) for middle in middles]
        places = [place for place, group in enumerate(groups) if group == self.number]
        return range(places[0], places[-1] + 1) if places else range(0)


EVERYTHING = ShardGroup(0, 1)
