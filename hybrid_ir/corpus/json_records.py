"""JSON Lines, JSON arrays and single JSON objects; BioC JSON among them."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, BinaryIO

from hybrid_ir.corpus.assembly import TextBuilder, bare_doi, one_line, read_error
from hybrid_ir.corpus.bioc import bioc_documents, document_from_json
from hybrid_ir.corpus.source import Unreadable, decode, file_id, numbered_lines, read_all
from hybrid_ir.records import Document, ErrorRecord, SourceFile
from hybrid_ir.settings import ReaderSettings

_IDS = ("id", "_id", "pmid", "PMID")
_TEXTS = ("content", "text", "passage", "contents")
"""MedRAG's ``contents`` is its title and ``content`` in one: it is taken only where it stands alone."""

_BLANKS = " \t\r\n"


def read_json_lines(
    source: SourceFile, stream: BinaryIO, settings: ReaderSettings, first_line: int = 1
) -> Iterator[Document | ErrorRecord]:
    """One document a line; a line that cannot be used costs nothing but itself."""
    # A character takes at most 12 bytes in JSON (two \u escapes); the rest is room for other fields.
    most = 12 * settings.max_document_chars + 1_048_576
    for number, line in numbered_lines(stream, most, first_line):
        where = f"Line {number} of {source.path}"
        if line is None:
            yield read_error(source.path, source.path, f"{where} is longer than {most:,} bytes.")
            continue
        try:
            text = line.decode("utf-8-sig" if number == 1 else "utf-8")
            if text.strip():
                yield from _documents(json.loads(text), source.path, number, f"line {number}", settings)
        except UnicodeDecodeError as error:
            yield read_error(source.path, source.path, f"{where} is not UTF-8 (byte {error.start + 1} of the line).")
        except (ValueError, RecursionError) as error:
            yield read_error(source.path, source.path, f"{where} is not valid JSON: {_complaint(error)}.")


def read_json(source: SourceFile, stream: BinaryIO, settings: ReaderSettings) -> Iterator[Document | ErrorRecord]:
    """A JSON array of records, a single record, or several after one another.

    What stands before a syntax error is kept; after it an array cannot be read on.
    """
    text = decode(read_all(stream))
    decoder = json.JSONDecoder()
    at = _skip(text, 0)
    in_array = at < len(text) and text[at] == "["
    at = _skip(text, at + 1) if in_array else at
    number = 0
    while at < len(text) and not (in_array and text[at] == "]"):
        try:
            item, at = decoder.raw_decode(text, at)
        except (ValueError, RecursionError) as error:
            line = text.count("\n", 0, getattr(error, "pos", at)) + 1
            after = f" after record {number}; what follows is not read" if number else ""
            raise Unreadable(f"line {line} is not valid JSON ({_complaint(error)}){after}") from None
        number += 1
        alone = not in_array and not text[at:].strip()
        yield from _documents(item, source.path, number, "" if alone else f"record {number}", settings)
        at = _skip(text, at)
        if in_array and at < len(text) and text[at] == ",":
            at = _skip(text, at + 1)
    if in_array and at >= len(text):
        raise Unreadable(f"the JSON array is not closed: the file ends after record {number}")


def _skip(text: str, at: int) -> int:
    while at < len(text) and text[at] in _BLANKS:
        at += 1
    return at


def _complaint(error: Exception) -> str:
    if isinstance(error, json.JSONDecodeError):
        return f"{error.msg} at column {error.colno}"
    return "it is nested too deep" if isinstance(error, RecursionError) else str(error)


def _documents(
    item: Any, path: str, number: int, locator: str, settings: ReaderSettings
) -> Iterator[Document | ErrorRecord]:
    where = f"{locator.capitalize()} of {path}" if locator else path
    if not isinstance(item, dict):
        yield read_error(path, path, f"{where} is a JSON {_kind(item)}; expected an object with an id and a text.")
        return
    passages = list(bioc_documents(item))
    for part in passages:
        yield document_from_json(part, path, locator, where)
    if not passages:
        yield _document(item, path, number, locator, where, settings)


def _document(
    item: dict[str, Any], path: str, number: int, locator: str, where: str, settings: ReaderSettings
) -> Document | ErrorRecord:
    fields = settings.fields
    id_field, raw_id = _field(item, fields.get("id"), _IDS)
    text_field, raw_text = _field(item, fields.get("text"), (*_TEXTS, "abstract"))
    body = _text(raw_text)
    title = _field(item, fields.get("title"), ("title",))[1]
    if isinstance(raw_id, float) and raw_id.is_integer():
        raw_id = int(raw_id)
    if isinstance(raw_id, bool) or not isinstance(raw_id, str | int | None):
        return read_error(path, path, f'{where}: field "{id_field}" is a JSON {_kind(raw_id)}; expected a string.')
    own = file_id(path) + (f":{number}" if locator else "")
    identity = one_line(str(raw_id)) if raw_id is not None else own
    if body is None:
        kind = _kind(raw_text)
        return read_error(
            identity, path, f'{where}: field "{text_field}" is a JSON {kind}; expected a string or a list of strings.'
        )
    if text_field is None:
        names = [fields["text"]] if "text" in fields else [*_TEXTS, "abstract"]
        if empty := [name for name in names if name in item]:
            return read_error(identity, path, f'{where}: field "{empty[0]}" is empty.')
        lacks = (
            f'field "{names[0]}" is missing' if len(names) == 1 else f"none of the fields {', '.join(names)} is present"
        )
        hint = "name the text's field in build.reader.fields: {text: NAME}"
        return read_error(identity, path, f"{where}: {lacks}; {hint}.")
    text = TextBuilder()
    abstract = _text(item.get("abstract")) or ""
    if text_field == "abstract":
        text.add(body, kind="abstract")
    else:
        if "text" not in fields and abstract.strip() not in body:
            text.add(abstract, ["Abstract"], "abstract")
        text.add(body)
    pmid = _digits(_field(item, fields.get("pmid"), ("pmid", "PMID"))[1])
    doi = _field(item, fields.get("doi"), ("doi",))[1]
    year = _digits(_field(item, fields.get("year"), ("year",))[1])
    return Document(
        id=identity,
        title=one_line(title) if isinstance(title, str) else "",
        text=text.text,
        sections=text.sections,
        source=path,
        locator=locator,
        pmid=pmid,
        doi=bare_doi(doi) if isinstance(doi, str) else None,
        year=int(year) if year and len(year) == 4 else None,
    )


def _field(item: dict[str, Any], chosen: str | None, usual: tuple[str, ...]) -> tuple[str | None, Any]:
    """(name, value) of the chosen field, or else of the first usual one that holds something."""
    for field in (chosen,) if chosen else usual:
        value = item.get(field)
        if value is not None and value != "" and value != []:
            return field, value
    return None, None


def _text(raw: Any) -> str | None:
    """A string, or a list of strings as paragraphs; empty for nothing; ``None`` for anything else."""
    if raw is None:
        return ""
    if isinstance(raw, list) and all(isinstance(part, str) for part in raw):
        raw = "\n\n".join(raw)
    return raw.replace("\r\n", "\n").replace("\r", "\n") if isinstance(raw, str) else None


def _digits(raw: Any) -> str | None:
    text = str(raw).strip() if isinstance(raw, str | int) and not isinstance(raw, bool) else ""
    return text if text.isascii() and text.isdigit() else None


def _kind(value: Any) -> str:
    if isinstance(value, bool):
        return "boolean"
    kinds = {dict: "object", list: "list", str: "string", int: "number", float: "number", type(None): "null"}
    return kinds.get(type(value), type(value).__name__)
