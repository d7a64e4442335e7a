"""The network's trajectory without seeds: what every node's state is when nothing was asked.

It depends on the weights and the graph alone, so it is computed once and a query only changes
it near its seeds.  Stored as bfloat16: of each layer but the first its input states and what is
heard in it (the first's are zero without seeds), and of the score's hidden layer what the last
state gives it, so that the score of a node that a query does not move costs one product of vectors:
2 x layers x dimension x 2 bytes a node, 12 KiB for GFM-RAG-8M.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import torch
from numpy.typing import NDArray
from pydantic import ValidationError
from torch import Tensor

from hybrid_ir.errors import BadInput, Conflict, NotFound
from hybrid_ir.graph.gfm.config import GFMConfig
from hybrid_ir.graph.gfm.exact import NODES_PER_BLOCK, ExactGFM
from hybrid_ir.records import Record
from hybrid_ir.store import FileEntry, Store

Bits = NDArray[np.uint16]
"""bfloat16, which numpy does not know, as its 16 bits; shape (nodes, dimension)."""


class BackgroundInfo(Record):
    """What a stored background belongs to; written last."""

    weights: str
    """Fingerprint of the checkpoint."""
    graph: str
    """The build whose graph it is of."""
    starts: tuple[int, ...]
    """The first node of each partition, and after them the number of nodes."""
    dimension: int
    layers: int
    hidden: int
    """Width of the score's hidden layer."""


@dataclass(frozen=True)
class Background:
    """``states[l]`` is what goes into layer l and ``heard[l]`` its aggregate (None for the first, where both are
    zero); ``hidden``: see :meth:`Projected.hidden`, shape (nodes, 2 dimension)."""

    states: list[Bits | None]
    heard: list[Bits | None]
    hidden: Bits


def bytes_needed(config: GFMConfig, nodes: int) -> int:
    """Of a stored background; said before it is written."""
    return 2 * config.layers * config.dimension * 2 * nodes


def compute(exact: ExactGFM) -> Background:
    """Run the network once without seeds and keep all of it in memory."""
    states: list[Bits | None] = [None]
    heard: list[Bits | None] = [None]
    hidden = np.zeros((0, 0), np.uint16)
    for kind, _, bits in trajectory(exact):
        if kind == "hidden":
            hidden = bits
        else:
            (states if kind == "states" else heard).append(bits)
    return Background(states, heard, hidden)


def trajectory(exact: ExactGFM) -> Iterator[tuple[str, int, Bits]]:
    """The network without seeds, one array after the other: ("states" | "heard", layer, bits), at last "hidden".

    Memory: twice the fp32 states, and one array.
    """
    graph, config = exact.graph, exact.projected.config
    with torch.inference_mode():
        now = exact.idle_states()
        other = np.empty_like(now)
        for number in range(1, config.layers):
            yield "states", number, to_bits(now[:, 0])
            aggregate = np.empty((graph.nodes, config.dimension), np.uint16)
            for first, end, u in exact.run_layer(number, now, other):
                aggregate[first:end] = to_bits(u[:, 0])
            yield "heard", number, aggregate
            del aggregate
            now, other = other, now
        hidden = np.empty((graph.nodes, 2 * config.dimension), np.uint16)
        for first in range(0, graph.nodes, NODES_PER_BLOCK):
            block = torch.from_numpy(now[first : first + NODES_PER_BLOCK, 0])
            hidden[first : first + len(block)] = to_bits(exact.projected.hidden(block).numpy())
        yield "hidden", config.layers, hidden


def write(
    store: Store, folder: str, exact: ExactGFM, starts: Sequence[int], weights: str, graph: str
) -> dict[str, FileEntry]:
    """Compute and store under ``folder``, the rows of each partition apart; its ``background.json`` comes last.

    ``starts``: the first node of each partition, and after them the number of nodes.
    """
    files: dict[str, FileEntry] = {}

    for kind, layer, bits in trajectory(exact):
        for number, (first, end) in enumerate(pairwise(starts)):
            name = _array(folder, number, kind, layer)
            files[name] = store.write_array(name, bits[first:end])
    config = exact.projected.config
    info = BackgroundInfo(
        weights=weights,
        graph=graph,
        starts=tuple(starts),
        dimension=config.dimension,
        layers=config.layers,
        hidden=2 * config.dimension,
    )
    name = f"{folder}/background.json"
    files[name] = store.write(name, (info.model_dump_json() + "\n").encode())
    return files


def open_background(store: Store, folder: str, weights: str, graph: str, partition: int = 0) -> Background:
    """Map one partition's rows.  Raises NotFound, and Conflict where it is of other weights or another graph."""
    name = f"{folder}/background.json"
    if not store.exists(name):
        raise NotFound(f"{store.path(folder)} holds no background; make one, or use the exact mode.")
    try:
        info = BackgroundInfo.model_validate_json(store.read(name))
    except ValidationError:
        raise Conflict(
            f"{store.path(name)} was made by another version; delete its folder and run prepare-gfm."
        ) from None
    for what, held, wanted in (("weights", info.weights, weights), ("graph", info.graph, graph)):
        if held != wanted:
            raise Conflict(f"{store.path(folder)} was made with the {what} {held}, not {wanted}; make it again.")

    rows = info.starts[partition + 1] - info.starts[partition]

    def array(kind: str, layer: int, width: int = info.dimension) -> Bits:
        name = _array(folder, partition, kind, layer)
        found: Bits = store.array(name)
        if found.shape != (rows, width) or found.dtype != np.uint16:
            raise BadInput(f"{store.path(name)}: shape {found.shape}, not of this background.")
        return found

    states: list[Bits | None] = [None, *(array("states", layer) for layer in range(1, info.layers))]
    heard: list[Bits | None] = [None, *(array("heard", layer) for layer in range(1, info.layers))]
    return Background(states, heard, array("hidden", info.layers, info.hidden))


def _array(folder: str, partition: int, kind: str, layer: int) -> str:
    return f"{folder}/partition-{partition:05d}/{kind}-{layer}.npy"


def to_bits(rows: NDArray[np.float32]) -> Bits:
    """fp32 -> the bits of the nearest bfloat16."""
    out = np.empty(rows.shape, np.uint16)
    for first in range(0, len(rows), NODES_PER_BLOCK):
        block = torch.from_numpy(np.ascontiguousarray(rows[first : first + NODES_PER_BLOCK])).to(torch.bfloat16)
        out[first : first + len(block)] = block.view(torch.uint16).numpy()
    return out


def from_bits(bits: Bits) -> Tensor:
    """The bits of bfloat16 -> fp32."""
    return torch.from_numpy(np.ascontiguousarray(bits)).view(torch.bfloat16).float()
