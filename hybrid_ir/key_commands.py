"""``hybrid-ir keys …``: who may ask the service."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from hybrid_ir import keys
from hybrid_ir.errors import BadInput
from hybrid_ir.terminal import AsJson, print_json

app = typer.Typer(help="API keys of the service: made, listed, revoked.", no_args_is_help=True, rich_markup_mode=None)
File = Annotated[Path, typer.Option("--file", help="The file of keys, which holds their hashes.")]


@app.command("add")
def add(
    file: File,
    scope: Annotated[list[str] | None, typer.Option(help="query (the default) or admin; may be repeated.")] = None,
    per_minute: Annotated[int | None, typer.Option(min=1, help="Most requests a minute.")] = None,
    note: Annotated[str, typer.Option(help="Whose it is.")] = "",
    json_: AsJson = False,
) -> None:
    """Make a key.  It is shown once and kept as a hash."""
    scopes = scope or ["query"]
    for name in scopes:
        if name not in ("query", "admin"):
            raise BadInput(f"--scope {name}: there are query and admin.")
    key, secret = keys.add(file, scopes, per_minute, note)  # type: ignore[arg-type]  # checked above
    if json_:
        print_json({"id": key.id, "key": secret, "scopes": key.scopes})
        return
    typer.echo(secret)
    typer.echo(f"Key {key.id} may {' and '.join(key.scopes)}. It is not shown again.", err=True)


@app.command("list")
def list_keys(file: File, json_: AsJson = False) -> None:
    """Show what is kept of each key."""
    held = keys.read(file).keys
    if json_:
        print_json([key.model_dump(mode="json", exclude={"sha256"}) for key in held])
        return
    for key in held:
        limit = f"{key.per_minute} a minute" if key.per_minute else "no limit"
        typer.echo(f"{key.id}  {','.join(key.scopes):<12} {limit:<14} {key.created}  {key.note}".rstrip())


@app.command("revoke")
def revoke(file: File, identity: Annotated[str, typer.Argument(metavar="ID")]) -> None:
    """Take a key out.  Running services refuse it within seconds."""
    keys.revoke(file, identity)
    typer.echo(f"Key {identity} is revoked.")
