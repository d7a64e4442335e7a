"""What scoring a build with one set of weights needs beside them, stored beside the build's partitions.

``builds/<build>/gfm-<weights>/``: the text vectors of the build's relations and their inverses, and
where it was asked for, the background of the bounded mode.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from hybrid_ir import encoders
from hybrid_ir.errors import Conflict, NotFound
from hybrid_ir.graph.gfm import checkpoint, prior
from hybrid_ir.graph.gfm.background import open_background
from hybrid_ir.graph.gfm.background import write as write_background
from hybrid_ir.graph.gfm.bounded import BoundedGFM
from hybrid_ir.graph.gfm.candidates import Candidates
from hybrid_ir.graph.gfm.exact import ExactGFM
from hybrid_ir.graph.gfm.network import GFM
from hybrid_ir.graph.gfm.owner import LocalOwners, Owners, PartitionOwner
from hybrid_ir.graph.gfm.projection import Products, Projected
from hybrid_ir.graph.gfm.scorer import GFMScorer, Near
from hybrid_ir.graph.knowledge_graph import Numbers
from hybrid_ir.graph.messages import MessageGraph, joined, messages_of_partition, relation_texts
from hybrid_ir.graph.partition_store import open_partition, open_relabelled, read_partitions
from hybrid_ir.graph.store import StoredGraph
from hybrid_ir.index import layout
from hybrid_ir.index.shard_groups import EVERYTHING, ShardGroup
from hybrid_ir.models import require
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
    def of(model: str, revision: str | None = None) -> Weights:
        """From a local folder or a fetched model.  Raises NotFound, BadInput, and Conflict for another revision."""
        held = None if Path(model).is_dir() else require(model, revision)
        folder = held[0] if held else Path(model)
        return Weights(checkpoint.load(folder), checkpoint.fingerprint(folder))


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


class PreparedGraph:
    """G_ent of a build in relabelled ids; a partition's messages are made when they are first asked for."""

    def __init__(self, store: Store, build_id: str, relations: int) -> None:
        place = layout.build(build_id)
        self._relations, self.starts = relations, read_partitions(store, place).starts
        self._parts = [open_partition(store, place, number) for number in range(len(self.starts) - 1)]
        self.numbers: Numbers = np.concatenate([part.entities for part in self._parts])
        """Relabelled id -> entity number."""
        self.labels: Numbers = open_relabelled(store, place)
        """Entity number -> relabelled id."""
        self._messages: dict[int, MessageGraph] = {}

    def messages(self, number: int) -> MessageGraph:
        """Of one partition."""
        if number not in self._messages:
            self._messages[number] = messages_of_partition(self._parts[number], self._relations)
        return self._messages[number]

    @property
    def sizes(self) -> list[int]:
        """Entities of each partition."""
        return [end - start for start, end in pairwise(self.starts)]

    @property
    def partitions(self) -> list[MessageGraph]:
        return [self.messages(number) for number in range(len(self._parts))]


def open_graph(store: Store, build_id: str, graph: StoredGraph) -> PreparedGraph:
    return PreparedGraph(store, build_id, len(graph.relation_names))


def prepare(store: Store, build_id: str, graph: StoredGraph, weights: Weights, encoder: Encoder, bounded: bool) -> None:
    """Write what :func:`open_scorer` reads; what stands already is not made again."""
    place = folder(build_id, weights)
    if not store.exists(f"{place}/relations.npy"):
        store.write_array(f"{place}/relations.npy", encode_relations(graph, encoder).numpy())
    if bounded and not store.exists(f"{place}/background.json"):
        held = open_graph(store, build_id, graph)
        exact = ExactGFM(open_projected(store, build_id, graph, weights), joined(held.partitions))
        write_background(store, place, exact, held.starts, weights.fingerprint, build_id)
    if bounded and not prior.exists(store, place):
        held = open_graph(store, build_id, graph)
        projected = open_projected(store, build_id, graph, weights)
        owners = open_owners(store, build_id, weights, held)
        vectors = np.array(store.array(f"{place}/relations.npy"), np.float32)
        prior.write(store, place, find_prior(projected, owners, held.labels, vectors, graph))


def find_prior(
    projected: Projected, owners: Owners, labels: Numbers, vectors: NDArray[np.float32], graph: StoredGraph
) -> prior.Prior:
    everyone = np.arange(len(labels))

    def logits(vector: NDArray[np.float32]) -> NDArray[np.float32]:
        with torch.inference_mode():
            head = projected.head(projected.question(torch.from_numpy(vector)))
        return owners.resting(everyone, head)[labels]

    return prior.find(logits, vectors, graph.mention_indptr, graph.mention_chunk, graph.chunks)


def open_projected(
    store: Store, build_id: str, graph: StoredGraph, weights: Weights, products: Products = "float32"
) -> Projected:
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
    return Projected(weights.network, vectors, products)


def open_owners(
    store: Store, build_id: str, weights: Weights, held: PreparedGraph, group: ShardGroup = EVERYTHING
) -> LocalOwners:
    """A group's partitions in this process, their backgrounds mapped.  Raises NotFound where there is no background."""
    owners = [
        PartitionOwner(
            held.starts[number],
            held.starts[-1],
            held.messages(number),
            open_background(store, folder(build_id, weights), weights.fingerprint, build_id, number),
        )
        for number in group.held(held.sizes)
    ]
    return LocalOwners(owners, held.starts[-1])


def open_group(
    store: Store, build_id: str, graph: StoredGraph, settings: GFMSettings, group: ShardGroup
) -> LocalOwners:
    """The owners of a group of a prepared build's partitions.  Raises NotFound where something is not prepared."""
    weights = Weights.of(settings.model, settings.revision)
    return open_owners(store, build_id, weights, open_graph(store, build_id, graph), group)


def open_scorer(
    store: Store,
    build_id: str,
    graph: StoredGraph,
    settings: GFMSettings,
    elsewhere: Callable[[PreparedGraph], Owners] | None = None,
) -> GFMScorer:
    """The graph path's scorer over a prepared build.  Raises NotFound where something is not prepared.

    ``elsewhere``: gives the partitions' owners where they are not in this process (bounded mode).
    """
    weights = Weights.of(settings.model, settings.revision)
    encoder = encoders.load(text_encoder(weights.network, settings))
    held = open_graph(store, build_id, graph)
    projected = open_projected(store, build_id, graph, weights, settings.products)
    near = None
    if settings.mode == "bounded":
        owners: Owners = elsewhere(held) if elsewhere else open_owners(store, build_id, weights, held)
        near = Near(
            BoundedGFM(projected, owners, settings.active),
            Candidates(
                graph.mention_indptr,
                graph.mention_chunk,
                graph.chunks,
                prior.open_prior(store, folder(build_id, weights)),
                settings.active,
            ),
        )

    def exact() -> ExactGFM:
        return ExactGFM(projected, joined(held.partitions))

    return GFMScorer(graph, held.labels, held.numbers, encoder, exact, near, settings.ranker)
