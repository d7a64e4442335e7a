"""The tasks that train, write and open a segment's FAISS shards."""

import numpy as np
import pytest

from hybrid_ir.index import dense_shards, layout
from hybrid_ir.index.manifest import Segment
from hybrid_ir.index.plan import BuildPlan
from hybrid_ir.index.shard import SegmentPlan
from hybrid_ir.settings import BuildSettings, DenseSettings
from hybrid_ir.store import Store

COUNTS = (120, 0, 200, 90, 310)


def unit(rows, seed):
    vectors = np.random.default_rng(seed).standard_normal((rows, 24)).astype(np.float32)
    return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)


def made(store, segment_id, settings, seed):
    """A segment's shards, and all of its vectors in the order of its chunks."""
    plan = SegmentPlan(store, segment_id, len(COUNTS), settings)
    vectors = [unit(count, seed + shard) for shard, count in enumerate(COUNTS)]
    for shard, part in enumerate(vectors):
        store.write_array(layout.shard(segment_id, "vectors", shard), part)
    groups = dense_shards.dense_groups(COUNTS, settings.vectors_per_shard)
    trained = dense_shards.trained_once(plan, COUNTS)
    results = [dense_shards.train(plan, COUNTS)] if trained else []
    results += [dense_shards.write(plan, number, group, trained) for number, group in enumerate(groups)]
    files = {name: entry for result in results for name, entry in result.files.items()}
    segment = Segment(
        id=segment_id,
        shards=len(COUNTS),
        chunks_per_shard=COUNTS,
        dense_shards=len(groups),
        documents=1,
        errors=0,
        files=files,
    )
    return segment, np.concatenate(vectors), results


@pytest.mark.parametrize("kind", ["flat", "ivf_sq8", "ivf_rabitq"])
def test_every_chunk_is_found_under_its_number_in_the_build(tmp_path, kind):
    store = Store(str(tmp_path))
    settings = BuildSettings(vectors_per_shard=330, dense=DenseSettings(kind=kind))
    one, first, _ = made(store, "one", settings, 10)
    two, second, _ = made(store, "two", settings, 50)
    vectors = np.concatenate([first, second])
    index = dense_shards.open_dense(BuildPlan(store, "b", settings, (one, two)))
    assert one.dense_shards == 3
    assert len(index) == len(vectors) == 2 * sum(COUNTS)
    assert index.search(vectors, 1)[1][:, 0].tolist() == list(range(len(vectors)))
    only = dense_shards.open_dense(BuildPlan(store, "b", settings, (one, two)), leave_out={"one"})
    assert set(only.search(vectors[:5], 20)[1].ravel().tolist()) <= set(range(len(first), len(vectors)))


@pytest.mark.parametrize("kind", ["flat", "ivf_rabitq"])
def test_a_task_that_is_done_is_not_done_again_and_one_that_was_killed_writes_the_same(tmp_path, kind):
    store, settings = Store(str(tmp_path)), BuildSettings(dense=DenseSettings(kind=kind))
    segment, _, results = made(store, "one", settings, 10)
    assert not any(result.skipped for result in results)
    _, _, again = made(store, "one", settings, 10)
    assert all(result.skipped for result in again)
    for name in store.files("segments/one/done"):
        store.delete(name)
    store.write(layout.shard("one", "dense", 0), b"half a shard")
    repeated, _, results = made(store, "one", settings, 10)
    assert not any(result.skipped for result in results)
    assert repeated.files == segment.files
    assert all(store.sha256(name) == (entry.bytes, entry.sha256) for name, entry in segment.files.items())


def test_a_segment_without_chunks_has_no_lists_to_train(tmp_path):
    plan = SegmentPlan(Store(str(tmp_path)), "one", 2, BuildSettings(dense=DenseSettings(kind="ivf_rabitq")))
    assert not dense_shards.trained_once(plan, (0, 0))
