"""How vectors are held: flat, or in the lists of an inverted file whose centroids are trained once.

``ivf_sq8``: one byte a dimension, of the distance from the list's centroid.  ``ivf_rabitq``: one
bit a dimension in memory (Gao and Long, "RaBitQ", 2024), and rows of one byte a dimension on disk
that settle the order of the candidates.  All shards of one folder share centroids and quantizer,
so their scores compare and the number of shards changes no result.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import faiss
import numpy as np
from numpy.typing import NDArray

from hybrid_ir.errors import Damaged
from hybrid_ir.settings import DenseSettings
from hybrid_ir.store import FileEntry, Store

Kind = Literal["flat", "ivf_sq8", "ivf_rabitq"]
Vectors = NDArray[np.float32]

POINTS_PER_LIST = 40
"""Vectors that a centroid is trained on."""
ITERATIONS = 10
SEED = 1
DEVIATIONS = 4.0
"""``ivf_sq8``: bytes cover so many standard deviations of a value's distance from its centroid, either side."""
MARGIN = 0.02
"""``ivf_rabitq``: a row's bytes cover the range of the sample and this share of it on either side."""
GROWN = 1.25
"""An update keeps the lists it finds as long as a training would make no more than this times as many, or fewer."""
TRAINED, RANGES = "trained.faiss", "ranges.npy"


@dataclass(frozen=True)
class Trained:
    """What the shards of one folder share."""

    owner: Any
    """Of the memory of the other two, for as long as they are used."""
    index: Any
    """An empty FAISS inverted file with its centroids."""
    rotation: Any
    """The random rotation that RaBitQ asks for; None for ``ivf_sq8``."""
    ranges: Vectors | None
    """Of the rows on disk, shape (2, dimension): a byte's zero, and its step; None for ``ivf_sq8``."""

    @property
    def lists(self) -> int:
        return int(self.index.nlist)

    def turned(self, vectors: Vectors) -> Vectors:
        """Vectors as the inverted file holds them."""
        vectors = np.ascontiguousarray(vectors, np.float32)
        return vectors if self.rotation is None else self.rotation.apply(vectors)


def kind_for(count: int, settings: DenseSettings) -> Kind:
    """The kind that so many vectors together are held in."""
    if settings.kind != "auto":
        return settings.kind if count else "flat"
    if count <= settings.flat_up_to:
        return "flat"
    return "ivf_sq8" if count <= settings.sq8_up_to else "ivf_rabitq"


def lists_for(count: int, kind: Kind, settings: DenseSettings) -> int:
    """``auto``: four times the root of the count, as FAISS advises; half of that for RaBitQ, whose lists are small."""
    times = 2 if kind == "ivf_rabitq" else 4
    wanted = times * int(count**0.5) if settings.lists == "auto" else settings.lists
    return max(1, min(wanted, count))


def sample_rows(count: int, settings: DenseSettings) -> NDArray[np.int64]:
    """The rows to train on, ascending; of all machines and runs the same."""
    wanted = min(count, POINTS_PER_LIST * lists_for(count, kind_for(count, settings), settings))
    return np.sort(np.random.default_rng(SEED).choice(count, wanted, replace=False, shuffle=False))


def train(
    store: Store, folder: str, sample: Vectors, count: int, kind: Kind, settings: DenseSettings
) -> dict[str, FileEntry]:
    """Write what the shards of a folder share; ``sample`` has the rows of :func:`sample_rows`.

    A GPU is used where FAISS has one.  On a CPU the bytes are the same in every run: one thread is
    used, as some of the linear algebra gives other last digits with another number of threads.
    """
    threads = faiss.omp_get_max_threads()
    faiss.omp_set_num_threads(1)
    try:
        return _train(store, folder, sample, count, kind, settings)
    finally:
        faiss.omp_set_num_threads(threads)


def _train(
    store: Store, folder: str, sample: Vectors, count: int, kind: Kind, settings: DenseSettings
) -> dict[str, FileEntry]:
    sample = np.asarray(sample, np.float32)
    sample = sample[np.any(sample, axis=1)]
    dimension = sample.shape[1]
    if not len(sample):
        sample = np.eye(1, dimension, dtype=np.float32)  # nothing but zero vectors: no list will hold any
    lists = min(lists_for(count, kind, settings), len(sample))
    rotation = faiss.RandomRotationMatrix(dimension, dimension) if kind == "ivf_rabitq" else None
    turned = sample
    if rotation is not None:
        rotation.init(SEED)
        turned = rotation.apply(sample)
    centroids = faiss.IndexFlatIP(dimension)
    centroids.add(_centroids(turned, lists))
    files = {}
    if rotation is None:
        index: Any = faiss.IndexIVFScalarQuantizer(
            centroids, dimension, lists, faiss.ScalarQuantizer.QT_8bit, faiss.METRIC_INNER_PRODUCT, True
        )
        index.sq.rangestat, index.sq.rangestat_arg = faiss.ScalarQuantizer.RS_meanstd, DEVIATIONS
        index.train(turned)
    else:
        index = faiss.IndexIVFRaBitQ(centroids, dimension, lists, faiss.METRIC_INNER_PRODUCT)
        index.train(turned)
        index = faiss.IndexPreTransform(rotation, index)
        low, high = sample.min(axis=0), sample.max(axis=0)
        low, high = low - MARGIN * (high - low), high + MARGIN * (high - low)
        files[f"{folder}/{RANGES}"] = store.write_array(f"{folder}/{RANGES}", np.stack([low, (high - low) / 255]))
    name = f"{folder}/{TRAINED}"
    files[name] = store.write_with(name, lambda path: faiss.write_index(index, path), lists)
    return files


def inherit(
    store: Store, folder: str, older: str, count: int, kind: Kind, settings: DenseSettings
) -> dict[str, FileEntry] | None:
    """Take over what an older folder's shards share; None where that was for another kind or another size."""
    if not store.exists(f"{older}/{TRAINED}"):
        return None
    held = open_trained(store, older)
    wanted = lists_for(count, kind, settings)
    if (held.rotation is None) != (kind == "ivf_sq8") or not wanted / GROWN <= held.lists <= wanted * GROWN:
        return None
    names = [(TRAINED, held.lists)] + ([] if held.ranges is None else [(RANGES, len(held.ranges))])
    return {f"{folder}/{name}": store.write(f"{folder}/{name}", store.read(f"{older}/{name}"), n) for name, n in names}


def open_trained(store: Store, folder: str) -> Trained:
    index = read_index(store, f"{folder}/{TRAINED}")
    if not isinstance(index, faiss.IndexPreTransform):
        return Trained(index, index, None, None)
    chain: Any = index.chain
    rotation = faiss.downcast_VectorTransform(chain.at(0))
    ranges = np.asarray(store.array(f"{folder}/{RANGES}"), np.float32)
    return Trained(index, faiss.downcast_index(index.index), rotation, ranges)


def read_index(store: Store, name: str) -> Any:
    """Raises :class:`Damaged` where the file is missing or is no whole FAISS index."""
    try:
        return faiss.read_index(str(store.local(name)))
    except RuntimeError as error:
        raise Damaged(f"{store.path(name)}: not a whole FAISS index; index the corpus again.") from error


def _centroids(sample: Vectors, lists: int) -> Vectors:
    """By spherical k-means: queries find lists by inner product, as they find vectors."""
    kmeans = faiss.Kmeans(
        sample.shape[1],
        lists,
        niter=ITERATIONS,
        seed=SEED,
        spherical=True,
        min_points_per_centroid=1,
        max_points_per_centroid=POINTS_PER_LIST,
        gpu=faiss.get_num_gpus() > 0,
    )
    kmeans.train(np.ascontiguousarray(sample))
    return np.asarray(kmeans.centroids, np.float32)
