"""Files of a root that is a folder on this machine."""

from __future__ import annotations

import fcntl
import hashlib
import os
import shutil
import uuid
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

import pyarrow.parquet as pq


class Folder:
    """Missing files are FileNotFoundError, as the system says it; :class:`~hybrid_ir.store.Store` words it."""

    def __init__(self, path: str) -> None:
        self._base = Path(path).expanduser().absolute()

    def path(self, name: str) -> str:
        return str(self._base / name)

    def exists(self, name: str) -> bool:
        return (self._base / name).is_file()

    def files(self, folder: str) -> list[str]:
        found = (path for path in (self._base / folder).rglob("*") if not path.name.startswith(".") and path.is_file())
        return sorted(path.relative_to(self._base).as_posix() for path in found)

    def size(self, name: str) -> int:
        return (self._base / name).stat().st_size

    def remove(self, folder: str) -> None:
        if (self._base / folder).is_dir():
            shutil.rmtree(self._base / folder)

    def delete(self, name: str) -> None:
        path = self._base / name
        path.unlink(missing_ok=True)
        with suppress(OSError):  # not empty, or another job's file has just come
            for folder in path.parents:
                if folder == self._base:
                    break
                folder.rmdir()

    def read(self, name: str) -> bytes:
        return (self._base / name).read_bytes()

    def open(self, name: str) -> BinaryIO:
        return (self._base / name).open("rb")

    def open_parquet(self, name: str) -> pq.ParquetFile:
        return pq.ParquetFile(self.path(name), memory_map=True)

    def write(self, name: str, data: bytes | memoryview) -> None:
        target = self._base / name
        target.parent.mkdir(parents=True, exist_ok=True)
        # The temporary name may be random: it is renamed or removed, never published.
        temporary = target.with_name(f".{target.name}.{uuid.uuid4().hex}")
        try:
            with temporary.open("wb") as stream:
                stream.write(data)
                stream.flush()
                os.fsync(stream.fileno())
            temporary.replace(target)
        except OSError:
            temporary.unlink(missing_ok=True)
            raise

    def local(self, name: str) -> Path:
        return self._base / name

    def read_version(self, name: str) -> tuple[bytes | None, str | None]:
        try:
            data = self.read(name)
        except FileNotFoundError:
            return None, None
        return data, hashlib.sha256(data).hexdigest()

    def replace(self, name: str, data: bytes, version: str | None) -> bool:
        with locked(self._base / name):
            if self.read_version(name)[1] != version:
                return False
            self.write(name, data)
            return True

    def delete_version(self, name: str, version: str) -> bool:
        with locked(self._base / name):
            if self.read_version(name)[1] != version:
                return False
            self.delete(name)
            return True


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """Within: no other process of this machine is within, for this path.  The system unlocks for the dead.

    The lock file beside it stays: removing one that another process has just opened would let two in.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.with_name(f".{path.name}.lock").open("a") as stream:
        fcntl.flock(stream, fcntl.LOCK_EX)
        yield
