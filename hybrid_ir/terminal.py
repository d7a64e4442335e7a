"""What the commands share: their common options, and printing."""

from __future__ import annotations

import json
from typing import Annotated

import typer

from hybrid_ir.errors import BadInput
from hybrid_ir.index.manifest import Manifest
from hybrid_ir.records import Filter

Root = Annotated[str, typer.Option("--root", help="Where the index lies: a folder, or s3://bucket/prefix.")]
Config = Annotated[str | None, typer.Option("--config", help="A settings file, such as configs/local.yaml.")]
Wait = Annotated[float, typer.Option("--wait", help="Seconds to wait for another job on this root.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print the result as JSON.")]
Paths = Annotated[str | None, typer.Option("--paths", help="Paths to use, by comma: graph,dense,sparse.")]

Sources = Annotated[
    list[str] | None,
    typer.Option("--source", help="Only from files whose whole path matches: '*/notes/*.md'; may be repeated."),
]
YearFrom = Annotated[int | None, typer.Option("--year-from", help="Only from this year on; undated text drops out.")]
YearTo = Annotated[int | None, typer.Option("--year-to", help="Only up to this year; undated text drops out.")]
Documents = Annotated[list[str] | None, typer.Option("--document", help="Only this document's; may be repeated.")]


def filter_of(
    sources: list[str] | None, year_from: int | None, year_to: int | None, documents: list[str] | None
) -> Filter | None:
    """The filter that the options name; None where there are none."""
    if year_from is not None and year_to is not None and year_from > year_to:
        raise BadInput(f"--year-from {year_from} is after --year-to {year_to}: no year is between them.")
    given = Filter(
        sources=tuple(sources or ()), year_from=year_from, year_to=year_to, document_ids=tuple(documents or ())
    )
    return None if given == Filter() else given


def say_build(made: Manifest, root: str, as_json: bool) -> None:
    counts = made.counts
    if as_json:
        print_json({"build_id": made.build_id, "root": root, **counts.model_dump()})
        return
    typer.echo(
        f"Build {made.build_id} in {root}: {counts.documents} documents, {counts.chunks} chunks, "
        f"{counts.triples} triples, {counts.entities} entities, {counts.edges} edges, "
        f"{counts.synonym_edges} synonym pairs, {counts.errors} errors."
    )
    if counts.errors:
        typer.echo(f"See what could not be used, and why: hybrid-ir inspect --root {root}")


def print_json(value: object) -> None:
    typer.echo(json.dumps(value, ensure_ascii=False, indent=1, default=lambda item: item.model_dump(mode="json")))


def options_of(given: list[str]) -> dict[str, str]:
    """``A=text``, each, as a map."""
    options: dict[str, str] = {}
    for item in given:
        letter, sign, text = item.partition("=")
        if not sign:
            raise BadInput(f"--option {item!r}: write it as A=text.")
        if letter.strip() in options:
            raise BadInput(f"--option {letter.strip()} is given twice.")
        options[letter.strip()] = text.strip()
    return options
