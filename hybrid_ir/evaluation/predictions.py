"""Predictions that were made elsewhere: MIRAGE's files, or JSON Lines of replies."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from hybrid_ir.errors import BadInput, NotFound
from hybrid_ir.evaluation import json_lines
from hybrid_ir.records import Record

SHOWN = 5
"""Ids and problems that an error names."""


class Predictions(Record):
    """The replies to the questions of one set."""

    replies: dict[str, tuple[str, ...]]
    """Question id -> what was said, in order; empty: a question that got no reply."""
    unknown: tuple[str, ...] = ()
    """Ids that no question has."""
    problems: tuple[str, ...] = ()
    """What could not be used, each a sentence."""


def read(path: str | Path, ids: Sequence[str], *, strict: bool = False) -> Predictions:
    """The predictions under a path for the questions with these ids.

    A folder holds a file for each question, ``ID.json`` or ``SPLIT_ID.json``, with a JSON list of
    replies (MIRAGE's form).  A file holds a JSON object a line: ``id`` and ``raw``, a reply or a list.

    Raises NotFound where there is nothing, BadInput where nothing can be used; with ``strict`` also
    for the first problem, and for ids that no question has.
    """
    path = Path(path)
    if not path.exists():
        raise NotFound(f"{path}: no such file or folder of predictions.")
    known = set(ids)
    replies: dict[str, tuple[str, ...]] = {}
    unknown: list[str] = []
    problems: list[str] = []
    for where, identity, said in _folder(path, known) if path.is_dir() else _lines(path):
        problem = ""
        if isinstance(said, Exception):
            problem = f"{where}: {said}."
        elif identity in replies:
            problem = f"{where}: id {identity!r} was given before; the first one counts."
        elif not isinstance(said, list) or not all(isinstance(reply, str) for reply in said):
            problem = f"{where}: a reply or a list of replies is wanted."
        if problem:
            problems.append(problem)
            if strict:
                raise BadInput(problem)
        elif identity not in known:
            unknown.append(identity)
        else:
            replies[identity] = tuple(said)
    if strict and unknown:
        raise BadInput(f"{path}: no question of the set has the id {_some(unknown)}.")
    if not replies:
        why = problems[0] if problems else f"its ids ({_some(unknown)}) are not the set's" if unknown else "it is empty"
        raise BadInput(f"{path}: no prediction that can be used: {why.rstrip('.')}.")
    return Predictions(replies=replies, unknown=tuple(unknown), problems=tuple(problems))


def _folder(path: Path, known: set[str]) -> Iterator[tuple[str, str, Any]]:
    for file in sorted(path.glob("*.json")):
        without_split = file.stem.partition("_")[2]
        identity = without_split if file.stem not in known and without_split else file.stem
        try:
            yield str(file), identity, json.loads(file.read_text(encoding="utf-8"))
        except (OSError, ValueError) as error:
            yield str(file), identity, ValueError(f"not readable JSON ({error})")


def _lines(path: Path) -> Iterator[tuple[str, str, Any]]:
    for number, row in json_lines.read(path):
        where = f"{path}, line {number}"
        if isinstance(row, ValueError):
            yield where, "", row
        elif not isinstance(row, dict):
            yield where, "", ValueError("a JSON object with id and raw is wanted")
        elif missing := [field for field in ("id", "raw") if field not in row]:
            yield where, "", ValueError(f"the field {missing[0]!r} is missing")
        else:
            said = row["raw"]
            yield where, str(row["id"]), [said] if isinstance(said, str) else said


def _some(names: Sequence[str]) -> str:
    more = f" and {len(names) - SHOWN} more" if len(names) > SHOWN else ""
    return ", ".join(repr(name[:50]) for name in names[:SHOWN]) + more
