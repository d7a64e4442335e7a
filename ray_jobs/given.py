"""What an indexing job is given: files, what they hold, and the models to read them with."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from hybrid_ir import encoders
from hybrid_ir.corpus.discover import discover
from hybrid_ir.corpus.ranges import look
from hybrid_ir.corpus.source import FileRange
from hybrid_ir.errors import BadInput
from hybrid_ir.extraction.imported import ImportedExtractor
from hybrid_ir.extraction.load import load as load_extractor
from hybrid_ir.index import manifest, shard
from hybrid_ir.index.manifest import Fingerprints
from hybrid_ir.progress import Reporter
from hybrid_ir.records import SourceFile
from hybrid_ir.settings import BuildSettings, ImportedExtractorSettings
from hybrid_ir.sparse import analyzer

log = logging.getLogger(__name__)
STRANGERS, STRANGER_CHARS = 5, 80


def corpus_files(corpus: Sequence[str], root: str | None = None) -> list[SourceFile]:
    """The corpus' files; an index that lies inside the corpus is no part of it."""
    files = discover(corpus)
    if root is None or "://" in root:
        return files
    inside = Path(root).expanduser().absolute()
    found = [file for file in files if "://" in file.path or inside not in Path(file.path).absolute().parents]
    if files and not found:
        raise BadInput(f"All files of the corpus lie in the root {root}; name the corpus itself.")
    return found


def fingerprints_of(build: BuildSettings) -> Fingerprints:
    """Of the models that the settings name, as they are installed here."""
    return Fingerprints(
        extractor=load_extractor(build.extractor).fingerprint,
        chunk_encoder=encoders.load(build.chunk_encoder).fingerprint,
        entity_encoder=encoders.load(build.entity_encoder).fingerprint,
        analyzer=analyzer.fingerprint() if build.sparse.enabled else {},
    )


def look_at(
    files: Sequence[SourceFile], build: BuildSettings, reporter: Reporter
) -> tuple[list[tuple[str, str]], list[FileRange]]:
    """((path, hash of its bytes) of every file, what reading tasks read of them)."""
    contents, ranges = [], []
    for file in reporter.follow("look at files", files, len(files)):
        content, parts = look(file, build.reader)
        contents.append((file.path, content))
        ranges += parts
    return contents, ranges


def warn_of_strangers(plan: shard.SegmentPlan) -> None:
    """Name what an imported graph has triples for and the corpus does not hold: they are in no graph."""
    settings = plan.settings.extractor
    if not isinstance(settings, ImportedExtractorSettings):
        return
    shards = (shard.load_chunks(plan, number) for number in range(plan.shards))
    strangers = ImportedExtractor(settings).strangers(shards)
    if strangers:
        named = ", ".join(repr(one[:STRANGER_CHARS]) for one in strangers[:STRANGERS])
        more = f" and {len(strangers) - STRANGERS:,} more" if len(strangers) > STRANGERS else ""
        log.warning("%s: its triples for %s%s are left out: the corpus does not hold them.", settings.path, named, more)


def segment_id_of(contents: Sequence[tuple[str, str]], build: BuildSettings, fingerprints: Fingerprints) -> str:
    irrelevant: dict[str, Any] = {
        "graph": True,
        "max_error_share": True,
        "chunk_encoder": {"device"},
        "entity_encoder": {"device"},
        "extractor": {"llm", "max_calls", "prompts"},  # the fingerprint says of them what a reply depends on
    }
    made_from = build.model_dump(mode="json", exclude=irrelevant)
    return manifest.digest(shard.VERSION, sorted(contents), made_from, fingerprints)
