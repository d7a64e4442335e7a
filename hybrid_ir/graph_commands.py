"""Commands that prepare a build for the graph foundation model.  They need no Ray."""

from __future__ import annotations

from typing import Annotated

import typer

from hybrid_ir.errors import BadInput
from hybrid_ir.settings import load as load_settings
from hybrid_ir.terminal import AsJson, Root, print_json


def prepare_gfm(
    root: Root,
    config: Annotated[str, typer.Option(help="A settings file with graph_path.gfm.")],
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only say how much will be written.")] = False,
    json_: AsJson = False,
) -> None:
    """Encode a build's relations for a GFM and, for its bounded mode, store the background."""
    from hybrid_ir import encoders
    from hybrid_ir.graph.gfm import prepared
    from hybrid_ir.graph.gfm.background import bytes_needed
    from hybrid_ir.opened import open_index

    settings = load_settings(config)
    wanted = settings.graph_path.gfm
    if wanted is None:
        raise BadInput(f"{config}: graph_path.gfm is missing; it names the weights (graph_path.gfm.model).")
    index = open_index(root, settings)
    weights = prepared.Weights.of(wanted.model, wanted.revision)
    graph, model = index.graph, weights.network.config
    relations = 2 * len(graph.relation_names) * model.text_dimension * 4
    background = bytes_needed(model, graph.entities) if wanted.mode == "bounded" else 0
    place = index.store.path(prepared.folder(index.build_id, weights))
    sizes = {"folder": place, "relation_bytes": relations, "background_bytes": background}
    if not json_:
        typer.echo(f"{place}: {relations:,} bytes for {2 * len(graph.relation_names):,} relation vectors", err=True)
        if background:
            typer.echo(f"and {background:,} bytes for the background of {graph.entities:,} entities", err=True)
    if not dry_run:
        encoder = encoders.load(prepared.text_encoder(weights.network, wanted))
        prepared.prepare(index.store, index.build_id, graph, weights, encoder, wanted.mode == "bounded")
    if json_:
        print_json({**sizes, "written": not dry_run})
