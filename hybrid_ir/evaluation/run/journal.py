"""The rows of a run as they come: one JSON line each, on disk before the next question counts as open.

A line that was being written when the process died is no line: it is dropped, and its question asked again.
"""

from __future__ import annotations

import fcntl
import os
from pathlib import Path
from types import TracebackType

from pydantic import ValidationError

from hybrid_ir.errors import BadInput, Conflict, Damaged, NotFound
from hybrid_ir.evaluation.run.rows import Row

NAME = "journal.jsonl"
Key = tuple[str, str]
"""(cell, question)."""


def read(path: Path) -> dict[Key, Row]:
    """The whole rows of a journal; of a question asked again, its last.

    Raises NotFound where there is none, Damaged where a line that is not the last is no row.
    """
    try:
        data = path.read_bytes()
    except FileNotFoundError:
        raise NotFound(f"{path}: no such file; a run writes it.") from None
    rows: dict[Key, Row] = {}
    for number, line in enumerate(data[: data.rfind(b"\n") + 1].splitlines(), start=1):
        try:
            row = Row.model_validate_json(line)
        except ValidationError as error:
            first = error.errors()[0]
            where = ".".join(map(str, first["loc"]))
            raise Damaged(f"{path}, line {number}: no row of a run ({where}: {first['msg']}).") from error
        rows[row.cell, row.id] = row
    return rows


class Journal:
    """Open for one writer: a second one is a Conflict."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / NAME
        try:
            folder.mkdir(parents=True, exist_ok=True)
            self._file = self.path.open("a+b", buffering=0)
        except OSError as error:
            raise BadInput(f"{folder}: results cannot be written there ({error.strerror or error}).") from error
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            self._file.close()
            raise Conflict(f"{folder}: another run is writing there. Wait for it, or name another --out.") from None
        self.rows = read(self.path)
        whole = self.path.read_bytes().rfind(b"\n") + 1
        os.truncate(self._file.fileno(), whole)

    def add(self, *rows: Row) -> None:
        """On disk when this returns; rows that came together share one wait for the disk."""
        self._file.write(b"".join(row.model_dump_json().encode() + b"\n" for row in rows))
        os.fsync(self._file.fileno())
        self.rows.update({(row.cell, row.id): row for row in rows})

    def close(self) -> None:
        self._file.close()

    def __enter__(self) -> Journal:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()
