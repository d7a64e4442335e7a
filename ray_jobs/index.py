"""The indexing job: a corpus -> a published build, and changes to it.

    python -m ray_jobs.index --corpus PATH… --root ROOT [--config FILE]
    python -m ray_jobs.index --update --root ROOT [--add PATH…] [--delete ID…]

Run it on a laptop, where it starts a Ray of its own, or send it to a cluster with ``ray job
submit``.  Run it again after a kill: finished shards are not done again.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Sequence

from hybrid_ir import encoders
from hybrid_ir import settings as settings_module
from hybrid_ir.corpus.discover import discover
from hybrid_ir.errors import BadInput, Conflict, HybridIRError
from hybrid_ir.extraction.load import load as load_extractor
from hybrid_ir.index import layout, manifest
from hybrid_ir.index.estimate import Estimate, Part, estimate
from hybrid_ir.index.manifest import Manifest, Segment
from hybrid_ir.index.plan import BuildPlan, light, plan_of
from hybrid_ir.index.shard import SegmentPlan
from hybrid_ir.index.tombstones import bury
from hybrid_ir.lease import Holder, held, refuse_if_held
from hybrid_ir.progress import Reporter
from hybrid_ir.settings import BuildSettings, LLMExtractorSettings, Settings
from hybrid_ir.store import Store
from ray_jobs import stages
from ray_jobs.cluster import connected
from ray_jobs.given import corpus_files, fingerprints_of, look_at, segment_id_of, warn_of_strangers
from ray_jobs.pipeline import (
    Work,
    make_build,
    make_segment,
    merge_segments,
    read_parts,
    shard_count,
    write_report,
)


def index(corpus: Sequence[str], root: str, settings: Settings, reporter: Reporter, wait_s: float = 0.0) -> Manifest:
    """Build and publish an index of the corpus; the same corpus and settings give the same build.

    Like the other jobs here it is the root's only writer; it waits up to ``wait_s`` seconds for
    another to end.
    """
    start, store, build = time.monotonic(), Store(root), settings.build
    if not wait_s:
        refuse_if_held(store)  # before models are loaded and files are hashed
    files = corpus_files(corpus, root)
    fingerprints = fingerprints_of(build)
    contents, ranges = look_at(files, build, reporter)
    segment_id = segment_id_of(contents, build, fingerprints)
    build_id = manifest.digest(segment_id, build.graph)
    if manifest.current(store) == build_id and (made := _existing(store, build_id, build_id, reporter)) is not None:
        return made
    work = Work()
    with held(store, settings.job.lease_s, wait_s) as holder, connected(settings.job):
        expected = manifest.current(store)
        # Made before, perhaps by the job that this one waited for.  Not published past a job that still writes.
        if (made := _existing(store, build_id, expected, reporter)) is not None:
            _say_replaced(root, expected, made, reporter)
            return made
        segment_plan = SegmentPlan(store, segment_id, shard_count(build, files), build)
        segment = make_segment(segment_plan, ranges, settings.job, reporter, work)
        warn_of_strangers(segment_plan)
        plan = BuildPlan(store, build_id, build, (light(segment),))
        made = make_build(plan, [segment], fingerprints, settings.job, reporter, work)
        write_report(plan, made, time.monotonic() - start, reporter, work)
        _publish(plan, made, expected, holder, segment_id)
    _say_replaced(root, expected, made, reporter)
    return made


def update(
    root: str,
    add: Sequence[str],
    delete: Sequence[str],
    settings: Settings | None,
    reporter: Reporter,
    wait_s: float = 0.0,
) -> Manifest:
    """Add or replace documents and delete others, as a new segment and a new build over all live ones.

    The build settings are those of the published build; ``settings`` gives only the job's, and where a language
    model is asked.
    Ids to be deleted that are not in the index are named and otherwise ignored.
    """
    start, store, job = time.monotonic(), Store(root), (settings or Settings()).job
    manifest.read(store)  # a root without an index is no place for a lease
    files = corpus_files(add, root) if add else []
    if not files and not delete:
        raise BadInput("Nothing to do: name files with --add or document ids with --delete.")
    work = Work()
    with held(store, job.lease_s, wait_s) as holder, connected(job):
        previous = manifest.read(store)
        build, segments = _asked_today(previous.settings, settings), list(previous.segments)
        fingerprints = fingerprints_of(build)
        if not fingerprints.same_models(previous.fingerprints):
            raise Conflict(
                f"{root} was built with other models than are installed here; index the corpus again "
                "(hybrid-ir index), or install the models it was built with."
            )
        added: Segment | None = None
        segment_id = ""
        if files:
            contents, ranges = look_at(files, build, reporter)
            segment_id = segment_id_of(contents, build, fingerprints)
            held_before = {segment.id for segment in segments}
            if segment_id in held_before and segment_id in _buried(store, previous):
                # The same files once more, after documents of theirs were replaced or deleted: they live again.
                segment_id = manifest.digest("again", segment_id, previous.build_id)
            if segment_id in held_before:
                reporter.say("These files are in the index as they are.")
            else:
                plan = SegmentPlan(store, segment_id, shard_count(build, files), build)
                added = make_segment(plan, ranges, job, reporter, work)
                segments.append(added)
        burial = bury(store, previous, added, delete)
        for document_id in burial.unknown[:10]:
            reporter.say(f"Not in the index: {document_id}")
        if not added and not burial.deleted:
            reporter.say("Nothing changed.")
            return previous
        dead = list(zip(*(burial.table[name].to_pylist() for name in ("segment", "document_id")), strict=True))
        # Where entities keep their partitions, what the build holds depends on the one before.
        divided = previous.partitions is not None and previous.partitions.count > 1
        made_from = [previous.build_id] if divided else []
        build_id = manifest.digest([segment.id for segment in segments], dead, build.graph, *made_from)
        if (made := _existing(store, build_id, previous.build_id, reporter)) is not None:
            return made
        build_plan = BuildPlan(store, build_id, build, tuple(map(light, segments)), previous.build_id)
        if burial.table.num_rows:
            store.write_table(build_plan.tombstones, burial.table)
        made = make_build(build_plan, segments, fingerprints, job, reporter, work)
        write_report(build_plan, made, time.monotonic() - start, reporter, work)
        _publish(build_plan, made, previous.build_id, holder, segment_id)
    documents = added.documents - burial.replaced if added else 0
    reporter.say(f"{documents} documents added, {burial.replaced} replaced, {burial.deleted} deleted.")
    return made


def dry_run(corpus: Sequence[str], settings: Settings, reporter: Reporter) -> Estimate:
    """Read and chunk the corpus, try the models on a sample, and say what indexing will come to."""
    build = settings.build
    _, ranges = look_at(discover(corpus), build, reporter)
    rows = [{"files": [part.model_dump_json() for part in group]} for _, group in read_parts(ranges)]
    with connected(settings.job):
        surveys = stages.run(rows, (stages.survey, build, settings.job.read))
        parts = [
            Part.model_validate_json(row["survey"]) for row in reporter.follow("read and chunk", surveys, len(rows))
        ]
    return estimate(parts, build, load_extractor(build.extractor), encoders.load(build.chunk_encoder))


def compact(root: str, settings: Settings | None, reporter: Reporter, wait_s: float = 0.0) -> Manifest:
    """Merge the published build's segments into one, without what is dead, and publish that.

    No model is asked for anything.  Old segments stay until ``gc``.
    """
    start, store, job, work = time.monotonic(), Store(root), (settings or Settings()).job, Work()
    manifest.read(store)
    with held(store, job.lease_s, wait_s) as holder, connected(job):
        previous = manifest.read(store)
        build, old = previous.settings, plan_of(store, previous)
        if len(previous.segments) == 1 and not store.exists(old.tombstones):
            reporter.say("There is one segment and nothing dead in it; nothing to do.")
            return previous
        segment_id = manifest.digest("compact", previous.build_id)
        shards = max(segment.shards for segment in previous.segments)
        segment = merge_segments(SegmentPlan(store, segment_id, shards, build), old, job, reporter)
        build_id = manifest.digest(segment_id, build.graph)
        if (made := _existing(store, build_id, previous.build_id, reporter)) is not None:
            return made
        # Chunks have new numbers, so nothing but names and vectors is taken over (from the cache).
        plan = BuildPlan(store, build_id, build, (light(segment),))
        made = make_build(plan, [segment], previous.fingerprints, job, reporter, work)
        made = made.model_copy(update={"parent": previous.build_id})
        write_report(plan, made, time.monotonic() - start, reporter, work)
        _publish(plan, made, previous.build_id, holder, segment_id)
    return made


def _asked_today(build: BuildSettings, settings: Settings | None) -> BuildSettings:
    """A build's settings with the endpoint of today's: where a language model is asked is no part of a build."""
    today = settings.build.extractor if settings else None
    if not isinstance(build.extractor, LLMExtractorSettings) or not isinstance(today, LLMExtractorSettings):
        return build
    asked = {"llm": today.llm, "max_calls": today.max_calls, "prompts": today.prompts}
    return build.model_copy(update={"extractor": build.extractor.model_copy(update=asked)})


def _buried(store: Store, made: Manifest) -> set[str]:
    """The segments that have dead documents."""
    name = plan_of(store, made).tombstones
    return set(store.read_table(name, ["segment"])["segment"].to_pylist()) if name in made.files else set()


def _existing(store: Store, build_id: str, expected: str | None, reporter: Reporter) -> Manifest | None:
    """A build that was made before, published again."""
    if not store.exists(layout.manifest(build_id)):
        return None
    made = manifest.read(store, build_id)
    manifest.publish(store, made, expected)
    reporter.say(f"Build {build_id} of these files and settings exists; nothing to do.")
    return made


def _say_replaced(root: str, before: str | None, made: Manifest, reporter: Reporter) -> None:
    if before is not None and before != made.build_id:
        reporter.say(
            f"Build {made.build_id} now stands in place of {before}, with whatever updates that held. "
            f"To go back: hybrid-ir rollback --root {root} {before}"
        )


def _publish(plan: BuildPlan, made: Manifest, expected: str | None, holder: Holder, segment_id: str) -> None:
    """The last step, taken only by a job that still holds its root."""
    holder.check()
    manifest.publish(plan.store, made, expected)
    for finished in (segment_id, plan.build_id):
        if finished:
            plan.store.remove(layout.work(finished))


def parser() -> argparse.ArgumentParser:
    """The job's own command line; ``hybrid-ir index`` and ``update`` are the same with more comfort."""
    parser = argparse.ArgumentParser(prog="python -m ray_jobs.index", description="Index a corpus with Ray Data.")
    parser.add_argument("--corpus", nargs="+", default=[], help="files, folders or globs of any supported format")
    parser.add_argument("--root", required=True, help="where the index lies: a folder or s3://bucket/prefix")
    parser.add_argument("--config", help="a settings file; default: the embedded models")
    parser.add_argument("--dry-run", action="store_true", help="with --corpus: only say what it will come to")
    parser.add_argument("--update", action="store_true", help="change the published build instead of making one")
    parser.add_argument("--add", nargs="+", default=[], help="with --update: files, folders or globs")
    parser.add_argument("--delete", nargs="+", default=[], help="with --update: document ids")
    parser.add_argument("--wait", type=float, default=0.0, help="seconds to wait for another job on this root")
    return parser


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the job; an error meant for a person is one sentence and an exit code of its own."""
    given = parser().parse_args(arguments)
    if given.update == bool(given.corpus):
        parser().error("give either --corpus, or --update with --add or --delete")
    try:
        settings = settings_module.load(given.config) if given.config else Settings()
        if given.dry_run:
            print(dry_run(given.corpus, settings, Reporter()).model_dump_json())
            return 0
        if given.update:
            done = update(given.root, given.add, given.delete, settings, Reporter(), given.wait)
        else:
            done = index(given.corpus, given.root, settings, Reporter(), given.wait)
    except HybridIRError as error:
        print(f"error: {error}", file=sys.stderr)
        return error.exit_code
    print(json.dumps({"build_id": done.build_id, "root": given.root, **done.counts.model_dump()}))
    return 0


if __name__ == "__main__":
    sys.exit(main())
