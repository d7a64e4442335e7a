"""The questions that a grid's datasets name: MIRAGE's sets, sets with gold documents, files."""

from __future__ import annotations

import hashlib
from pathlib import Path

from hybrid_ir.errors import BadInput, NotFound
from hybrid_ir.evaluation import json_lines
from hybrid_ir.evaluation.sets import datasets, hub, medhopqa, retrieval_sets
from hybrid_ir.evaluation.sets.datasets import AnswerSet
from hybrid_ir.evaluation.sets.questions import read_questions
from hybrid_ir.records import Record

OPEN_SETS = ("musique", "hotpotqa", "2wikimultihopqa", "bc5cdr")
"""Open questions with gold documents; they need an index of their own corpus."""


class DatasetRecord(Record):
    """What a run says of a dataset."""

    name: str
    questions: int
    sha256: str
    """Of the questions as they were asked."""
    summary: str
    problems: tuple[str, ...] = ()


def load(name: str, data: str | Path | None, beside: Path, *, limit: int | None, strict: bool) -> AnswerSet:
    """A set by its name, or a file by its path or as ``hub:OWNER/NAME/PATH``: ``.jsonl`` as MIRAGE's questions or as
    ``examples/questions.jsonl``, ``.json#SET`` as MIRAGE's ``benchmark.json``, ``.csv`` as MedHopQA.

    A path is looked for from the working folder, then from ``beside``.  ``limit``: so many of the questions, spread
    over the set.  Raises NotFound and BadInput with a sentence; with ``strict`` also for a line that cannot be used.
    """
    file, _, part = name.partition("#")
    if file.endswith((".jsonl", ".json", ".csv")):
        path = hub.file(file) if file.startswith(hub.PREFIX) else _found(file, beside)
        found = _of_file(path, part or path.stem, strict)
    elif name in (*datasets.FILES, *OPEN_SETS, medhopqa.NAME):
        if data is None:
            raise BadInput(f"The set {name} needs the folder of the data sets: --data PATH, or HYBRID_IR_DATA.")
        if name == medhopqa.NAME:
            found = medhopqa.read(Path(data) / medhopqa.FILE, name, strict=strict)
        elif name in datasets.FILES:
            found = datasets.load(name, data, strict=strict)
        else:
            found = AnswerSet(name, tuple(retrieval_sets.load(name, Path(data)).questions))
    else:
        known = ", ".join((*datasets.FILES, *OPEN_SETS, medhopqa.NAME))
        raise BadInput(
            f"There is no set {name!r}; the sets are {known}, or name a file that ends in .jsonl, .json or .csv."
        )
    if len({question.id for question in found.questions}) < len(found.questions):
        seen: set[str] = set()
        twice = next(q.id for q in found.questions if q.id in seen or seen.add(q.id))  # type: ignore[func-returns-value]
        raise BadInput(f"{name}: the id {twice!r} is given twice.")
    return found.limited(limit)


def record(name: str, found: AnswerSet) -> DatasetRecord:
    """For a run's folder."""
    told = "\n".join(question.model_dump_json(exclude_defaults=True) for question in found.questions)
    return DatasetRecord(
        name=name,
        questions=len(found.questions),
        sha256=hashlib.sha256(told.encode()).hexdigest(),
        summary=found.summary(),
        problems=found.problems,
    )


def _found(name: str, beside: Path) -> Path:
    path = next((one for one in (Path(name), beside / name) if one.is_file()), None)
    if path is None:
        raise NotFound(f"{name}: no such file of questions.")
    return path


def _of_file(path: Path, name: str, strict: bool) -> AnswerSet:
    """By the file's form, which its ending tells."""
    if path.suffix == ".csv":
        return medhopqa.read(path, name, strict=strict)
    if path.suffix == ".json":
        return datasets.read_benchmark(path, name, strict=strict)
    return _project_form(path, strict) if _is_project_form(path) else datasets.read(path, name, strict=strict)


def _is_project_form(path: Path) -> bool:
    """The project's own lines say the question's type; MIRAGE's do not."""
    row = next((row for _, row in json_lines.read(path) if isinstance(row, dict)), {})
    return "type" in row


def _project_form(path: Path, strict: bool) -> AnswerSet:
    questions, problems = read_questions(path)
    if not questions:
        raise datasets.nothing_usable(path, problems)
    if problems and strict:
        raise BadInput(problems[0])
    return AnswerSet(path.stem, tuple(questions), problems=tuple(problems))
