"""One run of the retrieval benchmark: a set's index, its questions by every method, and what that came to on disk."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path
from typing import Protocol

from hybrid_ir.api import HybridIR
from hybrid_ir.evaluation.retrieval import methods
from hybrid_ir.evaluation.retrieval import report as retrieval_report
from hybrid_ir.evaluation.retrieval.report import Summary
from hybrid_ir.evaluation.sets.retrieval_sets import RetrievalSet
from hybrid_ir.opened import open_index
from hybrid_ir.progress import Reporter
from hybrid_ir.settings import Settings


class Indexer(Protocol):
    """Builds and publishes the index of a corpus at a root, or finds it there, and gives its build's id."""

    def __call__(self, corpus: Sequence[str], root: str, settings: Settings, reporter: Reporter) -> str: ...


def measure(
    chosen: RetrievalSet, out: Path, settings: Settings, rounds: int, reporter: Reporter, indexer: Indexer
) -> Summary:
    """Ask every question of the set by every method, and write rankings, measures and a plot under ``out``."""
    opened = _indexed(chosen, out, settings, reporter, indexer)
    bench = methods.Bench(opened)
    wanted = methods.methods_for(bench.paths, bench.default_paths, bool(chosen.steps), rounds)
    rows: list[methods.Row] = []

    async def run() -> None:
        for question in reporter.follow(f"ask {chosen.name}", chosen.questions, len(chosen.questions)):
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
        reporter.say("No plot: pip install 'hybrid-ir[bench]' brings matplotlib.")
    return summary


def _indexed(chosen: RetrievalSet, out: Path, settings: Settings, reporter: Reporter, indexer: Indexer) -> HybridIR:
    """The set's index, by the settings given and the set's own triples where it has some."""
    corpus, graph = chosen.write(out / chosen.corpus / chosen.name)
    if graph is not None:
        extractor = {"kind": "imported", "path": str(graph)}
        build = settings.build.model_validate({**settings.build.model_dump(), "extractor": extractor})
        settings = settings.model_copy(update={"build": build})
    root = str(out / chosen.corpus / "index")
    return HybridIR(open_index(root, settings, indexer([str(corpus)], root, settings, reporter)))
