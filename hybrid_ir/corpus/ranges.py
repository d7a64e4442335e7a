"""Large files in ranges of whole records, so that many tasks read one file and find what one task would.

Only uncompressed files of lines (JSON Lines, PubTator) are divided.  XML, a JSON array and a gzipped
file can be read from their beginning alone: those stay whole.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from itertools import pairwise

from hybrid_ir.corpus.formats import sniff
from hybrid_ir.corpus.pubtator import next_record
from hybrid_ir.corpus.source import (
    GZIP_MAGIC,
    HEAD_BYTES,
    FileRange,
    LineFormat,
    is_utf16,
    open_bytes,
    open_range,
)
from hybrid_ir.records import SourceFile
from hybrid_ir.settings import ReaderSettings

RANGE_BYTES = 32 * 2**20
_BLOCK = 1 << 20


def look(file: SourceFile, settings: ReaderSettings, range_bytes: int = RANGE_BYTES) -> tuple[str, list[FileRange]]:
    """(sha256 of the file, ranges of about ``range_bytes``), in one pass.

    The records of all ranges, one range after the other, are those of the whole file, line numbers
    included.  In place of the hash of a file that cannot be opened stands the kind of the error: its
    reader will say why.
    """
    whole = FileRange(path=file.path, size=file.size)
    digest = hashlib.sha256()
    size = lines = 0
    before: list[int] = []  # newlines in front of each multiple of range_bytes
    try:
        with open_bytes(file.path) as stream:
            block = stream.read(HEAD_BYTES)
            form = _line_format(file.path, block) if file.size > range_bytes else None
            while block:
                digest.update(block)
                at = 0
                while form and at < len(block):
                    to = min(len(block), at + range_bytes - size % range_bytes)
                    lines += block.count(b"\n", at, to)
                    size += to - at
                    at = to
                    if size % range_bytes == 0:
                        before.append(lines)
                block = stream.read(_BLOCK)
    except (FileNotFoundError, PermissionError, IsADirectoryError, NotADirectoryError) as error:
        return type(error).__name__, [whole]
    starts = list(_starts(file.path, form, before, range_bytes, size, settings)) if form else []
    ranges = [
        FileRange(path=file.path, size=file.size, start=start, end=end, first_line=line, format=form)
        for (start, line), (end, _) in pairwise([(0, 1), *starts, (size, 0)])
    ]
    return digest.hexdigest(), ranges if starts else [whole]


def _line_format(path: str, head: bytes) -> LineFormat | None:
    """JSON Lines or PubTator as they are stored; None for everything that is read as a whole."""
    if head.startswith(GZIP_MAGIC) or is_utf16(head) or not head.strip():
        return None
    form = sniff(path, head)
    return form if form == "jsonl" or form == "pubtator" else None


def _starts(
    path: str, form: LineFormat, before: list[int], range_bytes: int, size: int, settings: ReaderSettings
) -> Iterator[tuple[int, int]]:
    """(first byte, line number) of the first record at or after each multiple of ``range_bytes``."""
    for number, lines in enumerate(before, start=1):
        at, end = number * range_bytes, min((number + 1) * range_bytes, size)
        with open_range(path, at - 1, end) as stream:
            line = stream.readline()  # the rest of the line that the byte before belongs to
            if not line.endswith(b"\n"):
                continue
            start, first = at - 1 + len(line), lines + (len(line) > 1) + 1
            if form == "pubtator":
                skipped = next_record(stream, settings)
                if skipped is None:
                    continue
                start, first = start + skipped[0], first + skipped[1]
        if start < end:
            yield start, first
