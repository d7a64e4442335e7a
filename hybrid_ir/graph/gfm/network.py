"""The network as it is defined, in torch-geometric: readable, and the reference for the fast passes.

Parameter names and shapes are those of the published ``model.pth``.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch_geometric.nn import MessagePassing

from hybrid_ir.graph.gfm.config import GFMConfig


class Layer(MessagePassing):  # type: ignore[misc]
    """x <- x + ReLU(LayerNorm(W [x ; u] + b)), u = sum over incoming edges of R[r] * x[source] + x0."""

    def __init__(self, dimension: int) -> None:
        super().__init__(aggr="sum")
        self.layer_norm = nn.LayerNorm(dimension)
        self.linear = nn.Linear(2 * dimension, dimension)
        self.relation_projection = nn.Sequential(
            nn.Linear(dimension, dimension), nn.ReLU(), nn.Linear(dimension, dimension)
        )

    def forward(self, x: Tensor, x0: Tensor, edge_index: Tensor, edge_type: Tensor, relations: Tensor) -> Tensor:
        """``edge_index``: rows source and receiver; ``relations``: of shape (relations and inverses, dimension)."""
        u = self.propagate(edge_index, x=x, through=self.relation_projection(relations)[edge_type]) + x0
        return x + torch.relu(self.layer_norm(self.linear(torch.cat([x, u], dim=-1))))

    def message(self, x_j: Tensor, through: Tensor) -> Tensor:
        return through * x_j


class EntityModel(nn.Module):
    def __init__(self, config: GFMConfig) -> None:
        super().__init__()
        self.layers = nn.ModuleList(Layer(config.dimension) for _ in range(config.layers))
        wide = 2 * config.dimension
        self.mlp = nn.Sequential(nn.Linear(wide, wide), nn.ReLU(), nn.Linear(wide, 1))

    @property
    def head(self) -> tuple[nn.Linear, nn.Linear]:
        """The two linear maps of the score."""
        first, second = self.mlp[0], self.mlp[2]
        assert isinstance(first, nn.Linear) and isinstance(second, nn.Linear)  # noqa: S101, PT018
        return first, second


class GFM(nn.Module):
    """Seeds and a question -> one logit for every entity."""

    def __init__(self, config: GFMConfig) -> None:
        super().__init__()
        self.config = config
        self.entity_model = EntityModel(config)
        self.rel_mlp = nn.Linear(config.text_dimension, config.dimension)
        self.question_mlp = nn.Linear(config.text_dimension, config.dimension)

    def forward(
        self, question: Tensor, seeds: Tensor, edge_index: Tensor, edge_type: Tensor, relation_vectors: Tensor
    ) -> Tensor:
        """Logits of shape (nodes,).

        ``question``: its text vector; ``seeds``: each node's seed weight, 0 for most;
        ``relation_vectors``: text vectors of the relations, then of the inverses.
        """
        q = self.question_mlp(question)
        relations = self.rel_mlp(relation_vectors)
        x = x0 = seeds[:, None] * q
        for layer in self.entity_model.layers:
            x = layer(x, x0, edge_index, edge_type, relations)
        logits: Tensor = self.entity_model.mlp(torch.cat([x, q.expand_as(x)], dim=-1)).squeeze(-1)
        return logits
