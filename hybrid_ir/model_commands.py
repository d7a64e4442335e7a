"""``hybrid-ir models …``: bring the models that a settings file names, and check them."""

from __future__ import annotations

from typing import Annotated

import typer

from hybrid_ir.errors import Damaged
from hybrid_ir.settings import Settings
from hybrid_ir.settings import load as load_settings
from hybrid_ir.terminal import AsJson, Config, print_json

app = typer.Typer(
    help="The models that a settings file names: where they are, fetching, checking.", no_args_is_help=True
)


@app.command("list")
def list_models(config: Config = None, json_: AsJson = False) -> None:
    """Say which models the settings name and where each is taken from."""
    from hybrid_ir import models

    found = models.named(load_settings(config) if config else Settings())
    if json_:
        print_json({"folder": str(models.models_folder()), "models": found})
        return
    for model in found:
        commit = f" at {model.commit}" if model.commit else ""
        wanted = f" (the settings want {model.revision})" if model.state == "other revision" else ""
        typer.echo(
            f"{model.state:<14} {model.name}{commit}{wanted}\n               {model.where}; {', '.join(model.used_by)}"
        )
    if any(model.state in ("missing", "other revision") for model in found):
        typer.echo("Fetch what is missing: hybrid-ir models fetch --config FILE")


@app.command()
def fetch(
    names: Annotated[list[str] | None, typer.Argument(metavar="[MODEL]...", help="Hub names.")] = None,
    config: Config = None,
    revision: Annotated[str | None, typer.Option(help="A commit or tag, where one model is named.")] = None,
    mirror: Annotated[
        str | None, typer.Option(help="A copy of a models folder to take them from: s3://bucket/prefix or a folder.")
    ] = None,
    json_: AsJson = False,
) -> None:
    """Bring models into HYBRID_IR_MODELS (default ~/.cache/hybrid-ir/models), once, with their checksums."""
    from hybrid_ir import models
    from hybrid_ir.errors import BadInput

    if revision and len(names or []) != 1:
        raise BadInput("--revision belongs to one model; name it.")
    if names:
        done = [models.fetch(name, revision, mirror) for name in names]
    else:
        wanted = [model for model in models.named(load_settings(config) if config else Settings()) if model.to_fetch()]
        done = [models.fetch(model.name, model.revision, mirror, model.tokenizer_only) for model in wanted]
    if json_:
        print_json({"folder": str(models.models_folder()), "models": done})
        return
    for model in done:
        typer.echo(f"{model.name} at {model.commit}: {len(model.files)} files in {models.models_folder() / model.name}")
    if not done:
        typer.echo("Nothing to fetch: the settings name only packages, folders and endpoints.")


@app.command()
def check(config: Config = None, json_: AsJson = False) -> None:
    """Compare every fetched model of the settings with its checksums."""
    from hybrid_ir import models

    found = models.named(load_settings(config) if config else Settings())
    wrong = [fault for model in found if model.to_fetch() for fault in models.faults(model.name)]
    wrong += [f"{m.name} is at {m.commit}, not at {m.revision}" for m in found if m.state == "other revision"]
    wrong += [f"{m.name} is not installed" for m in found if m.state == "not installed"]
    if json_:
        print_json({"models": len(found), "faults": wrong})
    if wrong:
        raise Damaged(f"{'; '.join(wrong)}. Run hybrid-ir models fetch --config FILE.")
    if not json_:
        served = [model for model in found if model.state == "endpoint"]
        here = len(found) - len(served)
        typer.echo(f"{here} {'model is' if here == 1 else 'models are'} there and whole.")
        for model in served:
            typer.echo(f"Not asked: {model.name} at {model.where}")
