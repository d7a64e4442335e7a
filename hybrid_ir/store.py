"""A root of files: a local folder or an object store, behind one small class.

Every write replaces the whole file at once, so a reader or a resumed job never sees half of
one, and returns a :class:`FileEntry`, which is what a manifest promises about the file.
"""

from __future__ import annotations

import hashlib
import io
import os
import tempfile
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.fs as pafs
import pyarrow.parquet as pq
from numpy.typing import NDArray

from hybrid_ir.errors import BadInput, Damaged, NotFound
from hybrid_ir.records import Record

ROWS_PER_GROUP = 256
"""Small row groups: serving reads single chunks, and a group is the least that can be read."""


class FileEntry(Record):
    """One file of a segment or build."""

    rows: int
    bytes: int
    sha256: str


class Store:
    """Names are relative to the root, with forward slashes."""

    def __init__(self, uri: str) -> None:
        self.uri = uri
        if "://" in uri:
            try:
                self._fs, self._base = pafs.FileSystem.from_uri(uri)
            except (pa.ArrowInvalid, OSError) as error:
                raise BadInput(f"{uri}: not a root that can be opened ({error}).") from error
        else:
            self._fs, self._base = pafs.LocalFileSystem(), str(Path(uri).expanduser().absolute())
        self._is_local = isinstance(self._fs, pafs.LocalFileSystem)
        self._cache: Path | None = None

    def __reduce__(self) -> tuple[type[Store], tuple[str]]:
        return Store, (self.uri,)

    def path(self, name: str) -> str:
        return f"{self._base}/{name}"

    def exists(self, name: str) -> bool:
        return bool(self._fs.get_file_info(self.path(name)).type == pafs.FileType.File)

    def files(self, folder: str) -> list[str]:
        """Names of all files below a folder, sorted; none where there is no such folder."""
        selector = pafs.FileSelector(self.path(folder), recursive=True, allow_not_found=True)
        start = len(self._base) + 1
        return sorted(
            info.path[start:]
            for info in self._fs.get_file_info(selector)
            if info.type == pafs.FileType.File and not info.base_name.startswith(".")
        )

    def remove(self, folder: str) -> None:
        if self._fs.get_file_info(self.path(folder)).type == pafs.FileType.Directory:
            self._fs.delete_dir(self.path(folder))

    def read(self, name: str) -> bytes:
        try:
            with self._fs.open_input_stream(self.path(name)) as stream:
                return bytes(stream.read())
        except FileNotFoundError:
            raise NotFound(f"{self.path(name)}: no such file.") from None

    def write(self, name: str, data: bytes, rows: int = 0) -> FileEntry:
        if self._is_local:
            target = Path(self.path(name))
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
        else:
            with self._fs.open_output_stream(self.path(name)) as stream:
                stream.write(data)
        return FileEntry(rows=rows, bytes=len(data), sha256=hashlib.sha256(data).hexdigest())

    def write_table(self, name: str, table: pa.Table) -> FileEntry:
        sink = io.BytesIO()
        pq.write_table(table, sink, row_group_size=ROWS_PER_GROUP, compression="zstd")
        return self.write(name, sink.getvalue(), table.num_rows)

    def read_table(
        self, name: str, columns: list[str] | None = None, where: list[tuple[str, str, object]] | None = None
    ) -> pa.Table:
        """``where``: (column, operator, value) conditions; row groups that cannot match are not read."""
        if where is None:
            return self.open_parquet(name).read(columns=columns)
        return pq.read_table(self.path(name), columns=columns, filters=where, filesystem=self._fs)

    def open_parquet(self, name: str) -> pq.ParquetFile:
        try:
            if self._is_local:
                return pq.ParquetFile(self.path(name), memory_map=True)
            return pq.ParquetFile(self._fs.open_input_file(self.path(name)))
        except FileNotFoundError:
            raise Damaged(f"{self.path(name)}: the file is missing; index the corpus again.") from None
        except pa.ArrowInvalid as error:
            raise Damaged(f"{self.path(name)}: not a whole Parquet file ({error}).") from error

    def write_array(self, name: str, array: NDArray[Any]) -> FileEntry:
        sink = io.BytesIO()
        np.save(sink, array, allow_pickle=False)
        return self.write(name, sink.getvalue(), len(array))

    def array(self, name: str) -> NDArray[Any]:
        """A read-only array, mapped into memory."""
        path = self.local(name)
        try:
            # An empty array has no bytes to map.
            loaded = np.load(path, mmap_mode="r", allow_pickle=False)
        except FileNotFoundError:
            raise Damaged(f"{self.path(name)}: the file is missing; index the corpus again.") from None
        except ValueError:
            try:
                loaded = np.load(path, allow_pickle=False)
            except (ValueError, EOFError) as error:
                raise Damaged(f"{self.path(name)}: not a whole .npy file ({error}).") from error
        return loaded  # type: ignore[no-any-return]

    def write_with(self, name: str, writer: Callable[[str], None], rows: int) -> FileEntry:
        """For libraries that only write to a path (FAISS)."""
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "file"
            writer(str(path))
            return self.write(name, path.read_bytes(), rows)

    def local(self, name: str) -> Path:
        """A path on this machine: the file itself, or a copy fetched once from the object store."""
        if self._is_local:
            return Path(self.path(name))
        if self._cache is None:
            key = hashlib.sha256(self.uri.encode()).hexdigest()[:16]
            self._cache = Path(tempfile.gettempdir()) / f"hybrid-ir-{os.getuid()}" / key
        path = self._cache / name
        if not path.exists():
            path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            temporary = path.with_name(f".{path.name}.{uuid.uuid4().hex}")
            temporary.write_bytes(self.read(name))
            temporary.replace(path)
        return path

    def sha256(self, name: str) -> tuple[int, str]:
        """(bytes, sha256) of a file as it is now."""
        digest, size = hashlib.sha256(), 0
        try:
            with self._fs.open_input_stream(self.path(name)) as stream:
                while block := stream.read(1 << 20):
                    digest.update(block)
                    size += len(block)
        except FileNotFoundError:
            raise Damaged(f"{self.path(name)}: the file is missing; index the corpus again.") from None
        return size, digest.hexdigest()
