"""``hybrid-ir benchmark …``: quality on public sets.  Opens the indexing job, and only inside its commands."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from hybrid_ir.errors import BadInput
from hybrid_ir.settings import Settings
from hybrid_ir.settings import load as load_settings
from hybrid_ir.terminal import AsJson, Config, print_json

if TYPE_CHECKING:
    from hybrid_ir.api import HybridIR
    from hybrid_ir.evaluation.retrieval_report import Summary
    from hybrid_ir.evaluation.retrieval_sets import RetrievalSet
    from ray_jobs.progress import Reporter

app = typer.Typer(help="Measure quality on public question sets.", no_args_is_help=True, rich_markup_mode=None)


@app.callback()
def benchmark() -> None:
    """Measure quality on public question sets."""


@app.command()
def retrieval(
    sets: Annotated[
        list[str] | None,
        typer.Option(
            "--set", help="musique, bc5cdr-gold, bc5cdr, pubmedqa, hotpotqa, 2wikimultihopqa; may be repeated."
        ),
    ] = None,
    data: Annotated[
        Path | None, typer.Option("--data", help="The folder of the data sets; default: HYBRID_IR_DATA.")
    ] = None,
    out: Annotated[Path, typer.Option("--out", help="Where indexes and results go.")] = Path("benchmark-out"),
    limit: Annotated[int | None, typer.Option("--limit", min=1, help="Only the first N questions of each set.")] = None,
    rounds: Annotated[int, typer.Option("--rounds", min=0, max=10, help="Rounds of the loop; 0: without it.")] = 3,
    config: Config = None,
    json_: AsJson = False,
    quiet: Annotated[bool, typer.Option("--quiet", help="No progress.")] = False,
) -> None:
    """Recall of every path, their fusion and the loop.  An index that was built before is used again."""
    from hybrid_ir.evaluation import retrieval_report, retrieval_sets

    folder = data or (Path(os.environ["HYBRID_IR_DATA"]) if os.environ.get("HYBRID_IR_DATA") else None)
    if folder is None:
        raise BadInput("Name the folder of the data sets with --data PATH, or in the environment as HYBRID_IR_DATA.")
    settings = load_settings(config) if config else Settings()
    loaded = [retrieval_sets.load(name, folder) for name in dict.fromkeys(sets or retrieval_sets.DEFAULT)]
    summaries = []
    for chosen in loaded:
        summary = _measured(chosen, out, settings, limit, rounds, quiet)
        summaries.append(summary)
        if not json_:
            typer.echo(retrieval_report.table(summary) + "\n")
    if json_:
        print_json([summary.model_dump(mode="json") for summary in summaries])
    else:
        typer.echo(f"Every question's rankings, and plots: {out}")


def _measured(
    chosen: RetrievalSet, out: Path, settings: Settings, limit: int | None, rounds: int, quiet: bool
) -> Summary:
    from hybrid_ir.evaluation import methods, retrieval_report
    from ray_jobs.progress import Reporter

    reporter = Reporter(quiet=quiet)
    chosen = chosen.limited(limit)
    opened = _indexed(chosen, out, settings, reporter)
    bench = methods.Bench(opened)
    wanted = methods.methods_for(bench.paths, bench.default_paths, bool(chosen.steps), rounds)
    rows: list[methods.Row] = []

    async def run() -> None:
        following = reporter.follow(f"ask {chosen.name}", chosen.questions, len(chosen.questions))
        for question in following:
            rows.extend(await bench.rows(chosen, question, wanted))

    asyncio.run(run())
    rows.sort(key=lambda row: [method.name for method in wanted].index(row.method))
    summary = retrieval_report.summarise(
        chosen.name,
        len(chosen.documents),
        opened.index.build_id,
        rows,
        bench.paths,
        " + ".join(bench.default_paths),
    )
    retrieval_report.write_rows(out / f"{chosen.name}.parquet", rows)
    (out / f"{chosen.name}.json").write_text(summary.model_dump_json(indent=1) + "\n", encoding="utf-8")
    try:
        retrieval_report.plot(out / f"{chosen.name}.png", summary)
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] != "matplotlib":
            raise
        typer.echo("No plot: pip install 'hybrid-ir[bench]' brings matplotlib.", err=True)
    return summary


def _indexed(chosen: RetrievalSet, out: Path, settings: Settings, reporter: Reporter) -> HybridIR:
    """The set's index, built or found, by the settings given and the set's own triples where it has some."""
    from hybrid_ir.api import HybridIR
    from hybrid_ir.opened import open_index
    from ray_jobs.index import index as run_index

    corpus, graph = chosen.write(out / chosen.corpus / chosen.name)
    if graph is not None:
        extractor = {"kind": "imported", "path": str(graph)}
        build = settings.build.model_validate({**settings.build.model_dump(), "extractor": extractor})
        settings = settings.model_copy(update={"build": build})
    root = str(out / chosen.corpus / "index")
    made = run_index([str(corpus)], root, settings, reporter)
    return HybridIR(open_index(root, settings, made.build_id))
