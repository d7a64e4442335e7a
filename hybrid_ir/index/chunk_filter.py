"""A :class:`hybrid_ir.records.Filter` as a mask over a build's chunks."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from fnmatch import fnmatchcase
from threading import Lock

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from hybrid_ir.errors import BadInput
from hybrid_ir.index import layout
from hybrid_ir.index.manifest import Manifest
from hybrid_ir.index.plan import plan_of
from hybrid_ir.records import Filter
from hybrid_ir.store import Store

Mask = NDArray[np.bool_]
Allowed = Callable[[Filter | None], Mask | None]
"""A filter as the chunks it lets through, shape (chunks,); None: all."""

MASKS_KEPT = 8
"""One byte a chunk each."""
LAST_YEAR = 2**31 - 1
"""As the tables hold years."""

_kept: OrderedDict[tuple[str, str, Filter], Mask] = OrderedDict()
_lock = Lock()


def allowed(store: Store, manifest: Manifest, filter: Filter | None) -> Mask | None:
    """Which chunk numbers of the build pass, shape (chunks,), read-only; None: all of them.

    Read from the tables of documents alone, of which a chunk has its source and year; the masks
    of the last few filters are kept.  Dead chunks pass like others: no path finds them.
    """
    if filter is None or filter == Filter():
        return None
    key = (store.uri, manifest.build_id, filter)
    with _lock:
        if key in _kept:
            _kept.move_to_end(key)
            return _kept[key]
    mask = _read(store, manifest, filter)
    mask.flags.writeable = False
    with _lock:
        _kept[key] = mask
        while len(_kept) > MASKS_KEPT:
            _kept.popitem(last=False)
    return mask


def unfiltered(filter: Filter | None) -> Mask | None:
    """An :data:`Allowed` for a path that knows no documents: it refuses what it cannot do."""
    if filter is None or filter == Filter():
        return None
    raise BadInput("This path was opened without its build's documents, so it cannot filter.")


def _read(store: Store, manifest: Manifest, filter: Filter) -> Mask:
    plan = plan_of(store, manifest)
    mask = np.zeros(plan.chunks, bool)
    shards = {segment.id: segment.shards for segment in plan.segments}
    homes = {
        (segment_id, layout.shard_of(document_id, count))
        for segment_id, count in shards.items()
        for document_id in filter.document_ids
    }
    for segment_id, shard, first in plan.shards():
        if filter.document_ids and (segment_id, shard) not in homes:
            continue
        name = layout.shard(segment_id, "documents", shard)
        table = store.read_table(name, ["id", "source", "year", "first_chunk", "chunks"])
        table = table.filter(_passes(table, filter))
        for start, count in zip(table["first_chunk"].to_pylist(), table["chunks"].to_pylist(), strict=True):
            mask[first + start : first + start + count] = True
    return mask


def _passes(table: pa.Table, filter: Filter) -> pa.Array:
    passes = pa.array(np.ones(table.num_rows, bool))
    if filter.document_ids:
        # What is no Unicode (a command line may hold it) is no document's id.
        wanted = pa.array([one for one in filter.document_ids if _is_text(one)], pa.string())
        passes = pc.and_(passes, pc.is_in(table["id"], value_set=wanted))
    if filter.sources:
        sources = pc.unique(table["source"]).to_pylist()
        matching = [one for one in sources if any(fnmatchcase(one, pattern) for pattern in filter.sources)]
        passes = pc.and_(passes, pc.is_in(table["source"], value_set=pa.array(matching, pa.string())))
    for limit, holds in ((filter.year_from, pc.greater_equal), (filter.year_to, pc.less_equal)):
        if limit is not None:
            year = pa.scalar(max(min(limit, LAST_YEAR), -LAST_YEAR), pa.int32())
            passes = pc.and_(passes, pc.fill_null(holds(table["year"], year), False))
    return passes


def _is_text(given: str) -> bool:
    try:
        given.encode()
    except UnicodeEncodeError:
        return False
    return True
