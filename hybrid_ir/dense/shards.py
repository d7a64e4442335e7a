"""One FAISS shard: written whole, opened, searched."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import faiss
import numpy as np
from numpy.typing import NDArray

from hybrid_ir.dense.training import Trained, read_index
from hybrid_ir.errors import BadInput, Damaged
from hybrid_ir.store import FileEntry, Store

Vectors = NDArray[np.float32]
Scores = NDArray[np.float32]
Ids = NDArray[np.int64]
Mask = NDArray[np.bool_]

ROWS_AT_A_TIME = 100_000


def write_shard(
    store: Store, name: str, vectors: Vectors, ids: Ids, trained: Trained | None = None
) -> dict[str, FileEntry]:
    """An inner-product index of vectors, shape (n, dimension), under ids, shape (n,): flat, or as ``trained``.

    A zero vector is similar to nothing: it is left out, so that no search finds it.  With
    RaBitQ the ids are 0 to n - 1, the rows of a second file beside ``name``.
    """
    if not np.isfinite(vectors).all():
        raise BadInput(f"{name}: vectors hold NaN or infinite values; the encoder is at fault.")
    vectors, ids = np.ascontiguousarray(vectors, np.float32), np.ascontiguousarray(ids, np.int64)
    rows = np.flatnonzero(vectors.any(axis=1))
    files = {}
    if trained is None:
        index: Any = faiss.IndexIDMap2(faiss.IndexFlatIP(vectors.shape[1]))
    else:
        index = faiss.clone_index(trained.index)
    for start in range(0, len(rows), ROWS_AT_A_TIME):
        some = rows[start : start + ROWS_AT_A_TIME]
        index.add_with_ids(trained.turned(vectors[some]) if trained else vectors[some], ids[some])
    if trained is not None and trained.ranges is not None:
        files[rows_name(name)] = store.write_array(rows_name(name), _bytes(vectors, *trained.ranges))
    files[name] = store.write_with(name, lambda path: _write_index(index, path), len(ids))
    return files


def rows_name(name: str) -> str:
    """The file of a RaBitQ shard's rows, one byte a dimension."""
    return f"{name.removesuffix('.faiss')}.rows.npy"


@dataclass
class OpenShard:
    """``offset`` makes the shard's ids the build's; ``alive`` is None where nothing in it is dead."""

    index: Any
    offset: int
    size: int
    """One more than the largest id."""
    alive: Mask | None
    rows: NDArray[np.uint8]
    """Of RaBitQ, shape (size, dimension); else empty."""

    @cached_property
    def live(self) -> int:
        return self.index.ntotal if self.alive is None else int(self.alive.sum())

    @cached_property
    def _live_selector(self) -> Any:
        return None if self.alive is None else selector(self.alive)

    def list_sizes(self) -> Ids:
        """Vectors in each list of an inverted file, shape (lists,)."""
        lists = self.index.invlists
        return np.fromiter((lists.list_size(number) for number in range(self.index.nlist)), np.int64, self.index.nlist)

    def selected(self, allowed: Mask | None) -> tuple[Any, int]:
        """(FAISS selector or None for all, at most how many rows pass), for a mask over the build."""
        if allowed is None:
            return self._live_selector, self.live
        mask = allowed[self.offset : self.offset + self.size]
        mask = mask if self.alive is None else mask & self.alive
        count = int(mask.sum())
        return (None, self.live) if self.alive is None and count == self.size else (selector(mask), count)


def open_shard(store: Store, name: str, offset: int, dead: Ids) -> OpenShard:
    """``dead``: ids of the build, ascending."""
    index = read_index(store, name)
    size = _size(index)
    rows = np.zeros((0, index.d), np.uint8)
    if isinstance(index, faiss.IndexIVFRaBitQ):
        rows = store.array(rows_name(name))
        if rows.ndim != 2 or rows.shape[1] != index.d or len(rows) < size:
            raise Damaged(f"{store.path(rows_name(name))}: not the rows of {name}; index the corpus again.")
        size = len(rows)
    first, last = np.searchsorted(dead, [offset, offset + size])
    alive = None
    if last > first:
        alive = np.ones(size, bool)
        alive[dead[first:last] - offset] = False
    return OpenShard(index, offset, size, alive, rows)


def share_centroids(shard: OpenShard, trained: Trained) -> None:
    """Let a shard use the centroids that all shards of its folder share; ``trained`` must outlive it."""
    shard.index.own_fields = False
    shard.index.quantizer = trained.index.quantizer


def selector(mask: Mask) -> Any:
    bitmap: Any = faiss.IDSelectorBitmap
    return bitmap(np.packbits(mask, bitorder="little"))


def _bytes(vectors: Vectors, low: Vectors, step: Vectors) -> NDArray[np.uint8]:
    """Each value as the nearest of 256 steps of its dimension's range."""
    codes = np.empty(vectors.shape, np.uint8)
    scale = np.divide(1, step, out=np.zeros_like(step), where=step > 0)
    for start in range(0, len(vectors), ROWS_AT_A_TIME):
        some = slice(start, start + ROWS_AT_A_TIME)
        codes[some] = np.clip(np.rint((vectors[some] - low) * scale), 0, 255)
    return codes


def _write_index(index: Any, path: str) -> None:
    """Without centroids: they are in the file that all shards share."""
    if not isinstance(index, faiss.IndexIVF):
        faiss.write_index(index, path)
        return
    centroids, none = index.quantizer, faiss.IndexFlatIP(index.d)
    index.quantizer = none
    try:
        faiss.write_index(index, path)
    finally:
        index.quantizer = centroids


def _size(index: Any) -> int:
    """One more than the largest id."""
    if not index.ntotal:
        return 0
    if isinstance(index, faiss.IndexIDMap2):
        return int(faiss.vector_to_array(index.id_map).max()) + 1
    lists = index.invlists
    sizes = [(number, lists.list_size(number)) for number in range(index.nlist)]
    return 1 + max(int(faiss.rev_swig_ptr(lists.get_ids(number), size).max()) for number, size in sizes if size)
