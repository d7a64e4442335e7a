"""A corpus file to its records: which format it is, and what is done when it is none or broken."""

from __future__ import annotations

import gzip
import io
import json
import re
import zlib
from collections.abc import Callable, Iterator
from typing import BinaryIO, Literal

from hybrid_ir.corpus.assembly import fault, read_error
from hybrid_ir.corpus.bioc import read_bioc
from hybrid_ir.corpus.jats import read_jats
from hybrid_ir.corpus.json_records import read_json, read_json_lines
from hybrid_ir.corpus.pdf import read_pdf
from hybrid_ir.corpus.plain import MARKDOWN_ENDINGS, read_plain
from hybrid_ir.corpus.pubmed import read_pubmed
from hybrid_ir.corpus.pubtator import LINE as PUBTATOR_LINE
from hybrid_ir.corpus.pubtator import read_pubtator
from hybrid_ir.corpus.source import (
    GZIP_MAGIC,
    FileRange,
    Unreadable,
    decode,
    ending,
    is_utf16,
    open_bytes,
    open_range,
    open_unpacked,
    read_all,
)
from hybrid_ir.records import Deletion, Document, ErrorRecord, SourceFile
from hybrid_ir.settings import ReaderSettings

Format = Literal["jsonl", "json", "plain", "pubmed", "jats", "bioc", "pubtator", "pdf"]
Reader = Callable[[SourceFile, BinaryIO, ReaderSettings], Iterator[Document | Deletion | ErrorRecord]]

LINE_READERS = {"jsonl": read_json_lines, "pubtator": read_pubtator}
READERS: dict[Format, Reader] = {
    "jsonl": read_json_lines,
    "json": read_json,
    "plain": read_plain,
    "pubmed": read_pubmed,
    "jats": read_jats,
    "bioc": read_bioc,
    "pubtator": read_pubtator,
    "pdf": read_pdf,
}
KNOWN = "JSON Lines, JSON, plain text, Markdown, PubMed XML, JATS XML, BioC XML or JSON, PubTator, PDF"

_ROOTS: dict[str, Format] = {
    "PubmedArticleSet": "pubmed", "PubmedBookArticleSet": "pubmed", "MedlineCitationSet": "pubmed",
    "DeleteCitation": "pubmed", "article": "jats", "pmc-articleset": "jats", "collection": "bioc",
}  # fmt: skip
_TEXT_ENDINGS = ("", ".txt", ".text", ".rst", *MARKDOWN_ENDINGS)
_LFS_POINTER = b"version https://git-lfs.github.com/spec/"
_MISC = re.compile(rb"\s+|<\?.*?\?>|<!--.*?-->|<!DOCTYPE[^\[>]*(?:\[.*?\]\s*)?>", re.DOTALL)
_ROOT = re.compile(rb"<(?:[\w.-]+:)?([\w.-]+)")


def sniff(path: str, head: bytes) -> Format | None:
    """The format of a file by its first bytes and its name; ``None`` where it is none that is known.

    ``head`` may be gzipped.
    """
    if head.startswith(GZIP_MAGIC):
        try:
            head = zlib.decompressobj(wbits=31).decompress(head, 65_536)
        except zlib.error:
            return None
    if b"%PDF-" in head[:1024]:
        return "pdf"
    if is_utf16(head):
        head = head[: len(head) // 2 * 2].decode("utf-16", "replace").encode()
    elif b"\0" in head:
        return None
    head = head.removeprefix(b"\xef\xbb\xbf").lstrip()
    name = ending(path)
    if name in MARKDOWN_ENDINGS:
        return "plain"
    if head.startswith(b"<"):
        root = _root(head)
        return _ROOTS.get(root) or ("plain" if name in _TEXT_ENDINGS and name and not root else None)
    if name in (".jsonl", ".ndjson"):
        return "jsonl"
    if name == ".json" or head.startswith((b"{", b"[")):
        form = _json_form(head)
        if form or name == ".json":
            return form or "json"
    first = head.partition(b"\n")[0].decode("utf-8", "replace")
    if PUBTATOR_LINE.match(first):
        return "pubtator"
    return "plain" if name in _TEXT_ENDINGS else None


def _root(head: bytes) -> str:
    at = 0
    while found := _MISC.match(head, at):
        at = found.end()
    root = _ROOT.match(head, at)
    return root.group(1).decode() if root else ""


def _json_form(head: bytes) -> Format | None:
    """JSON Lines when the first line is a whole object and another follows; JSON when it may be that."""
    first, _, rest = head.partition(b"\n")
    try:
        whole = isinstance(json.loads(first), dict)
    except (ValueError, RecursionError):
        whole = False
    if whole and rest.lstrip().startswith(b"{"):
        return "jsonl"
    if whole or re.match(rb'\{\s*(?:"|\})|\[\s*(?:\{|\])', head):
        return "json"
    return None


def read(source: SourceFile, settings: ReaderSettings) -> Iterator[Document | Deletion | ErrorRecord]:
    """Everything in a corpus file, or in a range of one, in its order.

    Bad content never raises: what cannot be used becomes an ``ErrorRecord`` in its place, and the
    records before it, and after it where the format allows, are kept.

    Raises:
        OSError: the storage failed (a network, say); the file may be read well next time.
    """
    try:
        with _open(source) as stored:
            for record in _records(source, stored, settings):
                reason = fault(record, settings.max_document_chars) if isinstance(record, Document) else None
                if reason is not None and isinstance(record, Document):
                    yield read_error(record.id, source.path, f"{source.path}: {reason}")
                else:
                    yield record
    except (Unreadable, FileNotFoundError, PermissionError, IsADirectoryError, NotADirectoryError) as error:
        reason = str(error) if isinstance(error, Unreadable) else f"cannot be opened ({error.strerror or error})"
        yield read_error(source.path, source.path, f"{source.path}: {reason}.")


def _open(source: SourceFile) -> BinaryIO:
    if isinstance(source, FileRange) and source.end is not None:
        return open_range(source.path, source.start, source.end)
    return open_bytes(source.path)


def _records(
    source: SourceFile, stored: BinaryIO, settings: ReaderSettings
) -> Iterator[Document | Deletion | ErrorRecord]:
    """What the reader gives, with everything that bad content can raise made ``Unreadable``."""
    try:
        if isinstance(source, FileRange) and source.format is not None:
            yield from LINE_READERS[source.format](source, stored, settings, source.first_line)
            return
        head, stream = open_unpacked(stored)
        if not head.strip():
            raise Unreadable("it is empty")
        if head.startswith(_LFS_POINTER):
            raise Unreadable("it is a Git LFS pointer, not the data; fetch the data with `git lfs pull`")
        form = sniff(source.path, head)
        if form is None:
            binary = b"\0" in head and not is_utf16(head)
            what = "it holds NUL bytes and is no PDF" if binary else "its format is not known"
            raise Unreadable(f"{what}; expected {KNOWN}, each also gzipped")
        content: BinaryIO = stream
        if is_utf16(head) and form in ("jsonl", "json", "pubtator"):
            content = io.BytesIO(decode(read_all(stream)).encode("utf-8", "surrogatepass"))
        yield from READERS[form](source, content, settings)
    except (EOFError, gzip.BadGzipFile, zlib.error) as error:
        raise Unreadable(f"its gzip data is broken or cut off ({error}); what came before is kept") from None
    except (OSError, Unreadable, MemoryError):
        raise
    except SyntaxError as error:  # lxml's XMLSyntaxError: its message names line and column
        raise Unreadable(f"it is not well-formed XML ({error.msg}); what came before is kept") from None
    except Exception as error:  # content no reader foresaw: it must not end a job of hours
        raise Unreadable(f"it cannot be read ({type(error).__name__}: {error})") from error
