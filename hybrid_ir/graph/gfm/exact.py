"""The exact forward pass on a CPU or GPU, made fast: the same numbers, fewer bytes.

What is saved against the definition in :mod:`network`: relations are projected once for all
queries; messages lie in receiver order and are gathered, multiplied and summed in one pass; the
product with [x ; u] is two products without a concatenation; a layer is done in blocks of nodes
that stay in the cache; the first layer, where only seeds have a state, is done where they are
heard; only two copies of the states exist.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from hybrid_ir.errors import BadInput
from hybrid_ir.graph.gfm.projection import Projected, check_seeds
from hybrid_ir.graph.knowledge_graph import ranges
from hybrid_ir.graph.messages import MessageGraph, inverse

NODES_PER_BLOCK = 2048


class ExactGFM:
    """Scores every entity of one graph with one set of weights.

    Memory beyond weights and graph, for a batch of B queries: 2 x nodes x B x dimension x 4 bytes.
    """

    def __init__(self, projected: Projected, graph: MessageGraph) -> None:
        held = len(projected.relations[0])
        if 2 * graph.relations > held:
            raise BadInput(f"{held} relation vectors for {graph.relations} relations and inverses.")
        self.projected, self.graph = projected, graph

    def score(self, questions: Tensor, seeds: Sequence[Mapping[int, float]]) -> NDArray[np.float32]:
        """Logits of shape (queries, nodes); ``questions``: text vectors of shape (queries, text dimension)."""
        check_seeds(seeds, self.graph.nodes)
        with torch.inference_mode():
            q = self.projected.question(questions)
            states = self.states(q, seeds)
            logits = np.empty((len(questions), self.graph.nodes), np.float32)
            for first in range(0, self.graph.nodes, NODES_PER_BLOCK):
                block = states[first : first + NODES_PER_BLOCK]
                logits[:, first : first + len(block)] = self.projected.logits(torch.from_numpy(block), q).T.numpy()
            return logits

    def states(self, q: Tensor, seeds: Sequence[Mapping[int, float]]) -> NDArray[np.float32]:
        """The last states, shape (nodes, queries, dimension); ``q``: of shape (queries, dimension)."""
        states = self._first_layer(q, seeds)
        other = np.empty_like(states)
        for number in range(1, self.projected.config.layers):
            for _ in self.run_layer(number, states, other, q, seeds):
                pass
            states, other = other, states
        return states

    def idle_states(self, queries: int = 1) -> NDArray[np.float32]:
        """After the first layer, of nodes that neither are seeds nor hear one: one and the same state."""
        idle = self.projected.layers[0].idle()
        states = np.empty((self.graph.nodes, queries, len(idle)), np.float32)
        states[:] = idle.numpy()
        return states

    def _first_layer(self, q: Tensor, seeds: Sequence[Mapping[int, float]]) -> NDArray[np.float32]:
        graph, projected, dimension = self.graph, self.projected.relations[0], q.shape[1]
        states = self.idle_states(len(q))
        for number, given in enumerate(seeds):
            if not given:
                continue
            nodes = np.array(sorted(given), np.int64)
            weight = np.array([given[int(node)] for node in nodes], np.float32)
            # Messages are symmetric: whoever hears a seed is heard by it, through the other direction.
            at = ranges(graph.indptr[nodes], graph.indptr[nodes + 1])
            by = np.repeat(weight, graph.indptr[nodes + 1] - graph.indptr[nodes])
            hearer, back = graph.source[at].astype(np.int64), inverse(graph.relation[at], graph.relations)
            touched, place = np.unique(np.concatenate([nodes, hearer]), return_inverse=True)
            heard = torch.zeros(len(touched), dimension)
            heard.index_add_(0, torch.from_numpy(place[len(nodes) :]), torch.from_numpy(projected[back] * by[:, None]))
            own = torch.zeros(len(touched), 1)
            own[torch.from_numpy(place[: len(nodes)]), 0] = torch.from_numpy(weight)
            x = own * q[number]
            states[touched, number] = self.projected.layers[0](x, heard * q[number] + x).numpy()
        return states

    def run_layer(
        self,
        number: int,
        states: NDArray[np.float32],
        out: NDArray[np.float32],
        q: Tensor | None = None,
        seeds: Sequence[Mapping[int, float]] = (),
    ) -> Iterator[tuple[int, int, NDArray[np.float32]]]:
        """Layer ``number`` from ``states`` to ``out``, block by block: (first node, end, what the block heard)."""
        from hybrid_ir.graph.gfm.kernels import aggregate  # compiles with numba: only who scores waits for it

        graph, layer, projected = self.graph, self.projected.layers[number], self.projected.relations[number]
        _, queries, dimension = states.shape
        size = max(1, NODES_PER_BLOCK // queries)
        buffer = np.empty((size, queries, dimension), np.float32)
        for first in range(0, graph.nodes, size):
            end = min(first + size, graph.nodes)
            u = buffer[: end - first]
            aggregate(graph.indptr, graph.source, graph.relation, projected, states, first, u)
            for query, given in enumerate(seeds):
                for node, weight in given.items():
                    if first <= node < end and q is not None:
                        u[node - first, query] += weight * q[query].numpy()
            x = torch.from_numpy(states[first:end]).view(-1, dimension)
            torch.from_numpy(out[first:end]).view(-1, dimension).copy_(
                layer(x, torch.from_numpy(u).view(-1, dimension))
            )
            yield first, end, u
