"""What the user named -> the files of the corpus."""

from __future__ import annotations

import glob
import os
from collections.abc import Iterator, Sequence
from fnmatch import fnmatchcase
from pathlib import Path, PurePosixPath
from urllib.parse import quote

from hybrid_ir.corpus.source import is_remote
from hybrid_ir.errors import BadInput
from hybrid_ir.records import SourceFile


def discover(paths: Sequence[str]) -> list[SourceFile]:
    """The files that ``paths`` (files, folders, globs, ``s3://`` URIs of either) name, sorted, each once.

    Folders are searched to any depth; hidden files and folders in them are skipped.  Paths stay
    as the user named them.

    Raises:
        BadInput: a path that matches nothing, or a folder without files; names it.
    """
    if not paths:
        raise BadInput("No corpus path was given; name at least one file, folder or glob.")
    found: dict[str, SourceFile] = {}
    for path in paths:
        files = list(_remote(path) if is_remote(path) else _local(path))
        if not files:
            folder = not is_remote(path) and Path(path).is_dir()
            what = "is a folder without files" if folder else "matches no file"
            raise BadInput(f"{path}: {what}; check the spelling (hidden files are skipped).")
        for file in files:
            key = file.path if is_remote(file.path) else os.path.realpath(file.path)
            held = found.get(key)
            if held is None or file.path < held.path:
                found[key] = file
    return sorted(found.values(), key=lambda file: file.path)


def _local(path: str) -> Iterator[SourceFile]:
    # A file may be called "a[1].txt": what exists is meant by its name, not as a glob.
    names = [path] if os.path.lexists(path) else glob.glob(path, recursive=True)  # noqa: PTH207
    for name in names:
        if Path(name).is_dir():
            yield from _walk(name, frozenset())
        elif Path(name).is_file() or Path(name).is_symlink():
            yield _source_file(name)


def _walk(folder: str, above: frozenset[str]) -> Iterator[SourceFile]:
    real = os.path.realpath(folder)
    if real in above:  # a link that leads back up
        return
    with os.scandir(folder) as entries:
        for entry in sorted(entries, key=lambda entry: entry.name):
            if entry.name.startswith("."):
                continue
            if entry.is_dir():
                yield from _walk(entry.path, above | {real})
            elif entry.is_file() or entry.is_symlink():  # no pipes and sockets: they would block
                yield _source_file(entry.path)


def _source_file(path: str) -> SourceFile:
    try:
        size = Path(path).stat().st_size
    except OSError:  # a dangling link: the reader says so
        size = 0
    return SourceFile(path=Path(path).as_posix(), size=size)


def _remote(uri: str) -> Iterator[SourceFile]:
    from pyarrow import fs

    address, mark, query = uri.partition("?")  # s3://bucket/key?region=…; so no ? wildcard here
    filesystem, path = fs.FileSystem.from_uri(uri)
    wildcard = min((path.index(sign) for sign in "*[" if sign in path), default=-1)
    base = path if wildcard < 0 else path[:wildcard].rpartition("/")[0]
    info = filesystem.get_file_info(base)
    if info.type == fs.FileType.File:
        yield SourceFile(path=uri, size=info.size)
    elif info.type == fs.FileType.Directory:
        scheme = address.partition("://")[0]
        for entry in filesystem.get_file_info(fs.FileSelector(base, recursive=True)):
            inner = PurePosixPath(entry.path).relative_to(base).parts
            hidden = any(part.startswith(".") for part in inner)
            wanted = wildcard < 0 or fnmatchcase(entry.path, path)
            if entry.type == fs.FileType.File and wanted and not hidden:
                yield SourceFile(path=f"{scheme}://{quote(entry.path)}{mark}{query}", size=entry.size)
