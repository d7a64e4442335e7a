"""A root of files: a local folder or an object store, behind one small class.

Every write replaces the whole file at once, so a reader or a resumed job never sees half of
one, and returns a :class:`FileEntry`, which is what a manifest promises about the file.
"""

from __future__ import annotations

import hashlib
import io
import mmap
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from hybrid_ir.errors import BadInput, Damaged, NotFound
from hybrid_ir.folder import Folder
from hybrid_ir.records import Record

ROWS_PER_GROUP = 256
"""Small row groups: serving reads single chunks, and a group is the least that can be read."""


class FileEntry(Record):
    """One file of a segment or build."""

    rows: int
    bytes: int
    sha256: str


class Store:
    """Names are relative to the root, with forward slashes.

    Pickles as its address: a worker elsewhere opens it with its own credentials.
    """

    def __init__(self, uri: str) -> None:
        """``uri``: a folder, ``file://…`` or ``s3://bucket/prefix``."""
        self.uri = uri
        scheme, sign, _ = uri.partition("://")
        if not sign:
            self._place: Any = Folder(uri)
        elif scheme == "file":
            self._place = Folder(unquote(urlsplit(uri).path))
        elif scheme == "s3":
            from hybrid_ir.bucket import Bucket

            self._place = Bucket(uri)
        else:
            raise BadInput(f"{uri}: a root is a folder or s3://bucket/prefix.")
        if scheme != "s3" and Path(self._place.path("")).is_file():
            raise BadInput(f"{uri} is a file; a root is a folder, which need not exist yet.")

    def __reduce__(self) -> tuple[type[Store], tuple[str]]:
        return Store, (self.uri,)

    def path(self, name: str) -> str:
        """The file's full name, for messages."""
        return str(self._place.path(name))

    def exists(self, name: str) -> bool:
        return bool(self._place.exists(name))

    def files(self, folder: str) -> list[str]:
        """Names of all files below a folder, sorted; none where there is no such folder."""
        return list(self._place.files(folder))

    def size(self, name: str) -> int:
        """Bytes; 0 where there is no such file."""
        try:
            return int(self._place.size(name))
        except FileNotFoundError:
            return 0

    def remove(self, folder: str) -> None:
        """Remove a folder with all that is below it; nothing happens where there is none."""
        self._place.remove(folder)

    def delete(self, name: str) -> None:
        """Remove one file, and the folders that it leaves empty; nothing happens where there is none."""
        self._place.delete(name)

    def read(self, name: str) -> bytes:
        try:
            return bytes(self._place.read(name))
        except FileNotFoundError:
            raise NotFound(f"{self.path(name)}: no such file.") from None

    def write(self, name: str, data: bytes | memoryview, rows: int = 0) -> FileEntry:
        self._place.write(name, data)
        return FileEntry(rows=rows, bytes=len(data), sha256=hashlib.sha256(data).hexdigest())

    def read_version(self, name: str) -> tuple[bytes | None, str | None]:
        """(content, version) for :meth:`replace`; (None, None) where there is no such file."""
        data, version = self._place.read_version(name)
        return data, version

    def replace(self, name: str, data: bytes, version: str | None) -> bool:
        """Write on the condition that the file is still of this version (None: that it does not exist).

        False: someone else was faster, nothing was written.  A folder shared over a network needs
        a file system whose ``flock`` works between machines; an object store needs conditional
        writes (S3 itself has them, and so has MinIO; one that ignores the condition cannot
        be told from one that keeps it).
        """
        return bool(self._place.replace(name, data, version))

    def delete_version(self, name: str, version: str) -> bool:
        """Delete on the condition that the file is still of this version; False: it is not, nothing was deleted.

        An object store that knows no conditional deletes (S3 does) may delete without looking.
        """
        return bool(self._place.delete_version(name, version))

    def write_table(self, name: str, table: pa.Table) -> FileEntry:
        sink = io.BytesIO()
        pq.write_table(table, sink, row_group_size=ROWS_PER_GROUP, compression="zstd")
        return self.write(name, sink.getbuffer(), table.num_rows)

    def read_table(
        self, name: str, columns: list[str] | None = None, where: list[tuple[str, str, object]] | None = None
    ) -> pa.Table:
        """``where``: (column, operator, value) conditions; row groups that cannot match are not read."""
        if where is None:
            return self.open_parquet(name).read(columns=columns)
        try:
            with self._place.open(name) as stream:
                return pq.read_table(stream, columns=columns, filters=where, partitioning=None)
        except FileNotFoundError:
            raise self._missing(name) from None
        except pa.ArrowInvalid as error:
            raise Damaged(f"{self.path(name)}: not a whole Parquet file ({error}).") from error

    def open_parquet(self, name: str) -> pq.ParquetFile:
        try:
            return self._place.open_parquet(name)
        except FileNotFoundError:
            raise self._missing(name) from None
        except pa.ArrowInvalid as error:
            raise Damaged(f"{self.path(name)}: not a whole Parquet file ({error}).") from error

    def write_array(self, name: str, array: NDArray[Any]) -> FileEntry:
        sink = io.BytesIO()
        np.save(sink, array, allow_pickle=False)
        return self.write(name, sink.getbuffer(), len(array))

    def array(self, name: str) -> NDArray[Any]:
        """A read-only array, mapped into memory."""
        path = self.local(name)
        try:
            loaded = np.load(path, mmap_mode="r", allow_pickle=False)
        except FileNotFoundError:
            raise self._missing(name) from None
        except ValueError:
            # An empty array has no bytes to map.
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
            if not path.stat().st_size:
                return self.write(name, b"", rows)
            with (
                path.open("rb") as stream,
                mmap.mmap(stream.fileno(), 0, access=mmap.ACCESS_READ) as mapped,
                memoryview(mapped) as data,
            ):
                return self.write(name, data, rows)

    def local(self, name: str) -> Path:
        """A path on this machine: the file itself, or a copy fetched once from the object store.

        Copies lie in ``HYBRID_IR_CACHE`` (else the temporary folder), named by their content; nothing removes them.
        """
        try:
            return Path(self._place.local(name))
        except FileNotFoundError:
            raise self._missing(name) from None

    def sha256(self, name: str) -> tuple[int, str]:
        """(bytes, sha256) of a file as it is now."""
        digest, size = hashlib.sha256(), 0
        try:
            with self._place.open(name) as stream:
                while block := stream.read(8 << 20):  # remotely one request each
                    digest.update(block)
                    size += len(block)
        except FileNotFoundError:
            raise self._missing(name) from None
        return size, digest.hexdigest()

    def _missing(self, name: str) -> Damaged:
        return Damaged(f"{self.path(name)}: the file is missing; index the corpus again.")
