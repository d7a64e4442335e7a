"""The two halves of every indexing job: files -> a segment, segments -> a build."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from hybrid_ir.corpus.ranges import RANGE_BYTES
from hybrid_ir.corpus.source import FileRange
from hybrid_ir.errors import BadInput
from hybrid_ir.index import assembly, dense_shards, entity_blocks, entity_parts, layout, manifest, parsed, report, shard
from hybrid_ir.index.manifest import Fingerprints, Manifest, Segment
from hybrid_ir.index.plan import BuildPlan
from hybrid_ir.index.report import Report
from hybrid_ir.index.shard import SegmentPlan, StageResult
from hybrid_ir.progress import Reporter, Tally
from hybrid_ir.records import SourceFile
from hybrid_ir.settings import BuildSettings, JobSettings, LLMExtractorSettings
from hybrid_ir.store import FileEntry
from ray_jobs import stages
from ray_jobs.call_budget import CallBudget
from ray_jobs.llm_extraction import by_llm, check

BYTES_PER_SHARD = 512 * 2**10
"""About 300 abstracts: a minute of a worker with the embedded models, so that two workers end together."""
MOST_SHARDS = 4096
BYTES_PER_READ = RANGE_BYTES
"""Small files are read together, up to this many bytes a task."""
FILES_PER_READ = 200


@dataclass
class Work:
    """What a job asked of the models; the rest came from the cache or was done before."""

    chunks_extracted: int = 0
    chunks_encoded: int = 0
    names_encoded: int = 0


def shard_count(build: BuildSettings, files: Sequence[SourceFile]) -> int:
    """A function of the corpus and the settings alone, so that every machine makes the same shards."""
    if build.shards != "auto":
        return build.shards
    return min(MOST_SHARDS, max(1, -(-sum(file.size for file in files) // BYTES_PER_SHARD)))


def read_parts(ranges: Sequence[FileRange]) -> list[tuple[str, list[FileRange]]]:
    """Files, or ranges of one, to be read by one task, with a name made from theirs."""
    groups: list[list[FileRange]] = []
    held = 0
    for part in ranges:
        if not groups or held + part.bytes > BYTES_PER_READ or len(groups[-1]) == FILES_PER_READ:
            groups.append([])
            held = 0
        groups[-1].append(part)
        held += part.bytes
    return [(manifest.digest([(part.path, part.start, part.end) for part in group]), group) for group in groups]


def make_segment(
    plan: SegmentPlan, ranges: Sequence[FileRange], job: JobSettings, reporter: Reporter, work: Work
) -> Segment:
    """Read, chunk, extract, encode and count terms.  Raises BadInput where too little of the corpus could be used."""
    if isinstance(plan.settings.extractor, LLMExtractorSettings):
        check(plan.settings.extractor)
    parts = [{"part": name, "files": [part.model_dump_json() for part in group]} for name, group in read_parts(ranges)]
    _drain(reporter, "read", parts, (stages.read, plan, job.read), "documents", _tally("read"))
    groups = [{"group": number} for number in range(parsed.group_count(plan.shards))]
    cutting = stages.run(groups, (stages.chunk, plan, job.read))
    done = reporter.follow("chunk", cutting, len(groups), unit="documents", count=_tally("chunk"))
    chunked = _results(({"chunk": result} for row in done for result in row["chunk"]), "chunk")
    _check_errors(plan, "documents", "errors-read", chunked, sum(result.rows for result in chunked))
    shards = [{"shard": number} for number in range(plan.shards)]
    counted: list[StageResult] = []
    if plan.settings.sparse.enabled:
        # Not a third stage of the chain below: each stage there keeps a CPU from the others, to the end.
        counting = stages.run(shards, (stages.sparse, plan, job.read))
        counted = _results(reporter.follow("count terms", counting, len(shards)), "sparse")
    extracting: stages.Stage = (stages.Extract, plan, job.extract)
    budget: CallBudget | None = None
    if isinstance(plan.settings.extractor, LLMExtractorSettings):
        extracting, budget = by_llm(plan, plan.settings.extractor, job, reporter)

    def detail() -> str:
        calls = [f"{budget.made():,} calls to the language model"] if budget is not None else []
        done = [f"extracted {shard.finished(plan, 'extract')} shards", f"encoded {shard.finished(plan, 'encode')}"]
        return ", ".join([*done, *calls])

    rows = list(
        reporter.follow(
            "extract and encode",
            stages.run(shards, extracting, (stages.Encode, plan, job.encode)),
            len(shards),
            detail,
            "chunks",
            _tally("extract", "encode"),
        )
    )
    extracted, encoded = _results(rows, "extract"), _results(rows, "encode")
    work.chunks_extracted += sum(result.computed for result in extracted if not result.skipped)
    work.chunks_encoded += sum(result.computed for result in encoded if not result.skipped)
    for kind, results in (("errors-extract", extracted), ("errors-encode", encoded)):
        failed = sum(result.errors for result in results)
        _check_errors(plan, "chunks", kind, results, sum(result.rows for result in results) - failed)
    return _whole(plan, chunked, [*extracted, *encoded, *counted], job, reporter)


def merge_segments(plan: SegmentPlan, old: BuildPlan, job: JobSettings, reporter: Reporter) -> Segment:
    """One segment of the live rows of a build's segments."""
    shards = [{"shard": number} for number in range(plan.shards)]
    merging = stages.run(shards, (stages.merge, (plan, old), job.read))
    return _whole(plan, _results(reporter.follow("merge", merging, len(shards)), "merge"), [], job, reporter)


def _whole(
    plan: SegmentPlan,
    chunked: Sequence[StageResult],
    later: Sequence[StageResult],
    job: JobSettings,
    reporter: Reporter,
) -> Segment:
    """The segment with its FAISS shards."""
    results = [*chunked, *later]
    counts = tuple(result.chunks for result in chunked)
    groups = dense_shards.dense_groups(counts, plan.settings.vectors_per_shard)
    trained = dense_shards.trained_once(plan, counts)
    if trained:
        training = stages.run([{"counts": list(counts)}], (stages.train_dense, plan, job.read))
        results += _results(reporter.follow("train dense", training, 1), "dense")
    rows = [{"number": number, "group": group, "trained": trained} for number, group in enumerate(groups)]
    writing = stages.run(rows, (stages.write_dense, plan, job.read))
    results += _results(reporter.follow("dense shards", writing, len(rows)), "dense")
    written: dict[str, FileEntry] = {name: entry for result in results for name, entry in result.files.items()}
    return Segment(
        id=plan.segment_id,
        shards=plan.shards,
        chunks_per_shard=counts,
        dense_shards=len(groups),
        documents=sum(result.rows for result in chunked),
        errors=sum(result.errors for result in results),
        files=dict(sorted(written.items())),
    )


def make_build(
    plan: BuildPlan,
    segments: Sequence[Segment],
    fingerprints: Fingerprints,
    job: JobSettings,
    reporter: Reporter,
    work: Work,
) -> Manifest:
    """The graph, its vectors and links over the live chunks of all segments; not yet published."""
    (graph,) = reporter.follow("number entities", map(assembly.build_graph, [plan]), 1)
    parts = entity_parts.write_names(plan, graph.entities)
    entity_parts.mark_new(plan, parts)
    rows = [{"part": part, "parts": parts} for part in range(parts)]
    encoding = stages.run(rows, (stages.EncodeNames, plan, job.encode))
    done = list(
        reporter.follow(
            "encode entities",
            encoding,
            len(rows),
            unit="names",
            count=lambda row: Tally(row["rows"], fresh=row["computed"] > 0),
        )
    )
    work.names_encoded += sum(row["computed"] for row in done)
    _resolve(plan, parts, len(graph.entities), job, reporter)
    shards = [{"segment": segment_id, "shard": number, "first": first} for segment_id, number, first in plan.shards()]
    if plan.settings.graph.chunk_neighbours:
        _drain(reporter, "link chunks", shards, (stages.Neighbours, plan, job.read))
    (made,) = reporter.follow(
        "write graph", (assembly.finish(plan, segments, graph, fingerprints) for _ in range(1)), 1
    )
    return made


def _resolve(plan: BuildPlan, parts: int, entities: int, job: JobSettings, reporter: Reporter) -> None:
    """Find the synonyms: among all pairs of entities, or among those that share a cluster."""
    if not entity_blocks.wanted(plan, entities):
        tiles = [{"row": row, "column": column} for row, column in entity_parts.tiles(plan, parts)]
        _drain(reporter, "entity resolution", tiles, (stages.synonym_tile, plan, job.read))
        return
    _drain(reporter, "cluster entities", [{"parts": parts}], (stages.train_clusters, plan, job.read))
    rows = [{"part": part} for part in range(parts)]
    _drain(reporter, "assign entities", rows, (stages.assign_clusters, plan, job.read))
    tiles = [
        {"parts": parts, "cluster": cluster, "first": first, "second": second}
        for cluster, first, second in entity_blocks.tiles(plan, parts)
    ]
    _drain(reporter, "entity resolution", tiles, (stages.synonym_cluster_tile, plan, job.read))


def write_report(plan: BuildPlan, made: Manifest, seconds: float, reporter: Reporter, work: Work) -> None:
    """What the job did and how long each stage took, beside the manifest."""
    done = Report(
        build_id=made.build_id,
        seconds=round(seconds, 3),
        stages=reporter.seconds,
        chunks_extracted=work.chunks_extracted,
        chunks_encoded=work.chunks_encoded,
        names_encoded=work.names_encoded,
        counts=made.counts,
    )
    report.write(plan.store, made, done)


def _drain(
    reporter: Reporter,
    name: str,
    rows: list[stages.Row],
    stage: stages.Stage,
    unit: str = "",
    count: Callable[[stages.Row], Tally] | None = None,
) -> None:
    for _ in reporter.follow(name, stages.run(rows, stage), len(rows), unit=unit, count=count):
        pass


def _tally(first: str, *more: str) -> Callable[[stages.Row], Tally]:
    """Of a row with stage results: the rows of the first stage, the errors of all."""

    def tally(row: stages.Row) -> Tally:
        found = [[row[column]] if isinstance(row[column], str) else row[column] for column in (first, *more)]
        results = [[StageResult.model_validate_json(data) for data in column] for column in found]
        every = [result for column in results for result in column]
        return Tally(
            rows=sum(result.rows for result in results[0]),
            errors=sum(result.errors for result in every),
            fresh=not all(result.skipped for result in every),
        )

    return tally


def _results(rows: Iterable[stages.Row], column: str) -> list[StageResult]:
    results = [StageResult.model_validate_json(row[column]) for row in rows]
    return sorted(results, key=lambda result: result.shard)


def _check_errors(plan: SegmentPlan, what: str, kind: str, results: Sequence[StageResult], good: int) -> None:
    """End the job where too little of the corpus could be used, saying why."""
    errors = sum(result.errors for result in results)
    share = errors / (good + errors) if good + errors else 1.0
    if good and share <= plan.settings.max_error_share:
        return
    reasons: list[str] = []
    for number in range(plan.shards):
        table = plan.store.read_table(layout.shard(plan.segment_id, kind, number))
        for source, reason in zip(table["source"].to_pylist(), table["reason"].to_pylist(), strict=True):
            reasons.append(reason if source and source in reason else f"{source}: {reason}")
    first = "\n  ".join(sorted(reasons)[:5])
    more = f"\n  … and {len(reasons) - 5} more" if len(reasons) > 5 else ""
    allowed = f" (build.max_error_share allows {plan.settings.max_error_share:.0%})" if good else ""
    summary = f"{errors} of {good + errors} {what} failed" if good else f"No {what[:-1]} could be used"
    raise BadInput(
        f"{summary}{allowed}; nothing was published. The reasons:\n  {first or 'no records in the files'}{more}\n"
        f"What was done is kept for another try; to free it: hybrid-ir gc --root {plan.store.uri} --yes"
    )
