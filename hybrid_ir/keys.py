"""API keys of the service: made here, shown once, kept as hashes.

A key holds 256 random bits, so that one SHA-256 of it is enough: there is no dictionary to try.
"""

from __future__ import annotations

import hashlib
import json
import os
import secrets
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field, ValidationError

from hybrid_ir.errors import BadInput, NotFound
from hybrid_ir.folder import locked
from hybrid_ir.records import Record

Scope = Literal["query", "admin"]
PREFIX = "hir"
"""So that a key is recognised where it should not be: in a repository, in a log."""


class ApiKey(Record):
    """What is kept of a key."""

    id: str
    """Stands in logs in the key's place; the key itself begins with it."""
    sha256: str
    scopes: tuple[Scope, ...]
    per_minute: Annotated[int, Field(ge=1)] | None = None
    """Requests; ``None``: no limit."""
    note: str = ""
    """Whose it is, for the person who looks after the file."""
    created: str
    """Day, ISO 8601."""


class KeyFile(Record):
    """The file, as JSON."""

    keys: tuple[ApiKey, ...] = ()

    def by_hash(self) -> Mapping[str, ApiKey]:
        return {key.sha256: key for key in self.keys}


def hashed(secret: str) -> str:
    return hashlib.sha256(secret.encode("utf-8", "surrogatepass")).hexdigest()


def read(path: str | Path) -> KeyFile:
    """Raises NotFound where there is no such file, BadInput where it is not one of keys."""
    try:
        return KeyFile.model_validate_json(Path(path).read_bytes())
    except FileNotFoundError:
        raise NotFound(f"{path}: no such file of keys. Make one: hybrid-ir keys add --file {path}") from None
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(map(str, first["loc"])) or "the file"
        raise BadInput(f"{path}: not a file of keys ({where}: {first['msg']}).") from None
    except OSError as error:
        raise BadInput(f"{path}: cannot be read ({error.strerror}).") from error


def add(
    path: str | Path, scopes: Sequence[Scope] = ("query",), per_minute: int | None = None, note: str = ""
) -> tuple[ApiKey, str]:
    """Add a key to the file, made where there is none; returns what is kept, and the key for the only time."""
    with _alone(Path(path)):
        held = read(path) if Path(path).exists() else KeyFile()
        taken = {key.id for key in held.keys}
        identity = next(name for name in iter(lambda: secrets.token_hex(4), "") if name not in taken)
        secret = f"{PREFIX}_{identity}_{secrets.token_urlsafe(32)}"
        key = ApiKey(
            id=identity,
            sha256=hashed(secret),
            scopes=tuple(dict.fromkeys(scopes)),
            per_minute=per_minute,
            note=note,
            created=datetime.now(UTC).date().isoformat(),
        )
        _write(Path(path), KeyFile(keys=(*held.keys, key)))
    return key, secret


def revoke(path: str | Path, identity: str) -> ApiKey:
    """Take a key out; services that read the file refuse it within seconds."""
    with _alone(Path(path)):
        held = read(path)
        gone = [key for key in held.keys if key.id == identity]
        if not gone:
            raise NotFound(f"{path}: no key {identity!r}; see hybrid-ir keys list --file {path}")
        _write(Path(path), KeyFile(keys=tuple(key for key in held.keys if key.id != identity)))
    return gone[0]


def _alone(path: Path) -> AbstractContextManager[None]:
    """Two who change the file at once come one after the other: neither's change is lost."""
    if not path.parent.is_dir():
        raise BadInput(f"{path}: cannot be written, there is no folder {path.parent}.")
    return locked(path)


def _write(path: Path, held: KeyFile) -> None:
    """Whole or not at all, and for its owner's eyes alone."""
    text = json.dumps(held.model_dump(mode="json"), indent=1) + "\n"
    try:
        handle, name = tempfile.mkstemp(dir=path.parent, prefix=".keys-")  # 0600
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        Path(name).replace(path)
    except OSError as error:
        raise BadInput(f"{path}: cannot be written ({error.strerror}).") from error
