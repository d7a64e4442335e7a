"""``hybrid-ir …``: the front door.  The only file here that opens jobs and Serve, and only inside its commands."""

from __future__ import annotations

import logging
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from hybrid_ir import benchmark_commands, key_commands, model_commands
from hybrid_ir.errors import BadInput, HybridIRError
from hybrid_ir.graph_commands import prepare_gfm
from hybrid_ir.progress import Reporter
from hybrid_ir.root_commands import gc, inspect, rollback, verify
from hybrid_ir.settings import Settings
from hybrid_ir.settings import load as load_settings
from hybrid_ir.terminal import (
    AsJson,
    Config,
    Documents,
    Paths,
    Root,
    Sources,
    Wait,
    YearFrom,
    YearTo,
    filter_of,
    options_of,
    print_json,
    say_build,
)
from hybrid_ir.trace_commands import replay

if TYPE_CHECKING:
    from hybrid_ir.evaluation.run.benchmark import Asking

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
    "matplotlib": "bench",
    "transformers": "local",
    "spacy": "local",
    "faiss": "cpu",
    "pymetis": "ray",
    "numba": "ray",
    "torch_geometric": "gfm",
    "ray": "ray",
    "botocore": "s3",
}
"""Which extra of this project brings a package that may be missing."""
INTERRUPTED = 130


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

    settings = load_settings(config) if config else Settings()
    reporter = Reporter(quiet=quiet)
    paths = [*(corpus or []), *(more or [])]
    if not paths:
        raise BadInput("Name the corpus: hybrid-ir index --corpus PATH --root ROOT")
    if dry_run:
        expected = run_dry(paths, settings, reporter)
        if json_:
            print_json(expected.model_dump())
            return
        for name, value in expected.model_dump(exclude={"reasons"}).items():
            typer.echo(f"  {name.replace('_', ' '):<18} {value:>16,}")
        for reason in expected.reasons:
            typer.echo(f"Cannot be used: {reason}")
        if expected.errors > len(expected.reasons):
            typer.echo(f"… and {expected.errors - len(expected.reasons):,} more.")
        typer.echo("Seconds are of one worker on this machine. Nothing was written.")
        return
    done = run_index(paths, root, settings, reporter, wait)
    say_build(done, root, json_)
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

    ids = [*(delete or []), *_lines(delete_from)]
    done = run_update(root, add or [], ids, load_settings(config) if config else None, Reporter(quiet=quiet), wait)
    say_build(done, root, json_)


@app.command()
def compact(root: Root, config: Config = None, wait: Wait = 0.0, json_: AsJson = False) -> None:
    """Merge the segments of many updates into one, without what was deleted."""
    from ray_jobs.index import compact as run_compact

    done = run_compact(root, load_settings(config) if config else None, Reporter(), wait)
    say_build(done, root, json_)


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
    trace: Annotated[str | None, typer.Option(help="Write what happens to this file; see replay.")] = None,
    json_: AsJson = False,
) -> None:
    """Answer a question from an index, with rounds, evidence and citations.

    On a terminal each step is shown as it happens.
    """
    from hybrid_ir import live, render
    from hybrid_ir.records import Answer

    limits = {"rounds": rounds, "sub_questions": sub_questions, "top_k": top_k, "deadline_s": deadline_s}
    options = options_of(option or [])
    chosen = _paths(paths)
    if (root is None) == (url is None):
        raise BadInput("Give either --root (an index) or --url (a running service).")
    if url is not None:
        if trace is not None:
            raise BadInput("--trace needs --root: a service keeps no trace for its clients.")
        if config is not None:
            raise BadInput("--config needs --root: a service answers with the settings it was started with.")
        from hybrid_ir.client import post

        body = {"question": question, "options": options or None, "paths": chosen, **limits}
        answer = Answer.model_validate(post(url, "/v1/answer", {k: v for k, v in body.items() if v is not None}))
    else:
        import hybrid_ir

        opened = hybrid_ir.open(str(root), config)
        answer = opened.ask(question, options, paths=chosen, trace=trace, on_event=live.follow(), **limits)  # type: ignore[arg-type]
    if json_:
        print_json(answer.model_dump(mode="json"))
    else:
        typer.echo(render.answer(answer))


@app.command()
def retrieve(
    query: Annotated[str, typer.Argument(help="What to look for.")],
    root: Root,
    k: Annotated[int, typer.Option("--k", help="How many chunks.")] = 10,
    paths: Paths = None,
    entity: Annotated[list[str] | None, typer.Option(help="Start the graph path here; may be repeated.")] = None,
    explain: Annotated[str | None, typer.Option(help="A chunk's id: say what each path saw in it.")] = None,
    source: Sources = None,
    year_from: YearFrom = None,
    year_to: YearTo = None,
    document: Documents = None,
    config: Config = None,
    json_: AsJson = False,
) -> None:
    """Show the chunks that each path brings for a query, side by side, and their fused ranking.

    Without --paths those of the setting fusion.paths are fused, and the others shown beside them.
    """
    import hybrid_ir
    from hybrid_ir import render

    wanted = filter_of(source, year_from, year_to, document)
    opened = hybrid_ir.open(root, config)
    found, why = opened.compare(query, k, _paths(paths), entity or (), explain, wanted)
    if not found.chunks and (passes := opened.index.allowed(wanted)) is not None and not passes.any():
        typer.echo(f"The filter lets no chunk through; see hybrid-ir inspect --root {root} --documents", err=True)
    if json_:
        compared = found.model_dump(mode="json")
        print_json({**compared.pop("retrieval"), "comparison": compared, "explanation": why})
        return
    typer.echo(render.comparison(found))
    if why is not None:
        typer.echo("\n" + render.explanation(why))


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


def _build_id(corpus: Sequence[str], root: str, settings: Settings, reporter: Reporter) -> str:
    from ray_jobs.index import index as run_index

    return run_index(corpus, root, settings, reporter).build_id


def _asking() -> Asking:
    from ray_jobs.benchmark import asked_by

    return asked_by


app.add_typer(model_commands.app, name="models")
app.add_typer(key_commands.app, name="keys")
for command in (inspect, verify, rollback, gc, prepare_gfm, replay):
    app.command()(command)
app.add_typer(benchmark_commands.commands(_build_id, _asking), name="benchmark")


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
    except SystemExit as end:
        if end.code == INTERRUPTED:  # typer makes this of Ctrl-C, without a word
            typer.echo("Interrupted. A job keeps its finished work: the same command goes on.", err=True)
        raise
    except BrokenPipeError:  # `hybrid-ir … | head`
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(141)


def _paths(given: str | None) -> list[str] | None:
    return None if given is None else [name.strip() for name in given.split(",") if name.strip()]


def _lines(path: str | None) -> list[str]:
    if path is None:
        return []
    try:
        return [line.strip() for line in Path(path).read_text(encoding="utf-8").splitlines() if line.strip()]
    except (OSError, UnicodeDecodeError) as error:
        raise BadInput(f"{path}: cannot be read as a list of ids ({error}).") from error


if __name__ == "__main__":
    main()
