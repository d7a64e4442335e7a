"""What scoring a build with one set of weights needs beside them, stored beside the build's partitions.

``builds/<build>/gfm-<weights>/``: the text vectors of the build's relations and their inverses, and
where it was asked for, the background of the bounded mode.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from hybrid_ir import encoders
from hybrid_ir.errors import Conflict, NotFound
from hybrid_ir.graph.gfm import background, checkpoint
from hybrid_ir.graph.gfm.background import open_background
from hybrid_ir.graph.gfm.bounded import BoundedGFM
from hybrid_ir.graph.gfm.exact import ExactGFM
from hybrid_ir.graph.gfm.network import GFM
from hybrid_ir.graph.gfm.scorer import GFMScorer
from hybrid_ir.graph.messages import messages_of, relation_texts
from hybrid_ir.graph.store import StoredGraph
from hybrid_ir.index import layout
from hybrid_ir.roles import Encoder
from hybrid_ir.settings import EncoderSettings, GFMSettings
from hybrid_ir.store import Store

TEXTS_PER_BATCH = 4096


@dataclass(frozen=True)
class Weights:
    """A checkpoint with its fingerprint."""

    network: GFM
    fingerprint: str

    @staticmethod
    def of(model: str) -> Weights:
        """From a local folder.  Raises NotFound and BadInput."""
        network = checkpoint.load(model)
        return Weights(network, checkpoint.fingerprint(model))


def text_encoder(network: GFM, settings: GFMSettings) -> EncoderSettings:
    """The encoder of questions and relations: the settings' own, else the one the checkpoint names."""
    if settings.text_encoder is not None:
        return settings.text_encoder
    config = network.config
    return EncoderSettings(
        model=config.text_encoder,
        title="none",
        normalise=config.normalise_text,
        max_query_tokens=384,
        max_passage_tokens=384,
    )


def folder(build_id: str, weights: Weights) -> str:
    return f"{layout.build(build_id)}/gfm-{weights.fingerprint}"


def encode_relations(graph: StoredGraph, encoder: Encoder) -> Tensor:
    """Text vectors of all relations, then of all inverses; shape (2 relations, text dimension)."""
    texts = relation_texts(graph.relation_names.to_pylist())
    parts = [
        encoder.encode_passages([""] * len(some), some)
        for some in (texts[at : at + TEXTS_PER_BATCH] for at in range(0, len(texts), TEXTS_PER_BATCH))
    ]
    return torch.from_numpy(np.concatenate(parts))


def prepare(store: Store, build_id: str, graph: StoredGraph, weights: Weights, encoder: Encoder, bounded: bool) -> None:
    """Write what :func:`open_scorer` reads; what stands already is not made again."""
    place = folder(build_id, weights)
    if not store.exists(f"{place}/relations.npy"):
        store.write_array(f"{place}/relations.npy", encode_relations(graph, encoder).numpy())
    if bounded and not store.exists(f"{place}/background.json"):
        exact = open_exact(store, build_id, graph, weights)
        background.write(store, place, exact, weights.fingerprint, build_id)


def open_exact(
    store: Store, build_id: str, graph: StoredGraph, weights: Weights, products: str = "float32"
) -> ExactGFM:
    """Raises NotFound where the build was not prepared for these weights, Conflict where it does not fit."""
    name = f"{folder(build_id, weights)}/relations.npy"
    if not store.exists(name):
        raise NotFound(
            f"{store.path(layout.build(build_id))} is not prepared for these GFM weights; run: "
            "hybrid-ir prepare-gfm --root ROOT --config FILE"
        )
    vectors = torch.from_numpy(np.array(store.array(name), np.float32))
    if len(vectors) != 2 * len(graph.relation_names):
        raise Conflict(
            f"{store.path(name)} holds {len(vectors)} vectors for {len(graph.relation_names)} relations; delete its "
            "folder and run hybrid-ir prepare-gfm again."
        )
    return ExactGFM(weights.network, messages_of(graph), vectors, products)  # type: ignore[arg-type]


def open_scorer(store: Store, build_id: str, graph: StoredGraph, settings: GFMSettings) -> GFMScorer:
    """The graph path's scorer over a prepared build.  Raises NotFound where something is not prepared."""
    weights = Weights.of(settings.model)
    encoder = encoders.load(text_encoder(weights.network, settings))
    exact = open_exact(store, build_id, graph, weights, settings.products)
    bounded = None
    if settings.mode == "bounded":
        held = open_background(store, folder(build_id, weights), weights.fingerprint, build_id)
        bounded = BoundedGFM(exact, held, settings.active)
    return GFMScorer(graph, encoder, exact, bounded, settings.ranker)
