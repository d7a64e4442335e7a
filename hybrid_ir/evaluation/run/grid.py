"""A grid of methods x models x datasets x rounds x top-k x seeds, from one YAML file, and its cells."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import yaml
from pydantic import BeforeValidator, Field, ValidationError

from hybrid_ir.errors import BadInput, NotFound
from hybrid_ir.evaluation.report.paper import Table
from hybrid_ir.index.manifest import digest
from hybrid_ir.reasoning.flows import BASES
from hybrid_ir.records import Record
from hybrid_ir.settings import Settings, load

CONFIGS = Path(__file__).parents[3] / "configs"
"""Where the project's own grids and methods lie, in a checkout."""
GOLD_STEPS = "gold_sub_questions"
"""The method of retrieving by the sub-questions that a set has itself: a ceiling, where nothing is answered."""
SERVED = "served"
"""The method of a running service: whatever it was started with."""
DEADLINE_S = 3600.0
"""Of a question: a busy machine must not change an answer.  A grid may set another."""


def _listed(value: Any) -> Any:
    return value if isinstance(value, list | tuple) else [value]


class Grid(Record):
    """What a grid file says.  A single value may stand in the place of a list."""

    name: str
    title: str = ""
    methods: Annotated[tuple[str, ...], BeforeValidator(_listed), Field(min_length=1)]
    """Names of files in ``configs/methods``, or paths; ``served``: what a service does, by ``--url`` alone;
    ``gold_sub_questions``: see ``answers``."""
    models: Annotated[dict[str, str | None], Field(min_length=1)] = Field(default={"default": None})
    """Name -> a settings file that is laid over the configuration, beside the grid; none: as configured."""
    datasets: Annotated[tuple[str, ...], BeforeValidator(_listed), Field(min_length=1)]
    rounds: Annotated[tuple[Annotated[int, Field(ge=1, le=10)] | None, ...], BeforeValidator(_listed)] = (None,)
    """``null``: the method's own.  Only methods that iterate are run for each."""
    top_k: Annotated[tuple[Annotated[int, Field(ge=1, le=100)] | None, ...], BeforeValidator(_listed)] = (None,)
    seeds: Annotated[tuple[int, ...], BeforeValidator(_listed)] = (0,)
    """Of the language model; the extractive reasoner has none and is run once."""
    reference: str = "hybrid_ir"
    """The method that the others are compared with, where it is among them; else the first."""
    answers: bool = True
    """``false``: nothing is answered, retrieval alone is measured; a method without rounds asks the question once."""
    options_in_query: bool = False
    """Retrieve with the options' texts behind the question; off as in MIRAGE, where options are not retrieved with."""
    deadline_s: Annotated[float, Field(gt=0)] = DEADLINE_S
    paper: Table = ""
    """The table of the paper whose numbers the report shows beside: ``table1`` or ``table2``."""


class Cell(Record):
    """One combination; what is compared."""

    method: str
    model: str
    dataset: str
    rounds: int | None = None
    top_k: int | None = None
    seed: int = 0

    @property
    def key(self) -> str:
        """The same for the same combination, in every run."""
        rounds, top_k = self.rounds or "own", self.top_k or "own"
        return f"{self.method}/{self.model}/{self.dataset}/rounds={rounds}/k={top_k}/seed={self.seed}"

    @property
    def label(self) -> str:
        """For a table row: what differs within a dataset."""
        more = [f"{self.rounds} round{'s' if self.rounds > 1 else ''}"] if self.rounds else []
        more += [f"k = {self.top_k}"] if self.top_k else []
        more += [f"seed {self.seed}"] if self.seed else []
        return self.method + (f" ({', '.join(more)})" if more else "")


class Planned(Record):
    """A cell and the settings it is run by."""

    cell: Cell
    settings: Settings


class Plan(Record):
    """All that a grid comes to."""

    planned: tuple[Planned, ...]
    left_out: tuple[str, ...] = ()
    """Methods that cannot be run by a model, each a sentence."""


def read_grid(path: str | Path) -> Grid:
    """Read a grid file.  Raises NotFound or BadInput with a sentence that names file and field."""
    path = Path(path)
    try:
        raw = yaml.safe_load(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise NotFound(f"{path}: no such grid file.") from None
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        raise BadInput(f"{path}: not a readable YAML file ({error}).") from error
    if not isinstance(raw, dict):
        raise BadInput(f"{path}: expected a grid as `key: value`, found a {type(raw).__name__}.")
    try:
        return Grid.model_validate({"name": path.stem, **raw})
    except ValidationError as error:
        known = ", ".join(Grid.model_fields)
        lines = "; ".join(
            f"{'.'.join(map(str, one['loc']))}: "
            + (f"there is no such field (there are {known})" if one["type"] == "extra_forbidden" else one["msg"])
            for one in error.errors()
        )
        raise BadInput(f"{path}: {lines}.") from error


def suite(name: str) -> Path:
    """The file of a ready grid.  Raises BadInput that lists those there are."""
    found = {path.stem: path for folder in _folders("grids") for path in sorted(folder.glob("*.yaml"))}
    if name not in found:
        raise BadInput(f"There is no suite {name!r}; there are {', '.join(sorted(found)) or 'none here'}.")
    return found[name]


def method_files() -> dict[str, Path]:
    """Name -> file of every ready method."""
    return {path.stem: path for folder in reversed(_folders("methods")) for path in sorted(folder.glob("*.yaml"))}


def plan(grid: Grid, beside: Path, config: str | Path | None, *, served: bool = False, strict: bool = False) -> Plan:
    """The cells of a grid, each with its settings.

    ``beside``: the folder that paths in the grid start from.  ``config``: what methods and models are laid over.
    ``served``: the questions go to a running service.  Raises BadInput for what does not exist, and with ``strict``
    for a method that a model cannot run.
    """
    for names in (grid.methods, grid.datasets):
        shorts = [short(name) for name in dict.fromkeys(names)]
        if len(set(shorts)) < len(shorts):
            raise BadInput(f"The grid {grid.name} has two files of one name: {', '.join(names)}. Rename one of them.")
    if served and not grid.answers:
        raise BadInput(f"The grid {grid.name} measures retrieval (answers: false), which needs --root and no service.")
    if GOLD_STEPS in grid.methods and grid.answers:
        raise BadInput(f"The method {GOLD_STEPS} only retrieves: it needs answers: false in the grid.")
    planned: dict[str, Planned] = {}
    left_out: list[str] = []
    files = {name: _method(name, beside, served) for name in dict.fromkeys(grid.methods)}
    for (model, model_file), (method, method_file) in itertools.product(grid.models.items(), files.items()):
        over = [*([beside / model_file] if model_file else []), *([method_file] if method_file else [])]
        layers = [*([config] if config else []), *over]
        settings = load(layers[0], *layers[1:]) if layers else Settings()
        if settings.loop.flow in BASES and settings.reasoner.kind == "extractive":
            left_out.append(
                f"{method} needs a language model, which {model} is not: name one in the settings (reasoner.kind: llm)."
            )
            if strict:
                raise BadInput(left_out[-1])
            continue
        for cell in _cells(grid, method, model, settings, served):
            planned.setdefault(cell.key, Planned(cell=cell, settings=_changed(settings, cell, grid)))
    if not planned:
        raise BadInput(f"The grid {grid.name} has nothing that can be run. {' '.join(left_out)}".strip())
    return Plan(planned=tuple(sorted(planned.values(), key=_place(grid))), left_out=tuple(left_out))


def short(name: str) -> str:
    """What a method or dataset is called in tables: of a path, the file's name, or that of the set within it."""
    file, _, part = name.partition("#")
    if part:
        return part
    return Path(file).stem if file.endswith((".yaml", ".yml", ".jsonl", ".json", ".csv")) else name


def fingerprint(planned: Planned) -> str:
    """Of the settings that an answer depends on: not of the job's nor the service's."""
    return digest(planned.settings.model_dump(mode="json", exclude={"job", "serve"}))


def _cells(grid: Grid, method: str, model: str, settings: Settings, served: bool) -> list[Cell]:
    """What does not apply to a method is not varied for it."""
    iterates = method != GOLD_STEPS and (served or settings.loop.flow in ("hybrid", "imedrag"))
    retrieves = served or BASES.get(settings.loop.flow) not in ("memory", "memory_steps")
    rounds = grid.rounds if iterates else (None,)
    top_k = grid.top_k if retrieves else (None,)
    seeds = grid.seeds if settings.reasoner.kind == "llm" else grid.seeds[:1]
    return [
        Cell(method=short(method), model=model, dataset=short(dataset), rounds=r, top_k=k, seed=seed)
        for dataset, r, k, seed in itertools.product(dict.fromkeys(grid.datasets), rounds, top_k, seeds)
    ]


def _changed(settings: Settings, cell: Cell, grid: Grid) -> Settings:
    loop = settings.loop.changed(rounds=cell.rounds, top_k=cell.top_k, deadline_s=grid.deadline_s)
    reasoner = settings.reasoner
    if reasoner.kind == "llm":
        reasoner = reasoner.model_copy(update={"llm": reasoner.llm.model_copy(update={"seed": cell.seed})})
    return settings.model_copy(update={"loop": loop, "reasoner": reasoner})


def _place(grid: Grid) -> Any:
    """By model and dataset, then as the grid lists the methods: what is compared stands together."""
    models, datasets = list(grid.models), list(map(short, grid.datasets))
    methods = list(map(short, grid.methods))

    def place(one: Planned) -> tuple[int, ...]:
        cell = one.cell
        names = models.index(cell.model), datasets.index(cell.dataset), methods.index(cell.method)
        return (*names, cell.rounds or 0, cell.top_k or 0, cell.seed)

    return place


def _method(name: str, beside: Path, served: bool) -> Path | None:
    if served or name == SERVED:
        if served != (name == SERVED):
            raise BadInput(
                f"The method {name!r} cannot be run {'by' if served else 'without'} a service: with --url the one "
                f"method is {SERVED!r}, which is what that service was started with."
            )
        return None
    if name == GOLD_STEPS:
        return None
    if name.endswith((".yaml", ".yml")):
        return beside / name
    ready = method_files()
    if name not in ready:
        raise BadInput(f"There is no method {name!r}; there are {', '.join(sorted(ready))}, or name a .yaml file.")
    return ready[name]


def _folders(kind: str) -> Sequence[Path]:
    """The working folder's ``configs`` before the project's own."""
    found = [folder for folder in (Path("configs") / kind, CONFIGS / kind) if folder.is_dir()]
    return list(dict.fromkeys(folder.resolve() for folder in found))
