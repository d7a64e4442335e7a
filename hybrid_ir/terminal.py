"""What the commands share: their common options, and printing."""

from __future__ import annotations

import json
from typing import Annotated

import typer

from hybrid_ir.index.manifest import Manifest

Root = Annotated[str, typer.Option("--root", help="Where the index lies: a folder, or s3://bucket/prefix.")]
Config = Annotated[str | None, typer.Option("--config", help="A settings file, such as configs/local.yaml.")]
Wait = Annotated[float, typer.Option("--wait", help="Seconds to wait for another job on this root.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print the result as JSON.")]
Paths = Annotated[str | None, typer.Option("--paths", help="Paths to use, by comma: graph,dense.")]


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
