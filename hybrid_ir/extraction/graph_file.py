"""A knowledge graph that exists already: a file of triples, read by the document or passage that states them.

Four forms, told apart by name and content, each may be gzipped: HippoRAG's OpenIE results (a JSON
object with ``docs``), a JSON array or JSON Lines of such passages, JSON Lines of single triples, and
CSV or TSV with a header row.
"""

from __future__ import annotations

import csv
import hashlib
import io
import json
import logging
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from hybrid_ir.corpus.source import Unreadable, decode, ending, open_bytes, open_unpacked, read_all
from hybrid_ir.errors import BadInput, NotFound
from hybrid_ir.extraction.names import canonical

log = logging.getLogger(__name__)

USUAL = {
    "document": ("document_id", "document", "doc_id", "pmid", "PMID"),
    "chunk": ("chunk_id", "chunk"),
    "passage": ("passage", "text"),
    "head": ("head", "subject", "source"),
    "relation": ("relation", "predicate", "edge"),
    "tail": ("tail", "object", "target"),
    "entities": ("extracted_entities", "entities"),
    "triples": ("extracted_triples", "triples"),
}
"""The names under which files have each field; ``columns`` of the settings goes before."""
MAX_BAD_SHARE = 0.5
"""With more unusable rows than this the file is not what it was taken for."""
EXAMPLES = 3

Fact = tuple[str, str, str]
csv.field_size_limit(1 << 24)  # a passage may stand in a field


@dataclass
class Entry:
    """What the file says of one document or passage; the keys in order of appearance."""

    mentions: dict[str, None] = field(default_factory=dict)
    triples: dict[Fact, None] = field(default_factory=dict)


@dataclass
class GraphFile:
    """The whole file in memory, by each kind of key it uses."""

    sha256: str
    documents: dict[str, Entry] = field(default_factory=dict)
    chunks: dict[str, Entry] = field(default_factory=dict)
    passages: dict[str, Entry] = field(default_factory=dict)
    """By ``folded`` text."""
    used: int = 0
    faults: int = 0
    examples: list[str] = field(default_factory=list)

    def names(self) -> set[str]:
        """Every entity."""
        entries = (entry for by in (self.documents, self.chunks, self.passages) for entry in by.values())
        return {
            name for entry in entries for name in (*entry.mentions, *(n for h, _, t in entry.triples for n in (h, t)))
        }

    def fault(self, where: str, reason: str) -> None:
        self.faults += 1
        if len(self.examples) < EXAMPLES:
            self.examples.append(f"{where}: {reason}")


def folded(text: str) -> str:
    """What passages are compared by: words alone, case ignored."""
    return " ".join(text.split()).casefold()


def file_hash(path: str) -> str:
    """sha256 of the bytes as stored.  Raises NotFound, BadInput."""
    digest = hashlib.sha256()
    try:
        with open_bytes(path) as stream:
            while block := stream.read(1 << 20):
                digest.update(block)
    except FileNotFoundError:
        raise NotFound(f"build.extractor.path: {path}: no such file.") from None
    except OSError as error:
        raise BadInput(f"build.extractor.path: {path}: cannot be read ({error}).") from error
    return digest.hexdigest()


def read_graph(path: str, columns: Mapping[str, str]) -> GraphFile:
    """Read a file of triples; what cannot be used is counted, and the first of it named in a warning.

    Raises:
        NotFound: there is no such file.
        BadInput: it is no file of triples, or most of it cannot be used; the row and field are named.
    """
    if unknown := sorted(set(columns) - set(USUAL)):
        raise BadInput(
            f"build.extractor.columns: there is no field {unknown[0]!r}; the fields are: {', '.join(USUAL)}."
        )
    graph = GraphFile(sha256=file_hash(path))
    fields = {ours: (columns[ours],) if ours in columns else usual for ours, usual in USUAL.items()}
    try:
        with open_bytes(path) as stored:
            head, stream = open_unpacked(stored)
            is_table = ending(path) in (".csv", ".tsv") or head.lstrip()[:1] not in (b"{", b"[")
            if is_table:
                rows = _table(io.TextIOWrapper(stream, "utf-8-sig", newline=""), path, head, fields)
            elif ending(path) in (".jsonl", ".ndjson") or _is_lines(head):
                rows = _lines(io.TextIOWrapper(stream, "utf-8-sig"), graph)
            else:
                rows = _whole(json.loads(decode(read_all(stream))), path)
            for where, row in rows:
                _add(graph, row, fields, where)
    except Unreadable as error:
        raise BadInput(f"{path}: {error}.") from None
    except (ValueError, RecursionError, csv.Error, EOFError, OSError) as error:
        raise BadInput(f"{path}: cannot be read as a file of triples ({error}).") from error
    _report(graph, path)
    return graph


def _report(graph: GraphFile, path: str) -> None:
    first = "; ".join(graph.examples)
    if not graph.used or graph.faults / (graph.used + graph.faults) > MAX_BAD_SHARE:
        raise BadInput(
            f"{path}: {graph.used} triples and entities can be used, {graph.faults} cannot. {first or 'It is empty'}. "
            "Name the file's own fields in build.extractor.columns if they have other names."
        )
    if graph.faults:
        log.warning("%s: %d entries are left out, %d are used. The first: %s", path, graph.faults, graph.used, first)


def _is_lines(head: bytes) -> bool:
    """Whether the first line is a JSON object of its own, and another follows."""
    first, _, rest = head.lstrip().partition(b"\n")
    try:
        return bool(rest.strip()) and isinstance(json.loads(first), dict)
    except ValueError:
        return False


def _table(text: io.TextIOWrapper, path: str, head: bytes, fields: Mapping[str, tuple[str, ...]]) -> Iterator[Any]:
    first = head.split(b"\n", 1)[0]
    delimiter = "\t" if ending(path) == ".tsv" or first.count(b"\t") > first.count(b",") else ","
    reader = csv.DictReader(text, delimiter=delimiter)
    present = set(reader.fieldnames or ())
    for ours in ("head", "relation", "tail"):
        if not present & set(fields[ours]):
            raise BadInput(
                f"{path}: the header row has no column {' or '.join(fields[ours])}; it has: "
                f"{', '.join(sorted(present)) or 'none'}. Name the file's column for {ours} in build.extractor.columns."
            )
    if not any(present & set(fields[ours]) for ours in ("document", "chunk", "passage")):
        raise BadInput(
            f"{path}: no column says which document states a triple ({', '.join(fields['document'])}, or "
            f"{', '.join(fields['chunk'])}); it has: {', '.join(sorted(present))}. Name it in build.extractor.columns."
        )
    for row in reader:
        yield f"row {reader.line_num}", row


def _lines(text: io.TextIOWrapper, graph: GraphFile) -> Iterator[tuple[str, Any]]:
    for number, line in enumerate(text, start=1):
        if line.strip():
            try:
                row = json.loads(line)
            except (ValueError, RecursionError) as error:
                graph.fault(f"line {number}", f"not valid JSON ({error})")
                continue
            yield f"line {number}", row


def _whole(content: Any, path: str) -> Iterator[tuple[str, Any]]:
    name = ""
    if isinstance(content, dict) and "docs" in content:
        content, name = content["docs"], "docs"
    rows = [content] if isinstance(content, dict) else content
    if not isinstance(rows, list):
        raise BadInput(f"{path}: expected an object with a list `docs` (HippoRAG's OpenIE), or a list of passages.")
    for number, row in enumerate(rows):
        yield f"{name}[{number}]", row


def _add(graph: GraphFile, row: Any, fields: Mapping[str, tuple[str, ...]], where: str) -> None:
    if not isinstance(row, dict):
        graph.fault(where, "not an object")
        return
    got = {
        ours: next((row[name] for name in names if row.get(name) is not None), None) for ours, names in fields.items()
    }
    entries = _entries(graph, got)
    if not entries:
        wanted = ", ".join((*fields["document"], *fields["chunk"], *fields["passage"]))
        graph.fault(where, f"no field says which document it is of ({wanted})")
        return
    is_passage = got["triples"] is not None or got["entities"] is not None
    for ours in ("entities", "triples"):
        if got[ours] is not None and not isinstance(got[ours], list):
            graph.fault(f"{where}, field {ours}", "not a list")
            got[ours] = None
    for place, name in enumerate(got["entities"] or []):
        if entity := _name(name):
            graph.used += 1
            for entry in entries:
                entry.mentions[entity] = None
        else:
            graph.fault(f"{where}, entity {place}", f"{name!r} is not a name")
    given = got["triples"] or []
    if not is_passage:
        given = [[got["head"], got["relation"], got["tail"]]]
    for place, triple in enumerate(given):
        at = f"{where}, triple {place}" if is_passage else where
        if not isinstance(triple, list | tuple) or len(triple) != 3:
            parts = f"{len(triple)} parts" if isinstance(triple, list | tuple) else "no list"
            graph.fault(at, f"a triple has 3 parts, this has {parts}")
            continue
        fact = _name(triple[0]), _text(triple[1]), _name(triple[2])
        empty = [ours for ours, text in zip(("head", "relation", "tail"), fact, strict=True) if not text]
        if empty:
            graph.fault(f"{at}, field {empty[0]}", "empty, or not a text")
            continue
        graph.used += 1
        for entry in entries:
            entry.triples[fact] = None


def _entries(graph: GraphFile, got: Mapping[str, Any]) -> list[Entry]:
    """Where a row belongs: to its chunk, else to its document and to its passage's text."""
    if chunk := _text(got["chunk"]):
        return [graph.chunks.setdefault(chunk, Entry())]
    found = []
    if document := _text(got["document"]):
        found.append(graph.documents.setdefault(document, Entry()))
    if not found and (passage := folded(_text(got["passage"]))):
        found.append(graph.passages.setdefault(passage, Entry()))
    return found


def _text(value: Any) -> str:
    if isinstance(value, str):
        return " ".join(value.split())
    return str(value) if isinstance(value, int | float) and not isinstance(value, bool) else ""


def _name(value: Any) -> str:
    """The graph's form of a name; numbers and dates, which the rules leave out, stay as they are."""
    text = _text(value)
    return canonical(text) or text
