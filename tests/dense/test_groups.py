"""Groups of shards, merged, find what one index over all shards finds, id for id."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from test_inverted import KINDS, clustered, written

from hybrid_ir.dense.groups import DenseGroup, merged
from hybrid_ir.dense.index import DenseIndex
from hybrid_ir.errors import BadInput, Conflict
from hybrid_ir.index.shard_groups import ShardGroup
from hybrid_ir.settings import DenseSettings
from hybrid_ir.store import Store

DEAD = np.arange(100, 400, 3)


def grouped(store, shards, count, settings):
    rows = [n for _, n in shards]
    return [
        DenseGroup(store, [s for s, _ in shards], ShardGroup(i, count).held(rows), DEAD, settings) for i in range(count)
    ]


def ask(groups, query, k, allowed=None):
    """As the service does; with whether the groups were asked again."""
    scores, ids, short = merged([group.find(query, k, allowed) for group in groups], k)
    if short:
        scores, ids, _ = merged([group.find(query, k, allowed, short) for group in groups], k)
    return scores, ids, bool(short)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("count", "probes"), [(2, "auto"), (3, "auto"), (9, "auto"), (3, 3)])
def test_groups_find_what_the_whole_finds(tmp_path, kind, count, probes):
    settings, store = DenseSettings(kind=kind, probes=probes), Store(str(tmp_path))
    shards = written(store, "one", clustered(3000), 5, settings)
    shards += written(store, "two", clustered(700, seed=3), 2, settings, first=3000)  # a second segment
    whole = DenseIndex(store, [shard for shard, _ in shards], DEAD, settings)
    groups = grouped(store, shards, count, settings)
    assert sum(len(group) for group in groups) == len(whole)
    rng = np.random.default_rng(0)
    again = 0
    everything = np.concatenate([clustered(3000), clustered(700, seed=3)])
    for number, query in enumerate(clustered(12, seed=1)):
        likeness = everything @ query
        # The last: few lists then hold none that may be found, and all are looked into.
        allowed = (None, rng.random(3700) < 0.1, likeness < np.median(likeness))[number % 3]
        for k in (1, 10, 150):
            scores, ids = whole.search(query[None], k, allowed)
            there = ids[0] >= 0
            found = ask(groups, query[None], k, allowed)
            assert found[1].tolist() == ids[0, there].tolist()
            assert np.allclose(found[0], scores[0, there], atol=1e-6)
            again += found[2]
    assert again or kind == "flat" or probes == "auto"


def test_equal_scores_come_by_id_across_groups(tmp_path):
    store, settings = Store(str(tmp_path)), DenseSettings(kind="flat")
    shards = written(store, "d", np.tile(clustered(1), (300, 1)), 3, settings)
    found = ask(grouped(store, shards, 3, settings), clustered(1), 250)
    assert found[1].tolist() == [i for i in range(300) if i not in set(DEAD.tolist())][:250]


def test_a_group_refuses_what_the_whole_refuses(tmp_path):
    store, settings = Store(str(tmp_path)), DenseSettings(kind="flat")
    (group, _) = grouped(store, written(store, "d", clustered(40), 2, settings), 2, settings)
    with pytest.raises(Conflict, match="32 dimensions"):
        group.find(np.ones((1, 5), np.float32), 3)
    with pytest.raises(BadInput, match="k is -1"):
        group.find(np.ones((1, 32), np.float32), -1)
    assert ask([group], np.zeros((1, 32), np.float32), 3)[1].tolist() == []


@given(st.lists(st.integers(0, 50), max_size=30), st.integers(1, 9))
def test_every_shard_is_in_one_group(rows, groups):
    held = [list(ShardGroup(number, groups).held(rows)) for number in range(groups)]
    assert [place for some in held for place in some] == list(range(len(rows)))
    if rows and sum(rows):
        most = max(sum(rows[place] for place in some) for some in held)
        assert most <= sum(rows) / groups + max(rows) + 1e-9
