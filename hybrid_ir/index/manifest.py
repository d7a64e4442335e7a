"""What a segment and a build promise about their files.  Readers believe nothing else."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import Any

from pydantic import Field, ValidationError

from hybrid_ir.errors import Conflict, Damaged, NotFound
from hybrid_ir.graph.partition_store import Partitions
from hybrid_ir.index import layout
from hybrid_ir.records import Record
from hybrid_ir.settings import BuildSettings
from hybrid_ir.store import FileEntry, Store

FORMAT = 3
"""Raised when a reader of the old files would go wrong."""


class Fingerprints(Record):
    """The models that a build was made with; a query must use the same."""

    extractor: dict[str, str]
    chunk_encoder: dict[str, str]
    entity_encoder: dict[str, str]
    analyzer: dict[str, str] = Field(default_factory=dict)
    """Of the terms; empty where the build has none."""

    def same_models(self, other: Fingerprints) -> bool:
        """Whether an update may add to what ``other`` made: an imported graph's file may have grown since."""
        if self.extractor["kind"] != "imported" or other.extractor["kind"] != "imported":
            return self == other
        return self == other.model_copy(update={"extractor": {**other.extractor, "file": self.extractor["file"]}})


class Segment(Record):
    """What one run added; never changed afterwards."""

    id: str
    shards: int
    chunks_per_shard: tuple[int, ...]
    """Rows of each shard's chunk table; their running sum numbers the chunks."""
    dense_shards: int
    documents: int
    errors: int
    files: dict[str, FileEntry]


class Counts(Record):
    documents: int
    chunks: int
    entities: int
    relations: int
    triples: int
    """Distinct (chunk, head, relation, tail)."""
    edges: int
    """Distinct (head, relation, tail)."""
    synonym_edges: int
    """Unordered pairs."""
    mentions: int
    similarity_links: int
    citation_links: int
    errors: int


class Resolution(Record):
    """How synonyms were looked for where not all pairs were compared."""

    clusters: int
    clusters_per_entity: int
    checked_entities: int
    """Compared with all others."""
    checked_pairs: int
    """Synonym pairs that those have."""
    recall: float | None
    """Share of these pairs that the clusters found; None where there are none."""


class TermTotals(Record):
    """What BM25 divides by, over the live chunks."""

    terms: int
    """Distinct ones."""
    chunks: int
    length: int
    """Terms of all chunks, repeated ones repeatedly."""


class Manifest(Record):
    """Written last.  It names no time and no machine: two undisturbed runs write the same bytes."""

    format: int = FORMAT
    build_id: str
    parent: str | None = None
    """The build that this one changed."""
    settings: BuildSettings
    fingerprints: Fingerprints
    segments: tuple[Segment, ...]
    counts: Counts
    partitions: Partitions | None = None
    """How the graph is divided."""
    resolution: Resolution | None = None
    """None: all pairs of entities were compared."""
    sparse: TermTotals | None = None
    """None: the build has no path ``sparse``."""
    files: dict[str, FileEntry] = Field(default_factory=dict)
    """Of the build itself; the segments list their own."""

    def all_files(self) -> dict[str, FileEntry]:
        """Every file that this build needs, by its name in the root."""
        files = dict(self.files)
        for segment in self.segments:
            files.update(segment.files)
        return files


def digest(*parts: Any) -> str:
    """Twelve hex digits that name a thing by what it was made from."""
    text = json.dumps(parts, sort_keys=True, ensure_ascii=False, default=lambda part: part.model_dump(mode="json"))
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:12]


def publish(store: Store, manifest: Manifest, expected: str | None) -> None:
    """Write the manifest, then point ``CURRENT`` at it: the last two writes of a job.

    ``expected``: the build that ``CURRENT`` named when the job began; None: there was none.  Raises
    :class:`Conflict` where another was published since.
    """
    store.write(layout.manifest(manifest.build_id), (manifest.model_dump_json(indent=1) + "\n").encode())
    data, version = store.read_version(layout.CURRENT)
    found = None if data is None else data.decode("ascii", "replace").strip()
    if found == manifest.build_id:
        return
    if found != expected or not store.replace(layout.CURRENT, f"{manifest.build_id}\n".encode(), version):
        raise Conflict(
            f"{store.uri}: build {current(store)} was published while this job ran, so {manifest.build_id} was not. "
            "It is whole and kept: to publish it, run the same command again."
        )


def current(store: Store) -> str | None:
    """The id of the published build; ``None`` where nothing was published yet."""
    return store.read(layout.CURRENT).decode("ascii", "replace").strip() if store.exists(layout.CURRENT) else None


def read(store: Store, build_id: str | None = None) -> Manifest:
    """The manifest of a build, the published one by default."""
    build_id = build_id or current(store)
    if build_id is None:
        raise NotFound(f"{store.uri} holds no index. Build one: hybrid-ir index --corpus PATH --root {store.uri}")
    name = layout.manifest(build_id)
    if not store.exists(name):
        raise NotFound(f"{store.uri} has no build {build_id}: {name} is missing.")
    data = store.read(name)
    try:
        found = json.loads(data).get("format")
        if found != FORMAT:
            raise Conflict(f"{store.path(name)}: format {found}; this version reads format {FORMAT}. Index again.")
        return Manifest.model_validate_json(data)
    except (ValidationError, ValueError, AttributeError) as error:
        raise Damaged(f"{store.path(name)}: not a manifest ({str(error).splitlines()[0]}).") from error


def verify(store: Store, manifest: Manifest, known: Mapping[str, FileEntry] | None = None) -> list[str]:
    """One sentence for each file that is not what the manifest promises; none: the build is whole.

    ``known``: files that need no second look, where the manifest promises the same of them.
    """
    faults, known = [], known or {}
    for name, entry in sorted(manifest.all_files().items()):
        if known.get(name) == entry:
            continue
        try:
            size, sha256 = store.sha256(name)
        except Damaged as error:
            faults.append(str(error))
            continue
        if size != entry.bytes:
            faults.append(f"{store.path(name)}: {size} bytes, the manifest says {entry.bytes}.")
        elif sha256 != entry.sha256:
            faults.append(f"{store.path(name)}: the content differs from the manifest's checksum.")
    return faults
