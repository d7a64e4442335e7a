"""A set of weights in the form that the passes work with: what depends on no query, done once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from hybrid_ir.errors import BadInput
from hybrid_ir.graph.gfm.network import GFM, Layer

Products = Literal["float32", "bfloat16"]


class Projected:
    """Weights with the relations of one graph projected by every layer.

    Memory: layers x relations and inverses x dimension x 4 bytes, beside the weights.
    """

    def __init__(self, network: GFM, relation_vectors: Tensor, products: Products = "float32") -> None:
        """``relation_vectors``: text vectors of the relations, then of the inverses.

        Raises BadInput where they are of another text encoder.
        """
        if relation_vectors.ndim != 2 or relation_vectors.shape[1] != network.config.text_dimension:
            raise BadInput(
                f"Relation vectors of shape {tuple(relation_vectors.shape)}; these weights need vectors of "
                f"{network.config.text_dimension} dimensions, made by {network.config.text_encoder}."
            )
        self.network, self.config = network, network.config
        self._dtype = getattr(torch, products)
        layers: list[Layer] = list(network.entity_model.layers)  # type: ignore[arg-type]
        self.layers = [SplitLayer(layer, self._dtype) for layer in layers]
        with torch.inference_mode():
            mapped = network.rel_mlp(relation_vectors)
            self.relations = [layer.relation_projection(mapped).numpy() for layer in layers]
        """R of each layer, shape (relations and inverses, dimension)."""
        first, self._last = network.entity_model.head
        self._hidden_bias = first.bias.to(self._dtype)
        self._hidden = [_columns(first.weight, half, self._dtype) for half in (0, 1)]

    def question(self, vectors: Tensor) -> Tensor:
        """q of text vectors of shape (queries, text dimension)."""
        if vectors.shape[-1] != self.config.text_dimension:
            raise BadInput(
                f"The question's vector has {vectors.shape[-1]} dimensions; these weights need "
                f"{self.config.text_dimension}."
            )
        q: Tensor = self.network.question_mlp(vectors)
        return q

    def logits(self, states: Tensor, q: Tensor) -> Tensor:
        """The score of last states of shape (nodes, queries, dimension): shape (nodes, queries)."""
        hidden = self._of_state(states.reshape(-1, states.shape[2])).view(*states.shape[:2], -1)
        scores: Tensor = torch.relu(hidden.add_(self._of_question(q))).float() @ self._last.weight[0] + self._last.bias
        return scores

    def hidden(self, states: Tensor) -> Tensor:
        """What states of shape (nodes, dimension) give to the score's hidden layer; shape (nodes, 2 dimension)."""
        return self._of_state(states).float()

    def head(self, q: Tensor) -> Head:
        """How one question, q of shape (dimension,), turns :meth:`hidden` rows into logits."""
        return Head(self._of_question(q).float().numpy(), self._last.weight[0].numpy(), float(self._last.bias))

    def _of_state(self, states: Tensor) -> Tensor:
        return states.to(self._dtype) @ self._hidden[0]

    def _of_question(self, q: Tensor) -> Tensor:
        return q.to(self._dtype) @ self._hidden[1] + self._hidden_bias


@dataclass(frozen=True)
class Head:
    """logit = bias + last . relu(hidden + constant)."""

    constant: NDArray[np.float32]
    last: NDArray[np.float32]
    bias: float


class SplitLayer:
    """A layer's linear map as two products, for the state and for what was heard."""

    def __init__(self, layer: Layer, dtype: torch.dtype) -> None:
        self._of_state, self._of_heard = (_columns(layer.linear.weight, half, dtype) for half in (0, 1))
        self._bias, self._norm, self._dtype = layer.linear.bias, layer.layer_norm, dtype

    def __call__(self, x: Tensor, u: Tensor) -> Tensor:
        """The layer's new states for rows of x and u."""
        if self._dtype == torch.float32:
            h = torch.addmm(self._bias, x, self._of_state).addmm_(u, self._of_heard)
        else:
            h = (x.to(self._dtype) @ self._of_state).float() + (u.to(self._dtype) @ self._of_heard).float() + self._bias
        return self._norm(h).relu_().add_(x)  # type: ignore[no-any-return]

    def idle(self) -> Tensor:
        """The state after the first layer of a node that neither is a seed nor hears one; shape (dimension,)."""
        idle: Tensor = torch.relu(self._norm(self._bias[None]))[0]
        return idle


def check_seeds(seeds: Sequence[Mapping[int, float]], nodes: int) -> None:
    for given in seeds:
        for node in given:
            if not 0 <= node < nodes:
                raise BadInput(f"Seed {node} is not an entity of this graph (0 to {nodes - 1}).")


def _columns(weight: Tensor, half: int, dtype: torch.dtype) -> Tensor:
    """The half of a weight of shape (out, 2 in) that meets x (0) or u (1), as (in, out)."""
    width = weight.shape[1] // 2
    return weight[:, half * width : (half + 1) * width].T.contiguous().to(dtype)
