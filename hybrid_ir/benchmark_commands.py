"""``hybrid-ir benchmark …``: quality on public sets.  The front door hands in what builds an index."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from hybrid_ir.errors import BadInput
from hybrid_ir.progress import Reporter
from hybrid_ir.settings import Settings
from hybrid_ir.settings import load as load_settings
from hybrid_ir.terminal import AsJson, Config, print_json

if TYPE_CHECKING:
    from hybrid_ir.evaluation.run.benchmark import Asking
    from hybrid_ir.evaluation.run.retrieval import Indexer

Data = Annotated[Path | None, typer.Option("--data", help="The folder of the data sets; default: HYBRID_IR_DATA.")]


def commands(indexer: Indexer, asking: Callable[[], Asking]) -> typer.Typer:
    """The ``benchmark`` commands, building their indexes with ``indexer`` and asking grids by what ``asking`` gives."""
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
        data: Data = None,
        out: Annotated[Path, typer.Option("--out", help="Where indexes and results go.")] = Path("benchmark-out"),
        limit: Annotated[
            int | None, typer.Option("--limit", min=1, help="So many questions of each set, spread over it.")
        ] = None,
        rounds: Annotated[int, typer.Option("--rounds", min=0, max=10, help="Rounds of the loop; 0: without it.")] = 3,
        config: Config = None,
        json_: AsJson = False,
        quiet: Annotated[bool, typer.Option("--quiet", help="No progress.")] = False,
    ) -> None:
        """Recall of every path, their fusions and the loop.  An index that was built before is used again."""
        from hybrid_ir.evaluation.report import report as reports
        from hybrid_ir.evaluation.run import benchmark as made
        from hybrid_ir.evaluation.run import retrieval as measured
        from hybrid_ir.evaluation.sets import retrieval_sets

        folder = _folder(data)
        settings = load_settings(config) if config else Settings()
        loaded = [retrieval_sets.load(name, folder) for name in dict.fromkeys(sets or retrieval_sets.DEFAULT)]
        reporter, summaries = Reporter(quiet=quiet), {}
        for chosen in loaded:
            request = measured.request(chosen, out, settings, rounds, limit, reporter, indexer)
            done = made.run(request, out / chosen.name, reporter, asking())
            summaries[chosen.name] = done
            if not json_:
                typer.echo(done.text + "\n")
        if json_:
            summary = reports.SUMMARY
            print_json({name: json.loads((Path(done.out) / summary).read_text()) for name, done in summaries.items()})

    @app.command()
    def score(
        dataset: Annotated[
            str,
            typer.Option("--dataset", help="medqa, medmcqa, mmlu, pubmedqa, bioasq, or a file of questions."),
        ],
        predictions: Annotated[
            Path, typer.Option("--predictions", help="A folder of MIRAGE's files, or JSON Lines of id and raw.")
        ],
        data: Data = None,
        out: Annotated[Path | None, typer.Option("--out", help="Write every reading there, as JSON Lines.")] = None,
        distinct: Annotated[
            bool, typer.Option("--distinct", help="Without questions that repeat an earlier one.")
        ] = False,
        strict: Annotated[bool, typer.Option("--strict", help="Anything odd in the files is an error.")] = False,
        json_: AsJson = False,
    ) -> None:
        """Score predictions that were made elsewhere: strictly, and as MIRAGE does."""
        from hybrid_ir.evaluation import predictions as made
        from hybrid_ir.evaluation import rescore
        from hybrid_ir.evaluation.sets import question_sets

        folder = data or os.environ.get("HYBRID_IR_DATA")
        asked = question_sets.load(dataset, folder, Path(), limit=None, strict=strict).with_options()
        asked = asked.distinct() if distinct else asked
        found = rescore.rescore(asked, made.read(predictions, [q.id for q in asked.questions], strict=strict))
        if out is not None:
            lines = "".join(reading.model_dump_json() + "\n" for reading in found.readings)
            out.write_text(lines, encoding="utf-8")
        if json_:
            print_json(found.model_dump(mode="json", exclude={"readings"}))
            return
        typer.echo(asked.summary())
        typer.echo(rescore.table(found))

    @app.command()
    def run(
        out: Annotated[Path, typer.Option("--out", help="The run's folder; the same one goes on where a run stopped.")],
        suite: Annotated[
            str | None, typer.Option("--suite", help="A ready grid: table1, table2, figure3, mirage, local …")
        ] = None,
        grid: Annotated[Path | None, typer.Option("--grid", help="A grid file, in place of --suite.")] = None,
        rerun: Annotated[Path | None, typer.Option("--rerun", help="Repeat the run in this folder.")] = None,
        methods: Annotated[str | None, typer.Option(help="By comma, or all: in place of the grid's.")] = None,
        datasets: Annotated[str | None, typer.Option(help="By comma: in place of the grid's.")] = None,
        root: Annotated[str | None, typer.Option("--root", help="The index to ask.")] = None,
        url: Annotated[str | None, typer.Option("--url", help="A running service, in place of --root.")] = None,
        data: Data = None,
        config: Config = None,
        limit: Annotated[int | None, typer.Option("--limit", help="So many questions of each dataset.")] = None,
        concurrency: Annotated[int | None, typer.Option(help="Questions at a time.")] = None,
        workers: Annotated[int | None, typer.Option(help="Processes with an open index; default: one a CPU.")] = None,
        max_calls: Annotated[
            int | None, typer.Option(help="Stop, resumably, after so many calls of a language model.")
        ] = None,
        max_tokens: Annotated[int | None, typer.Option(help="Stop, resumably, after so many tokens.")] = None,
        max_seconds: Annotated[float | None, typer.Option(help="Stop, resumably, after so many seconds.")] = None,
        strict: Annotated[bool, typer.Option("--strict", help="The first error ends the run.")] = False,
        retry_errors: Annotated[bool, typer.Option("--retry-errors", help="Ask again what ended in an error.")] = False,
        json_: AsJson = False,
        quiet: Annotated[bool, typer.Option("--quiet", help="No progress.")] = False,
    ) -> None:
        """Answers of methods, models and datasets by a grid; resumable at any question; writes a report."""
        from hybrid_ir.evaluation.run import benchmark as made
        from hybrid_ir.evaluation.run.runner import Budget

        folder = data or os.environ.get("HYBRID_IR_DATA")
        request = made.Request(
            suite=suite,
            grid=str(grid) if grid else None,
            rerun=str(rerun) if rerun else None,
            methods=methods,
            datasets=datasets,
            config=config,
            root=root,
            url=url,
            data=str(folder) if folder else None,
            limit=limit,
            strict=strict,
        )
        done = made.run(
            request,
            out,
            Reporter(quiet=quiet),
            asking(),
            budget=Budget(max_calls, max_tokens, max_seconds),
            concurrency=concurrency,
            workers=workers,
            retry_errors=retry_errors,
        )
        if json_:
            print_json(done.model_dump(mode="json", exclude={"text"}))
        else:
            typer.echo(done.text)
        if done.stopped:
            raise typer.Exit(6)

    @app.command()
    def report(run_folder: Annotated[Path, typer.Argument(metavar="RUN")], data: Data = None) -> None:
        """Make the report of a run anew from its rows, also of one that still runs."""
        from hybrid_ir.evaluation.report import report as reports
        from hybrid_ir.evaluation.run import benchmark as made
        from hybrid_ir.evaluation.run import journal
        from hybrid_ir.evaluation.run import run as runs

        found = made.questions_of(runs.read(run_folder), str(data) if data else None)
        rows = runs.ordered(found, journal.read(run_folder / journal.NAME))
        missing = found.total() - len(rows)
        stopped = f"{missing:,} of {found.total():,} questions have no row yet." if missing else ""
        typer.echo(reports.text(reports.write(run_folder, found, rows, stopped), run_folder))

    @app.command()
    def compare(
        run_a: Annotated[Path, typer.Argument(metavar="RUN_A")],
        run_b: Annotated[Path, typer.Argument(metavar="RUN_B")],
        json_: AsJson = False,
    ) -> None:
        """Two runs over the questions that both asked: the difference, and whether it is more than noise."""
        from hybrid_ir.evaluation.report import report as reports

        found = reports.compare_runs(run_a, run_b)
        if json_:
            print_json([one.model_dump(mode="json") for one in found])
        else:
            typer.echo(reports.comparison_text(found, run_a, run_b))

    return app


def _folder(given: Path | None) -> Path:
    """Where the data sets are."""
    if given is not None:
        return given
    if not os.environ.get("HYBRID_IR_DATA"):
        raise BadInput("Name the folder of the data sets with --data PATH, or in the environment as HYBRID_IR_DATA.")
    return Path(os.environ["HYBRID_IR_DATA"])
