"""The retrieval benchmark: a set's index, and the run that asks it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Protocol

import yaml

from hybrid_ir.evaluation.run import grid as grids
from hybrid_ir.evaluation.run.benchmark import Request
from hybrid_ir.evaluation.sets.retrieval_sets import RetrievalSet
from hybrid_ir.progress import Reporter
from hybrid_ir.settings import Settings

SUITE = "retrieval"


class Indexer(Protocol):
    """Builds and publishes the index of a corpus at a root, or finds it there, and gives its build's id."""

    def __call__(self, corpus: Sequence[str], root: str, settings: Settings, reporter: Reporter) -> str: ...


def request(
    chosen: RetrievalSet,
    out: Path,
    settings: Settings,
    rounds: int,
    limit: int | None,
    reporter: Reporter,
    indexer: Indexer,
) -> Request:
    """Index the set, by its own triples where it has some, and say what is to be asked of it.

    Its files and index stand in ``out/CORPUS``, the settings and the grid beside them; ``rounds``: of the loop, 0
    for none.
    """
    folder = out / chosen.corpus / "files" / chosen.name
    questions, corpus, graph = chosen.write(folder)
    if graph is not None:
        extractor = {"kind": "imported", "path": str(graph)}
        build = settings.build.model_validate({**settings.build.model_dump(), "extractor": extractor})
        settings = settings.model_copy(update={"build": build})
    root = str(out / chosen.corpus / "index")
    indexer([str(corpus)], root, settings, reporter)
    config, grid = folder / "settings.yaml", folder / "grid.yaml"
    _write(config, settings.model_dump(mode="json", exclude_unset=True))
    _write(grid, _grid(chosen.name, questions, rounds))
    return Request(grid=str(grid), config=str(config), root=root, limit=limit)


def _write(path: Path, said: dict[str, object]) -> None:
    path.write_text(yaml.safe_dump(said, sort_keys=False), encoding="utf-8")


def _grid(name: str, questions: Path, rounds: int) -> dict[str, object]:
    """The ready grid over one set's questions."""
    ready = grids.read_grid(grids.suite(SUITE))
    methods = [one for one in ready.methods if rounds or (not one.endswith("_iterated") and one != "hybrid_ir")]
    return {
        "title": f"Retrieval, {name}",
        "answers": False,
        "methods": methods,
        "datasets": [str(questions.absolute())],
        "rounds": sorted({1, rounds}) if rounds else [None],
        "reference": ready.reference,
    }
