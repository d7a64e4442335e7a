"""What the GFM benchmarks share: skewed random graphs, a made M, questions, a small trained network, the scorer."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import torch
from gfm_exact import queries, skewed_graph
from torch import Tensor

from hybrid_ir.graph.gfm.bounded import BoundedGFM
from hybrid_ir.graph.gfm.candidates import Candidates
from hybrid_ir.graph.gfm.config import GFMConfig
from hybrid_ir.graph.gfm.exact import ExactGFM
from hybrid_ir.graph.gfm.network import GFM
from hybrid_ir.graph.gfm.owner import LocalOwners
from hybrid_ir.graph.gfm.prepared import find_prior
from hybrid_ir.graph.gfm.projection import Projected
from hybrid_ir.graph.gfm.scorer import GFMScorer, Near
from hybrid_ir.graph.messages import MessageGraph
from hybrid_ir.graph.rankers import Ranker
from hybrid_ir.graph.store import StoredGraph

TRAINED_RELATIONS = 200
BATCH, SUBGRAPH = 8, 2000
"""Triples a step of the training, and nodes of the part of the graph that they are asked in."""


@dataclass(frozen=True)
class Setting:
    model: GFM
    graph: MessageGraph
    stored: StoredGraph
    """With M alone: the rest is not read by the scorer."""
    vectors: Tensor
    questions: Tensor
    seeds: list[dict[int, float]]


class Vectors:
    """Questions by number, so that no text encoder is in the times."""

    fingerprint = {"model": "vectors"}  # noqa: RUF012

    def __init__(self, vectors: Tensor) -> None:
        self._vectors, self.dimension = vectors.numpy(), vectors.shape[1]

    def encode_queries(self, texts: Sequence[str]) -> np.ndarray:
        return self._vectors[[int(text) for text in texts]]

    def encode_passages(self, titles: Sequence[str], texts: Sequence[str]) -> np.ndarray:
        return self.encode_queries(texts)


def setting(nodes: int, count: int, trained: bool = False, minutes: float = 0, weights: Path | None = None) -> Setting:
    """Five triples a node; ``count`` questions.  ``weights``: a trained network is read from there, or kept there."""
    relations = TRAINED_RELATIONS if trained else min(80_000, max(nodes * 8 // 10 // 2 * 2, 2))
    graph, half = skewed_graph(nodes, 5 * nodes, relations), relations // 2
    torch.manual_seed(1)
    vectors = torch.randn(relations, GFMConfig().text_dimension)
    if trained:  # `inverse_treats` is encoded close to `treats`
        vectors[half:] = vectors[:half] + 0.5 * vectors[half]
        if weights and weights.exists():
            model = GFM(small(vectors)).eval().requires_grad_(False)
            model.load_state_dict(torch.load(weights, weights_only=True))
        else:
            model = train(graph, vectors, minutes)
            if weights:
                torch.save(model.state_dict(), weights)
        questions, seeds, answers = ask(graph, vectors, count, np.random.default_rng(7))
        reached = [
            (row >= row[answer]).sum()
            for row, answer in zip(_exact(model, vectors, graph, questions, seeds), answers, strict=True)
        ]
        print(
            f"{nodes} nodes: the asked triple's tail is among the exact pass's first 20 in "
            f"{np.mean(np.array(reached) <= 20):.2f} of the questions, median place {np.median(reached):.0f}"
        )
    else:
        torch.manual_seed(0)
        model = GFM(GFMConfig()).eval().requires_grad_(False)
        questions, seeds = queries(graph, count)
    return Setting(model, graph, with_mentions(graph), vectors, questions, seeds)


def _exact(
    model: GFM, vectors: Tensor, graph: MessageGraph, questions: Tensor, seeds: list[dict[int, float]]
) -> np.ndarray:
    exact = ExactGFM(Projected(model, vectors), graph)
    return np.concatenate([exact.score(questions[at : at + 8], seeds[at : at + 8]) for at in range(0, len(seeds), 8)])


def with_mentions(graph: MessageGraph, seed: int = 5) -> StoredGraph:
    """M: three chunks an entity, more for those with many edges; a third as many chunks as entities."""
    random = np.random.default_rng(seed)
    degree = np.diff(graph.indptr)
    chunks = max(graph.nodes // 3, 1)
    count = 1 + np.minimum(random.poisson(2.0 * degree / degree.mean()), chunks - 1)
    pairs = np.repeat(np.arange(graph.nodes), count) * chunks + random.integers(0, chunks, int(count.sum()))
    entity, chunk = np.divmod(np.unique(pairs), chunks)
    indptr = np.concatenate([[0], np.cumsum(np.bincount(entity, minlength=graph.nodes))])
    none = np.zeros(0, np.int64)
    return StoredGraph(
        entity_names=pa.nulls(graph.nodes),
        document_counts=np.diff(indptr),
        relation_names=pa.nulls(graph.relations),
        chunks=chunks,
        edge_indptr=none,
        edge_source=none,
        edge_relation=none.astype(np.int32),
        edge_weight=none.astype(np.float32),
        mention_indptr=indptr,
        mention_chunk=chunk,
        link_indptr=none,
        link_target=none,
        link_weight=none.astype(np.float32),
        link_kind=none.astype(np.int8),
    )


def scorers(
    held: Setting, exact: ExactGFM, owners: LocalOwners, actives: Sequence[int], ranker: Ranker = "softmax"
) -> tuple[GFMScorer, dict[int, GFMScorer], dict[int, Near]]:
    """The exact scorer, and a bounded one for each K, over all of one graph."""
    stored, encoder, same = held.stored, Vectors(held.questions), np.arange(held.graph.nodes)
    start = time.perf_counter()
    prior = find_prior(exact.projected, owners, same, held.vectors.numpy(), stored)
    print(f"prior: {len(prior.entities)} entities and {len(prior.chunks)} chunks, {time.perf_counter() - start:.1f} s")
    near = {
        active: Near(
            BoundedGFM(exact.projected, owners, active),
            Candidates(stored.mention_indptr, stored.mention_chunk, stored.chunks, prior, active),
        )
        for active in actives
    }

    def scorer(mode: Near | None) -> GFMScorer:
        return GFMScorer(stored, same, same, encoder, lambda: exact, mode, ranker)

    return scorer(None), {active: scorer(mode) for active, mode in near.items()}, near


def ask(
    graph: MessageGraph, vectors: Tensor, count: int, random: np.random.Generator
) -> tuple[Tensor, list[dict[int, float]], np.ndarray]:
    """Triples as questions: a relation's vector, the head among up to three other seeds; and the tails."""
    at = random.choice(np.flatnonzero(graph.relation < graph.relations), count, replace=False)
    heads = np.searchsorted(graph.indptr, at, side="right") - 1
    seeds = [
        {int(n): 0.5 for n in random.integers(0, graph.nodes, random.integers(0, 4))} | {int(head): 0.5}
        for head in heads
    ]
    return vectors[graph.relation[at].astype(np.int64)], seeds, graph.source[at].astype(np.int64)


def small(vectors: Tensor) -> GFMConfig:
    return GFMConfig(text_dimension=vectors.shape[1], dimension=64)


def train(graph: MessageGraph, vectors: Tensor, minutes: float) -> GFM:
    """A small network that finds tails from heads and relations: softmax over the nodes of a part of the graph."""
    torch.manual_seed(0)
    model = GFM(small(vectors))
    optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3)
    random, end, losses = np.random.default_rng(1), time.process_time() + 60 * minutes, []
    while time.process_time() < end:
        questions, seeds, answers = ask(graph, vectors, BATCH, random)
        nodes, edges, kinds = part(graph, seeds, answers, random)
        logits = batched(
            model, questions, [_within(given, nodes) for given in seeds], edges, kinds, vectors, len(nodes)
        )
        loss = torch.nn.functional.cross_entropy(logits, torch.from_numpy(np.searchsorted(nodes, answers)))
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        losses.append(float(loss.detach()))
    last = losses[-max(1, len(losses) // 5) :]
    chance = np.log(len(nodes))
    print(f"trained {len(losses)} steps: loss {np.mean(losses[:10]):.2f} -> {np.mean(last):.2f} (chance {chance:.2f})")
    return model.eval().requires_grad_(False)


def part(
    graph: MessageGraph, seeds: list[dict[int, float]], answers: np.ndarray, random: np.random.Generator
) -> tuple[np.ndarray, Tensor, Tensor]:
    """Nodes around the seeds and others at random, and the messages among them."""
    inside = np.unique(np.concatenate([answers, *(np.array(list(given)) for given in seeds)]))
    for _ in range(2):
        around = [graph.source[graph.indptr[n] : graph.indptr[n + 1]] for n in inside]
        found = np.concatenate([some[random.permutation(len(some))[:12]] for some in around])
        inside = np.union1d(
            inside,
            random.permutation(np.unique(found))[: SUBGRAPH // 2 - len(inside)]
            if len(inside) < SUBGRAPH // 2
            else inside,
        )
    nodes = np.union1d(inside, random.choice(graph.nodes, min(SUBGRAPH, graph.nodes) - len(inside), replace=False))
    place = np.full(graph.nodes, -1)
    place[nodes] = np.arange(len(nodes))
    degree = graph.indptr[nodes + 1] - graph.indptr[nodes]
    at = np.arange(int(degree.sum())) + np.repeat(graph.indptr[nodes] - (np.cumsum(degree) - degree), degree)
    source, receiver = place[graph.source[at]], np.repeat(np.arange(len(nodes)), degree)
    held = source >= 0
    return (
        nodes,
        torch.from_numpy(np.stack([source, receiver])[:, held]),
        torch.from_numpy(graph.relation[at][held].astype(np.int64)),
    )


def _within(given: dict[int, float], nodes: np.ndarray) -> dict[int, float]:
    return {int(np.searchsorted(nodes, node)): weight for node, weight in given.items()}


def batched(
    model: GFM,
    questions: Tensor,
    seeds: list[dict[int, float]],
    edges: Tensor,
    kinds: Tensor,
    vectors: Tensor,
    nodes: int,
) -> Tensor:
    """Logits of shape (queries, nodes): the queries as copies of the graph beside each other."""
    count = len(seeds)
    q, relations = model.question_mlp(questions), model.rel_mlp(vectors)
    weights = torch.zeros(count, nodes, 1)
    for row, given in enumerate(seeds):
        for node, weight in given.items():
            weights[row, node] = weight
    x = x0 = (weights * q[:, None]).view(count * nodes, -1)
    copies = (edges[:, None] + nodes * torch.arange(count)[:, None]).reshape(2, -1)
    for layer in model.entity_model.layers:
        x = layer(x, x0, copies, kinds.repeat(count), relations)
    asked = q.repeat_interleave(nodes, 0)
    return model.entity_model.mlp(torch.cat([x, asked], dim=-1)).view(count, nodes)
