"""``hybrid-ir …``: the front door.  The only file here that opens jobs and Serve, and only inside its commands."""

from __future__ import annotations

import json
import logging
import os
import sys
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from hybrid_ir.errors import BadInput, HybridIRError
from hybrid_ir.settings import Settings
from hybrid_ir.settings import load as load_settings

if TYPE_CHECKING:
    from hybrid_ir.index.manifest import Manifest

app = typer.Typer(
    name="hybrid-ir",
    help="Medical question answering over a knowledge graph and dense vectors. "
    "A research tool: no medical device, and no advice to patients.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)

EXTRAS = {
    "torch": "local",
    "transformers": "local",
    "spacy": "local",
    "faiss": "cpu",
    "pymetis": "ray",
    "numba": "ray",
    "ray": "ray",
    "botocore": "s3",
}
"""Which extra of this project brings a package that may be missing."""

Root = Annotated[str, typer.Option("--root", help="Where the index lies: a folder, or s3://bucket/prefix.")]
Config = Annotated[str | None, typer.Option("--config", help="A settings file, such as configs/local.yaml.")]
Wait = Annotated[float, typer.Option("--wait", help="Seconds to wait for another job on this root.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print the result as JSON.")]
Paths = Annotated[str | None, typer.Option("--paths", help="Paths to use, by comma: graph,dense.")]


@app.command()
def index(
    root: Root,
    corpus: Annotated[
        list[str] | None,
        typer.Option("--corpus", help="Files, folders or globs of any supported format; may be repeated."),
    ] = None,
    more: Annotated[list[str] | None, typer.Argument(metavar="[PATH]...", help="Further corpus paths.")] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only read, chunk, and say what it will come to.")] = False,
    config: Config = None,
    wait: Wait = 0.0,
    json_: AsJson = False,
    quiet: Annotated[bool, typer.Option("--quiet", help="No progress.")] = False,
) -> None:
    """Build an index of a corpus and publish it.  Run it again after an interruption: it goes on."""
    from ray_jobs.index import dry_run as run_dry
    from ray_jobs.index import index as run_index
    from ray_jobs.progress import Reporter

    settings = load_settings(config) if config else Settings()
    reporter = Reporter(quiet=quiet)
    paths = [*(corpus or []), *(more or [])]
    if not paths:
        raise BadInput("Name the corpus: hybrid-ir index --corpus PATH --root ROOT")
    if dry_run:
        expected = run_dry(paths, settings, reporter).model_dump()
        if json_:
            _print_json(expected)
            return
        for name, value in expected.items():
            typer.echo(f"  {name.replace('_', ' '):<18} {value:>16,}")
        typer.echo("Seconds are of one worker on this machine. Nothing was written.")
        return
    done = run_index(paths, root, settings, reporter, wait)
    _say_build(done, root, json_)
    if not json_:
        typer.echo(f'Ask it something: hybrid-ir ask --root {root} "…"')


@app.command()
def update(
    root: Root,
    add: Annotated[list[str] | None, typer.Option("--add", help="Files, folders or globs; may be repeated.")] = None,
    delete: Annotated[list[str] | None, typer.Option("--delete", help="A document id; may be repeated.")] = None,
    delete_from: Annotated[str | None, typer.Option(help="A file with a document id on each line.")] = None,
    config: Config = None,
    wait: Wait = 0.0,
    json_: AsJson = False,
    quiet: Annotated[bool, typer.Option("--quiet", help="No progress.")] = False,
) -> None:
    """Add, replace or delete documents.  Only what changed is extracted and encoded."""
    from ray_jobs.index import update as run_update
    from ray_jobs.progress import Reporter

    ids = [*(delete or []), *_lines(delete_from)]
    done = run_update(root, add or [], ids, load_settings(config) if config else None, Reporter(quiet=quiet), wait)
    _say_build(done, root, json_)


@app.command()
def compact(root: Root, config: Config = None, wait: Wait = 0.0, json_: AsJson = False) -> None:
    """Merge the segments of many updates into one, without what was deleted."""
    from ray_jobs.index import compact as run_compact
    from ray_jobs.progress import Reporter

    done = run_compact(root, load_settings(config) if config else None, Reporter(), wait)
    _say_build(done, root, json_)


@app.command()
def rollback(
    root: Root,
    build: Annotated[str | None, typer.Argument(help="A build's id; default: the one before the published.")] = None,
    wait: Wait = 0.0,
    json_: AsJson = False,
) -> None:
    """Publish an earlier build again."""
    from hybrid_ir.index import manifest, retention
    from hybrid_ir.lease import held
    from hybrid_ir.store import Store

    store = Store(root)
    manifest.read(store)  # a root without an index is no place for a lease
    with held(store, wait_s=wait):
        _say_build(retention.rollback(store, build), root, json_)


@app.command()
def gc(
    root: Root,
    keep: Annotated[int, typer.Option(help="Builds to keep: the published one and those before it.")] = 2,
    cache: Annotated[bool, typer.Option("--cache", help="Cached model results as well.")] = False,
    yes: Annotated[bool, typer.Option("--yes", help="Delete; without it, only say what would go.")] = False,
    wait: Wait = 0.0,
    json_: AsJson = False,
) -> None:
    """Delete what no kept build needs, after saying what.  Not while a job is running on the root."""
    from hybrid_ir.index import manifest, retention
    from hybrid_ir.lease import held
    from hybrid_ir.store import Store

    store = Store(root)
    manifest.read(store)  # a root without an index is no place for a lease
    with held(store, wait_s=wait) if yes else nullcontext():  # what no job is writing at the moment
        found = retention.garbage(store, keep, cache)
        if json_:
            _print_json({"kept": found.kept, "builds": found.builds, "files": found.files, "bytes": found.bytes})
        else:
            kept, gone = ", ".join(found.kept), ", ".join(found.builds) or "none"
            typer.echo(f"kept builds: {kept}; builds to go: {gone}; {len(found.files)} files, {found.bytes:,} bytes")
        if yes:
            retention.collect(store, found)
    if yes:
        typer.echo("Deleted.", err=True)
    elif found.files:
        typer.echo(f"Nothing was deleted. To delete: hybrid-ir gc --root {root} --keep {keep} --yes", err=True)


@app.command()
def ask(
    question: Annotated[str, typer.Argument(help="The question.")],
    root: Annotated[str | None, typer.Option("--root", help="The index; or give --url.")] = None,
    url: Annotated[str | None, typer.Option("--url", help="Ask a running service instead of an index.")] = None,
    option: Annotated[
        list[str] | None, typer.Option("--option", help="An option of a multiple-choice question, as A=text.")
    ] = None,
    config: Config = None,
    rounds: Annotated[int | None, typer.Option(help="Rounds of the loop.")] = None,
    sub_questions: Annotated[int | None, typer.Option(help="Sub-questions a round.")] = None,
    top_k: Annotated[int | None, typer.Option(help="Chunks of evidence for a sub-question.")] = None,
    deadline_s: Annotated[float | None, typer.Option(help="Seconds for the whole question.")] = None,
    paths: Paths = None,
    json_: AsJson = False,
) -> None:
    """Answer a question from an index, with rounds, evidence and citations."""
    from hybrid_ir import render
    from hybrid_ir.records import Answer

    limits = {"rounds": rounds, "sub_questions": sub_questions, "top_k": top_k, "deadline_s": deadline_s}
    options = _options(option or [])
    chosen = _paths(paths)
    if (root is None) == (url is None):
        raise BadInput("Give either --root (an index) or --url (a running service).")
    if url is not None:
        from hybrid_ir.client import post

        body = {"question": question, "options": options or None, "paths": chosen, **limits}
        answer = Answer.model_validate(post(url, "/v1/answer", {k: v for k, v in body.items() if v is not None}))
    else:
        import hybrid_ir

        opened = hybrid_ir.open(str(root), config)
        answer = opened.ask(question, options, paths=chosen, **limits)  # type: ignore[arg-type]
    if json_:
        _print_json(answer.model_dump(mode="json"))
    else:
        typer.echo(render.answer(answer))


@app.command()
def retrieve(
    query: Annotated[str, typer.Argument(help="What to look for.")],
    root: Root,
    k: Annotated[int, typer.Option("--k", help="How many chunks.")] = 10,
    paths: Paths = None,
    entity: Annotated[list[str] | None, typer.Option(help="Start the graph path here; may be repeated.")] = None,
    config: Config = None,
    json_: AsJson = False,
) -> None:
    """Show the chunks that the two paths bring for a query, and their fused ranking."""
    import hybrid_ir
    from hybrid_ir import render

    found = hybrid_ir.open(root, config).retrieve(query, k, _paths(paths), entity or ())
    if json_:
        _print_json(found.model_dump(mode="json"))
    else:
        typer.echo(render.retrieval(found))


@app.command()
def serve(
    root: Root,
    config: Config = None,
    host: Annotated[str | None, typer.Option(help="Address to listen on; loopback unless told otherwise.")] = None,
    port: Annotated[int | None, typer.Option(help="Port to listen on.")] = None,
    build: Annotated[str | None, typer.Option(help="A build other than the published one.")] = None,
) -> None:
    """Answer questions over HTTP until interrupted."""
    from serve.run import serve_forever

    settings = load_settings(config) if config else None
    serve_forever(
        root, settings=settings, host=host, port=port, build_id=build, say=lambda text: typer.echo(text, err=True)
    )


@app.command()
def inspect(
    root: Root,
    chunk: Annotated[str | None, typer.Option(help="Show one chunk with its mentions and triples.")] = None,
    entity: Annotated[str | None, typer.Option(help="Show one entity with its triples and chunks.")] = None,
    errors: Annotated[bool, typer.Option("--errors", help="List every error record.")] = False,
    documents: Annotated[
        bool, typer.Option("--documents", help="List the documents: id, chunks, title, file.")
    ] = False,
    builds: Annotated[bool, typer.Option("--builds", help="List the builds that rollback can publish.")] = False,
    json_: AsJson = False,
) -> None:
    """Show what an index holds: counts, and what could not be used and why."""
    from hybrid_ir.index import inspection, manifest
    from hybrid_ir.store import Store

    store = Store(root)
    found = manifest.read(store)
    if chunk is not None:
        contents = inspection.chunk(store, found, chunk)
        if json_:
            _print_json(contents.model_dump(mode="json"))
            return
        piece = contents.chunk
        typer.echo(f"{piece.id}  {piece.title}{' > ' + piece.section if piece.section else ''}")
        typer.echo(f"{piece.source} {piece.locator} characters {piece.start}-{piece.end}\n\n{piece.text}\n")
        typer.echo(f"mentions: {', '.join(contents.mentions) or 'none'}")
        for triple in contents.triples:
            typer.echo(f"  ({', '.join(triple)})")
        return
    if entity is not None:
        about = inspection.entity(store, found, entity)
        if json_:
            _print_json(about.model_dump(mode="json"))
            return
        typer.echo(f"{about.name}  synonyms: {', '.join(about.synonyms) or 'none'}")
        for triple in about.triples:
            typer.echo(f"  ({', '.join(triple)})")
        typer.echo(f"chunks: {', '.join(about.chunks)}")
        return
    if documents:
        held = inspection.documents(store, found)
        if json_:
            _print_json(held)
        else:
            for item in held:
                typer.echo(f"{item['id']}\t{item['chunks']}\t{item['title']}\t{item['source']}")
        return
    if builds:
        from hybrid_ir.index import retention

        for made in retention.builds(store):
            mark = "published" if made.build_id == found.build_id else f"before it: {made.parent or 'none'}"
            typer.echo(f"{made.build_id}\t{made.counts.documents} documents\t{mark}")
        return
    rows = inspection.errors(store, found)
    if errors:
        if json_:
            _print_json(rows)
        else:
            for row in rows:
                typer.echo(f"{row['stage']}\t{row['subject']}\t{row['source']}\t{row['reason']}")
        return
    kinds = inspection.error_kinds(rows)
    if json_:
        body = {
            "build_id": found.build_id,
            "counts": found.counts,
            "partitions": found.partitions,
            "resolution": found.resolution,
            "fingerprints": found.fingerprints,
            "errors": kinds,
        }
        _print_json(body)
        return
    typer.echo(f"build {found.build_id} in {root}")
    for name, value in found.counts.model_dump().items():
        typer.echo(f"  {name.replace('_', ' '):<18} {value:>12,}")
    if found.partitions is not None:
        division = found.partitions
        typer.echo(
            f"  graph partitions   {division.count:>12,}  {division.method}, {division.cut:.1%} of edges between them"
        )
    if found.resolution is not None:
        known = "unknown" if found.resolution.recall is None else f"{found.resolution.recall:.1%}"
        typer.echo(f"  synonyms by        {found.resolution.clusters:>12,}  clusters, estimated recall {known}")
    typer.echo(f"  encoder            {found.fingerprints.chunk_encoder['model']}")
    typer.echo(f"  extractor          {found.fingerprints.extractor['kind']}")
    for kind in kinds[:10]:
        typer.echo(f"  {kind.count} x {kind.stage}: {kind.reason}  e.g. {kind.example}")
    if len(kinds) > 10:
        typer.echo(
            f"  … and {len(kinds) - 10} more kinds of error; all of them: hybrid-ir inspect --root {root} --errors"
        )


@app.command()
def verify(root: Root, json_: AsJson = False) -> None:
    """Check every file of the published build against its checksum."""
    from hybrid_ir.index import manifest
    from hybrid_ir.store import Store

    store = Store(root)
    found = manifest.read(store)
    faults = manifest.verify(store, found)
    files = len(found.all_files())
    if json_:
        _print_json({"build_id": found.build_id, "files": files, "faults": faults})
    else:
        for fault in faults:
            typer.echo(fault)
        typer.echo(f"build {found.build_id}: {files} files, {len(faults)} at fault")
    if faults:
        raise typer.Exit(5)


def main() -> None:
    """Run a command; an error meant for a person is one sentence and an exit code of its own."""
    logging.basicConfig(level=logging.WARNING, format="%(levelname)s: %(message)s")
    try:
        app()
    except HybridIRError as error:
        typer.echo(f"error: {error}", err=True)
        sys.exit(error.exit_code)
    except ModuleNotFoundError as error:
        extra = EXTRAS.get((error.name or "").partition(".")[0])
        if extra is None:
            raise
        typer.echo(f"error: This needs the Python package {error.name}: pip install 'hybrid-ir[{extra}]'", err=True)
        sys.exit(2)
    except KeyboardInterrupt:
        typer.echo("Interrupted. Finished work is kept: the same command goes on.", err=True)
        sys.exit(130)
    except BrokenPipeError:  # `hybrid-ir … | head`
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(141)


def _options(given: list[str]) -> dict[str, str]:
    options: dict[str, str] = {}
    for item in given:
        letter, sign, text = item.partition("=")
        if not sign:
            raise BadInput(f"--option {item!r}: write it as A=text.")
        if letter.strip() in options:
            raise BadInput(f"--option {letter.strip()} is given twice.")
        options[letter.strip()] = text.strip()
    return options


def _paths(given: str | None) -> list[str] | None:
    return None if given is None else [name.strip() for name in given.split(",") if name.strip()]


def _lines(path: str | None) -> list[str]:
    if path is None:
        return []
    try:
        return [line.strip() for line in Path(path).read_text(encoding="utf-8").splitlines() if line.strip()]
    except (OSError, UnicodeDecodeError) as error:
        raise BadInput(f"{path}: cannot be read as a list of ids ({error}).") from error


def _say_build(made: Manifest, root: str, as_json: bool) -> None:
    counts = made.counts
    if as_json:
        _print_json({"build_id": made.build_id, "root": root, **counts.model_dump()})
        return
    typer.echo(
        f"Build {made.build_id} in {root}: {counts.documents} documents, {counts.chunks} chunks, "
        f"{counts.triples} triples, {counts.entities} entities, {counts.edges} edges, "
        f"{counts.synonym_edges} synonym pairs, {counts.errors} errors."
    )
    if counts.errors:
        typer.echo(f"See what could not be used, and why: hybrid-ir inspect --root {root}")


def _print_json(value: object) -> None:
    typer.echo(json.dumps(value, ensure_ascii=False, indent=1, default=lambda item: item.model_dump(mode="json")))


if __name__ == "__main__":
    main()
