"""The bytes of a corpus file, wherever it lies, and what can be wrong with them."""

from __future__ import annotations

import codecs
import gzip
import io
import os
from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from typing import Any, BinaryIO, Literal, cast
from urllib.parse import unquote, urlsplit

from hybrid_ir.records import SourceFile

HEAD_BYTES = 65_536
"""How much of a file decides on its format."""
WHOLE_FILE_BYTES = 1 << 30
"""Most bytes, unpacked, of a file that cannot be read record by record."""

GZIP_MAGIC = b"\x1f\x8b"
LineFormat = Literal["jsonl", "pubtator"]
"""Formats that can be read from the beginning of any record."""
_UTF16_MARKS = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)


class FileRange(SourceFile):
    """What one task reads of a file: all of it, or a run of its lines."""

    start: int = 0
    """The first byte; a line begins there, and a record."""
    end: int | None = None
    """The byte after the last; None: this is the whole file."""
    first_line: int = 1
    """The number in the file of the line at ``start``."""
    format: LineFormat | None = None
    """Of a file that is divided."""

    @property
    def bytes(self) -> int:
        return (self.size if self.end is None else self.end) - self.start


class Unreadable(Exception):
    """A file, or the rest of it, cannot be used; the message is a sentence for a person."""


def is_remote(path: str) -> bool:
    """Whether ``path`` is a URI (``s3://bucket/key``) rather than a local name."""
    return "://" in path


def open_bytes(path: str) -> BinaryIO:
    """The file as it is stored: a local name, or a URI that pyarrow knows.

    Raises:
        OSError: it cannot be opened.
    """
    if not is_remote(path):
        return Path(path).open("rb")
    from pyarrow import fs

    filesystem, inner = fs.FileSystem.from_uri(path)
    return cast(BinaryIO, io.BufferedReader(filesystem.open_input_stream(inner, compression=None), HEAD_BYTES))


def open_range(path: str, start: int, end: int) -> BinaryIO:
    """The stored bytes from ``start`` up to ``end``, or to the end of the file where that comes first.

    Raises:
        OSError: it cannot be opened.
    """
    if not is_remote(path):
        stored: Any = io.FileIO(path)
    else:
        from pyarrow import fs

        filesystem, inner = fs.FileSystem.from_uri(path)
        stored = filesystem.open_input_file(inner)
    stored.seek(start)
    return cast(BinaryIO, io.BufferedReader(_Range(stored, end - start), HEAD_BYTES))


class _Range(io.RawIOBase):
    """The next ``size`` bytes of a stream, and nothing after them."""

    def __init__(self, stored: Any, size: int) -> None:
        self._stored, self._left = stored, size

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: memoryview) -> int:  # type: ignore[override]
        data = self._stored.read(min(len(buffer), self._left))
        buffer[: len(data)] = data
        self._left -= len(data)
        return len(data)

    def close(self) -> None:
        self._stored.close()
        super().close()


def numbered_lines(stream: BinaryIO, longest: int, first: int = 1) -> Iterator[tuple[int, bytes | None]]:
    """(number, line with its end), numbers from ``first``; None in place of a line of ``longest`` bytes or more."""
    number = first
    while line := stream.readline(longest):
        if len(line) == longest and not line.endswith(b"\n"):
            while line and not line.endswith(b"\n"):
                line = stream.readline(longest)
            yield number, None
        else:
            yield number, line
        number += 1


class _Rewound(io.RawIOBase):
    """A stream with the head that was already taken from it put back."""

    def __init__(self, head: bytes, rest: BinaryIO) -> None:
        self._head = memoryview(head)
        self._rest = rest

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: memoryview) -> int:  # type: ignore[override]
        if not self._head:
            data = self._rest.read(len(buffer))
        else:
            data, self._head = bytes(self._head[: len(buffer)]), self._head[len(buffer) :]
        buffer[: len(data)] = data
        return len(data)


def open_unpacked(stored: BinaryIO) -> tuple[bytes, io.BufferedReader]:
    """(first bytes, whole stream) of a stored file, gunzipped where its first bytes say so."""
    buffered = io.BufferedReader(cast(io.RawIOBase, stored), HEAD_BYTES)
    unpacked = cast(BinaryIO, gzip.GzipFile(fileobj=buffered)) if buffered.peek(2)[:2] == GZIP_MAGIC else buffered
    head = unpacked.read(HEAD_BYTES)
    return head, io.BufferedReader(_Rewound(head, unpacked), HEAD_BYTES)


def read_all(stream: BinaryIO, limit: int = WHOLE_FILE_BYTES) -> bytes:
    """All bytes.

    Raises:
        Unreadable: there are more than ``limit``.
    """
    data = stream.read(limit + 1)
    if len(data) > limit:
        raise Unreadable(f"it holds more than {limit:,} bytes once unpacked; split it into smaller files")
    return data


def is_utf16(head: bytes) -> bool:
    """Whether a byte order mark says UTF-16."""
    return head.startswith(_UTF16_MARKS)


def decode(data: bytes) -> str:
    """UTF-8 or, by its byte order mark, UTF-16; line ends become ``\\n``.

    Raises:
        Unreadable: names the line of the first byte that is neither.
    """
    try:
        text = data.decode("utf-16" if is_utf16(data) else "utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise Unreadable(
            f"line {line} is not UTF-8 (byte 0x{data[error.start]:02x} at offset {error.start}); convert it to UTF-8"
        ) from None
    return text.replace("\r\n", "\n").replace("\r", "\n")


def _bare_path(path: str) -> PurePosixPath:
    return PurePosixPath(unquote(urlsplit(path).path) if is_remote(path) else Path(os.path.abspath(path)).as_posix())  # noqa: PTH100 (".." is to go)


def stem(path: str) -> str:
    """The file name without ``.gz`` and its ending: ``a/report.txt.gz`` -> ``report``."""
    bare = _bare_path(path)
    return PurePosixPath(bare.stem if bare.suffix.lower() == ".gz" else bare.name).stem


def ending(path: str) -> str:
    """The ending in lower case, without ``.gz``: ``a/report.TXT.gz`` -> ``.txt``."""
    bare = _bare_path(path)
    return PurePosixPath(bare.stem if bare.suffix.lower() == ".gz" else bare.name).suffix.lower()


def file_id(path: str) -> str:
    """``folder/stem``: the id of a document whose file gives it none.

    The last folder tells equal names apart; the folders above it are left out (and a bare name
    gets its folder from the working directory), so that a corpus has the same ids from wherever
    it is indexed.
    """
    folder = _bare_path(path).parent.name
    return f"{folder}/{stem(path)}" if folder else stem(path)
