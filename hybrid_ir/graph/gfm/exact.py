"""The exact forward pass on a CPU or GPU, made fast: the same numbers, fewer bytes.

What is saved against the definition in :mod:`network`: relations are projected once for all
queries; messages lie in receiver order and are gathered, multiplied and summed in one pass; the
product with [x ; u] is two products without a concatenation; a layer is done in blocks of nodes
that stay in the cache; the first layer, where only seeds have a state, is done where they are
heard; only two copies of the states exist.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Literal

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from hybrid_ir.errors import BadInput
from hybrid_ir.graph.gfm.network import GFM, Layer
from hybrid_ir.graph.messages import MessageGraph

Products = Literal["float32", "bfloat16"]
NODES_PER_BLOCK = 2048


def project_relations(network: GFM, relation_vectors: Tensor) -> list[Tensor]:
    """R of each layer, of shape (relations and inverses, dimension); they depend on no query.

    Raises BadInput where the vectors are of another text encoder.
    """
    if relation_vectors.ndim != 2 or relation_vectors.shape[1] != network.config.text_dimension:
        raise BadInput(
            f"Relation vectors of shape {tuple(relation_vectors.shape)}; these weights need vectors of "
            f"{network.config.text_dimension} dimensions, made by {network.config.text_encoder}."
        )
    with torch.inference_mode():
        mapped = network.rel_mlp(relation_vectors)
        return [layer.relation_projection(mapped) for layer in network.entity_model.layers]  # type: ignore[operator]


class ExactGFM:
    """Scores every entity of one graph with one set of weights.

    Memory beyond weights and graph: the projections, layers x relations x dimension x 4 bytes, and
    for a batch of B queries 2 x nodes x B x dimension x 4 bytes of states.
    """

    def __init__(
        self, network: GFM, graph: MessageGraph, relation_vectors: Tensor, products: Products = "float32"
    ) -> None:
        self.network, self.graph = network, graph
        self._dtype = getattr(torch, products)
        self.projected = [rows.numpy() for rows in project_relations(network, relation_vectors)]
        if 2 * graph.relations > len(relation_vectors):
            raise BadInput(f"{len(relation_vectors)} relation vectors for {graph.relations} relations and inverses.")
        layers: list[Layer] = list(network.entity_model.layers)  # type: ignore[arg-type]
        self.layers = [SplitLayer(layer, self._dtype) for layer in layers]
        first, self._last = network.entity_model.head
        self._hidden_bias = first.bias.to(self._dtype)
        self._hidden = [_columns(first.weight, half, self._dtype) for half in (0, 1)]

    def score(self, questions: Tensor, seeds: Sequence[Mapping[int, float]]) -> NDArray[np.float32]:
        """Logits of shape (queries, nodes); ``questions``: text vectors of shape (queries, text dimension)."""
        self.check(questions, seeds)
        with torch.inference_mode():
            q = self.network.question_mlp(questions)
            states = self._first_layer(q, seeds)
            other = np.empty_like(states)
            for number in range(1, self.network.config.layers):
                for _ in self.run_layer(number, states, other, q, seeds):
                    pass
                states, other = other, states
            del other
            logits = np.empty((len(questions), self.graph.nodes), np.float32)
            for first in range(0, self.graph.nodes, NODES_PER_BLOCK):
                block = states[first : first + NODES_PER_BLOCK]
                logits[:, first : first + len(block)] = self.logits(torch.from_numpy(block), q).T.numpy()
            return logits

    def check(self, questions: Tensor, seeds: Sequence[Mapping[int, float]]) -> None:
        """Raises BadInput where a seed is not in the graph or a vector is of another encoder."""
        for given in seeds:
            for node in given:
                if not 0 <= node < self.graph.nodes:
                    raise BadInput(f"Seed {node} is not an entity of this graph (0 to {self.graph.nodes - 1}).")
        if questions.shape[-1] != self.network.config.text_dimension:
            raise BadInput(
                f"The question's vector has {questions.shape[-1]} dimensions; these weights need "
                f"{self.network.config.text_dimension}."
            )

    def idle_states(self, queries: int = 1) -> NDArray[np.float32]:
        """After the first layer, of nodes that neither are seeds nor hear one: one and the same state."""
        layer = self.layers[0]
        idle = torch.relu(layer.norm(layer.bias[None]))[0]
        states = np.empty((self.graph.nodes, queries, len(idle)), np.float32)
        states[:] = idle.numpy()
        return states

    def _first_layer(self, q: Tensor, seeds: Sequence[Mapping[int, float]]) -> NDArray[np.float32]:
        graph, projected, dimension = self.graph, self.projected[0], q.shape[1]
        states = self.idle_states(len(q))
        for number, given in enumerate(seeds):
            if not given:
                continue
            nodes = np.array(sorted(given), np.int64)
            weight = np.array([given[int(node)] for node in nodes], np.float32)
            # Messages are symmetric: whoever hears a seed is heard by it, through the other direction.
            at = _ranges(graph.indptr[nodes], graph.indptr[nodes + 1])
            by = np.repeat(weight, graph.indptr[nodes + 1] - graph.indptr[nodes])
            hearer, back = graph.source[at].astype(np.int64), _inverse(graph.relation[at], graph.relations)
            touched, place = np.unique(np.concatenate([nodes, hearer]), return_inverse=True)
            heard = torch.zeros(len(touched), dimension)
            heard.index_add_(0, torch.from_numpy(place[len(nodes) :]), torch.from_numpy(projected[back] * by[:, None]))
            own = torch.zeros(len(touched), 1)
            own[torch.from_numpy(place[: len(nodes)]), 0] = torch.from_numpy(weight)
            x = own * q[number]
            states[touched, number] = self.layers[0](x, heard * q[number] + x).numpy()
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

        graph, layer = self.graph, self.layers[number]
        _, queries, dimension = states.shape
        size = max(1, NODES_PER_BLOCK // queries)
        buffer = np.empty((size, queries, dimension), np.float32)
        for first in range(0, graph.nodes, size):
            end = min(first + size, graph.nodes)
            u = buffer[: end - first]
            aggregate(graph.indptr, graph.source, graph.relation, self.projected[number], states, first, u)
            for query, given in enumerate(seeds):
                for node, weight in given.items():
                    if first <= node < end and q is not None:
                        u[node - first, query] += weight * q[query].numpy()
            x = torch.from_numpy(states[first:end]).view(-1, dimension)
            torch.from_numpy(out[first:end]).view(-1, dimension).copy_(
                layer(x, torch.from_numpy(u).view(-1, dimension))
            )
            yield first, end, u

    def logits(self, states: Tensor, q: Tensor) -> Tensor:
        """The score of last states of shape (nodes, queries, dimension): shape (nodes, queries)."""
        of_state, of_question = self._hidden
        constant = q.to(self._dtype) @ of_question + self._hidden_bias
        hidden = (states.reshape(-1, states.shape[2]).to(self._dtype) @ of_state).view(*states.shape[:2], -1)
        scores: Tensor = torch.relu(hidden.add_(constant)).float() @ self._last.weight[0] + self._last.bias
        return scores


class SplitLayer:
    """A layer's linear map as two products, for the state and for what was heard."""

    def __init__(self, layer: Layer, dtype: torch.dtype) -> None:
        self._of_state, self._of_heard = (_columns(layer.linear.weight, half, dtype) for half in (0, 1))
        self.bias, self.norm, self._dtype = layer.linear.bias, layer.layer_norm, dtype

    def __call__(self, x: Tensor, u: Tensor) -> Tensor:
        """The layer's new states for rows of x and u."""
        if self._dtype == torch.float32:
            h = torch.addmm(self.bias, x, self._of_state).addmm_(u, self._of_heard)
        else:
            h = (x.to(self._dtype) @ self._of_state).float() + (u.to(self._dtype) @ self._of_heard).float() + self.bias
        return self.norm(h).relu_().add_(x)  # type: ignore[no-any-return]


def _columns(weight: Tensor, half: int, dtype: torch.dtype) -> Tensor:
    """The half of a weight of shape (out, 2 in) that meets x (0) or u (1), as (in, out)."""
    width = weight.shape[1] // 2
    return weight[:, half * width : (half + 1) * width].T.contiguous().to(dtype)


def _inverse(relation: NDArray[np.int32], relations: int) -> NDArray[np.int32]:
    inverse: NDArray[np.int32] = np.where(relation < relations, relation + relations, relation - relations)
    return inverse


def _ranges(starts: NDArray[np.int64], ends: NDArray[np.int64]) -> NDArray[np.int64]:
    """All numbers of all ranges, in order."""
    count = ends - starts
    numbers: NDArray[np.int64] = np.arange(int(count.sum())) + np.repeat(starts - (np.cumsum(count) - count), count)
    return numbers
