"""The indexing job: a corpus -> a published build.

    python -m ray_jobs.index --corpus PATH… --root ROOT [--config FILE]

Run it on a laptop, where it starts a Ray of its own, or send it to a cluster with ``ray job
submit``.  Run it again after a kill: finished shards are not done again.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import sys
import time
from collections.abc import Sequence
from typing import Any

from hybrid_ir import encoders
from hybrid_ir import settings as settings_module
from hybrid_ir.corpus.discover import discover
from hybrid_ir.corpus.source import open_bytes
from hybrid_ir.errors import BadInput, HybridIRError
from hybrid_ir.extraction.load import load as load_extractor
from hybrid_ir.graph import synonyms
from hybrid_ir.index import assembly, layout, manifest, shard
from hybrid_ir.index.assembly import BuildPlan
from hybrid_ir.index.manifest import Fingerprints, Manifest, Segment
from hybrid_ir.index.shard import SegmentPlan, StageResult
from hybrid_ir.records import SourceFile
from hybrid_ir.settings import BuildSettings, Settings
from hybrid_ir.store import FileEntry, Store
from ray_jobs import stages
from ray_jobs.cluster import connected
from ray_jobs.progress import Reporter

BYTES_PER_SHARD = 2 * 2**20
MOST_SHARDS = 4096
BYTES_PER_READ = 32 * 2**20
"""Small files are read together, up to this many bytes a task."""
FILES_PER_READ = 200


def index(corpus: Sequence[str], root: str, settings: Settings, reporter: Reporter) -> Manifest:
    """Build and publish an index of the corpus; the same corpus and settings give the same build."""
    start = time.monotonic()
    store = Store(root)
    files = discover(corpus)
    contents = {file.path: _sha256(file) for file in reporter.follow("look at files", files, len(files))}
    build = settings.build
    fingerprints = Fingerprints(
        extractor=load_extractor(build.extractor).fingerprint,
        chunk_encoder=encoders.load(build.chunk_encoder).fingerprint,
        entity_encoder=encoders.load(build.entity_encoder).fingerprint,
    )
    irrelevant: dict[str, Any] = {
        "graph": True,
        "max_error_share": True,
        "chunk_encoder": {"device"},
        "entity_encoder": {"device"},
    }
    made_from = build.model_dump(mode="json", exclude=irrelevant)
    segment_id = manifest.digest(shard.VERSION, sorted(contents.items()), made_from, fingerprints)
    build_id = manifest.digest(segment_id, build.graph)
    if store.exists(layout.manifest(build_id)):
        found = manifest.read(store, build_id)
        manifest.publish(store, found)
        reporter.say(f"Build {build_id} of these files and settings exists; nothing to do.")
        return found
    with connected(settings.job):
        plan = SegmentPlan(store, segment_id, shard_count(build, files), build)
        segment = _segment(plan, files, settings, reporter)
        done = _build(BuildPlan(store, build_id, build, (segment,)), fingerprints, settings, reporter)
    report = {"seconds": round(time.monotonic() - start, 3), "stages": reporter.seconds, "files": len(files)}
    store.write(layout.report(build_id), json.dumps({**report, "counts": done.counts.model_dump()}, indent=1).encode())
    manifest.publish(store, done)
    store.remove(layout.work(segment_id))
    store.remove(layout.work(build_id))
    return done


def shard_count(build: BuildSettings, files: Sequence[SourceFile]) -> int:
    """A function of the corpus and the settings alone, so that every machine makes the same shards."""
    if build.shards != "auto":
        return build.shards
    return min(MOST_SHARDS, max(1, -(-sum(file.size for file in files) // BYTES_PER_SHARD)))


def read_parts(files: Sequence[SourceFile]) -> list[tuple[str, list[SourceFile]]]:
    """Files to be read by one task, with a name made from theirs."""
    groups: list[list[SourceFile]] = []
    held = 0
    for file in files:
        if not groups or held + file.size > BYTES_PER_READ or len(groups[-1]) == FILES_PER_READ:
            groups.append([])
            held = 0
        groups[-1].append(file)
        held += file.size
    return [(manifest.digest([file.path for file in group]), group) for group in groups]


def _segment(plan: SegmentPlan, files: Sequence[SourceFile], settings: Settings, reporter: Reporter) -> Segment:
    job = settings.job
    parts = [{"part": name, "files": [file.model_dump_json() for file in group]} for name, group in read_parts(files)]
    for _ in reporter.follow("read", stages.run(parts, (stages.read, plan, job.read)), len(parts)):
        pass
    shards = [{"shard": number} for number in range(plan.shards)]
    chunked = _results(
        reporter.follow("chunk", stages.run(shards, (stages.chunk, plan, job.read)), len(shards)), "chunk"
    )
    _check_errors(plan, chunked)
    rows = list(
        reporter.follow(
            "extract and encode",
            stages.run(shards, (stages.Extract, plan, job.extract), (stages.Encode, plan, job.encode)),
            len(shards),
            lambda: f"extracted {shard.finished(plan, 'extract')} shards, encoded {shard.finished(plan, 'encode')}",
        )
    )
    results = [*chunked, *_results(rows, "extract"), *_results(rows, "encode")]
    written: dict[str, FileEntry] = {name: entry for result in results for name, entry in result.files.items()}
    counts = tuple(result.chunks for result in chunked)
    groups = assembly.dense_groups(counts, plan.settings.vectors_per_shard)
    for number, group in enumerate(reporter.follow("dense shards", groups, len(groups))):
        written |= assembly.write_dense(plan.store, plan.segment_id, number, group, counts)
    return Segment(
        id=plan.segment_id,
        shards=plan.shards,
        chunks_per_shard=counts,
        dense_shards=len(groups),
        documents=sum(result.rows for result in chunked),
        errors=sum(result.errors for result in results),
        files=dict(sorted(written.items())),
    )


def _build(plan: BuildPlan, fingerprints: Fingerprints, settings: Settings, reporter: Reporter) -> Manifest:
    job = settings.job
    (graph,) = reporter.follow("number entities", map(assembly.build_graph, [plan]), 1)
    parts = [{"part": part} for part in range(-(-len(graph.entities) // synonyms.TILE))]
    _drain(reporter, "encode entities", parts, (stages.EncodeNames, plan, job.encode))
    tiles = [{"row": row, "column": column} for row, column in synonyms.tiles(len(graph.entities))]
    _drain(reporter, "entity resolution", tiles, (stages.synonym_tile, plan, job.read))
    shards = [{"segment": segment_id, "shard": number, "first": first} for segment_id, number, first in plan.shards()]
    if plan.settings.graph.chunk_neighbours:
        _drain(reporter, "link chunks", shards, (stages.Neighbours, plan, job.read))
    (done,) = reporter.follow("write graph", (assembly.finish(plan, graph, fingerprints) for _ in range(1)), 1)
    return done


def _drain(reporter: Reporter, name: str, rows: list[stages.Row], *pipeline: tuple) -> None:  # type: ignore[type-arg]
    for _ in reporter.follow(name, stages.run(rows, *pipeline), len(rows)):
        pass


def _results(rows, column: str) -> list[StageResult]:  # type: ignore[no-untyped-def]
    results = [StageResult.model_validate_json(row[column]) for row in rows]
    return sorted(results, key=lambda result: result.shard)


def _check_errors(plan: SegmentPlan, chunked: Sequence[StageResult]) -> None:
    """End the job where too little of the corpus could be used, saying why."""
    documents, errors = sum(result.rows for result in chunked), sum(result.errors for result in chunked)
    share = errors / (documents + errors) if documents + errors else 1.0
    if documents and share <= plan.settings.max_error_share:
        return
    reasons: list[str] = []
    for number in range(plan.shards):
        table = plan.store.read_table(layout.shard(plan.segment_id, "errors-read", number))
        reasons += [f"{row['source']}: {row['reason']}" for row in table.to_pylist()]
    first = "\n  ".join(sorted(reasons)[:5])
    more = f"\n  … and {len(reasons) - 5} more" if len(reasons) > 5 else ""
    what = "No document could be read" if not documents else f"{errors} of {documents + errors} documents failed"
    raise BadInput(f"{what}; nothing was published. The reasons:\n  {first or 'no records in the files'}{more}")


def _sha256(file: SourceFile) -> str:
    with open_bytes(file.path) as stream:
        digest = hashlib.sha256()
        while block := stream.read(1 << 20):
            digest.update(block)
    return digest.hexdigest()


def main(arguments: Sequence[str] | None = None) -> int:
    """The job's own command line; ``hybrid-ir index`` is the same with more comfort."""
    parser = argparse.ArgumentParser(prog="python -m ray_jobs.index", description="Index a corpus with Ray Data.")
    parser.add_argument("--corpus", nargs="+", required=True, help="files, folders or globs of any supported format")
    parser.add_argument("--root", required=True, help="where the index lies: a folder or s3://bucket/prefix")
    parser.add_argument("--config", help="a settings file; default: the embedded models")
    given = parser.parse_args(arguments)
    try:
        settings = settings_module.load(given.config) if given.config else Settings()
        done = index(given.corpus, given.root, settings, Reporter())
    except HybridIRError as error:
        print(f"error: {error}", file=sys.stderr)
        return error.exit_code
    print(json.dumps({"build_id": done.build_id, "root": given.root, **done.counts.model_dump()}))
    return 0


if __name__ == "__main__":
    sys.exit(main())
