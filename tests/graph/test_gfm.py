"""The graph foundation model: its definition, the fast pass, and checkpoints in the published layout."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from hybrid_ir.errors import BadInput, NotFound
from hybrid_ir.graph.gfm.checkpoint import load
from hybrid_ir.graph.gfm.config import GFMConfig
from hybrid_ir.graph.gfm.exact import ExactGFM
from hybrid_ir.graph.gfm.network import GFM
from hybrid_ir.graph.gfm.projection import Projected
from hybrid_ir.graph.messages import MessageGraph, message_graph, relation_texts

SMALL = GFMConfig(text_dimension=12, dimension=8, layers=3)


def small_network(seed: int = 0, config: GFMConfig = SMALL) -> GFM:
    torch.manual_seed(seed)
    network = GFM(config).eval().requires_grad_(False)
    for name, tensor in network.named_parameters():
        if "norm" in name:  # at their starting values a mistake in them would not show
            tensor.copy_(torch.rand_like(tensor) + 0.5)
    return network


def by_the_formula(
    network: GFM,
    triples: list[tuple[int, int, int]],
    nodes: int,
    relations: int,
    question: torch.Tensor,
    seeds: dict[int, float],
    vectors: torch.Tensor,
) -> np.ndarray:
    """Edge by edge in float64 with numpy alone, from the formula of the published forward pass."""
    w = {name: tensor.double().numpy() for name, tensor in network.state_dict().items()}

    def linear(name: str, x: np.ndarray) -> np.ndarray:
        return x @ w[f"{name}.weight"].T + w[f"{name}.bias"]

    q = linear("question_mlp", question.double().numpy())
    mapped = linear("rel_mlp", vectors.double().numpy())
    x0 = np.zeros((nodes, len(q)))
    for node, weight in seeds.items():
        x0[node] = weight * q
    x = x0.copy()
    for number in range(network.config.layers):
        layer = f"entity_model.layers.{number}"
        through = linear(
            f"{layer}.relation_projection.2", np.maximum(linear(f"{layer}.relation_projection.0", mapped), 0)
        )
        u = x0.copy()
        for head, relation, tail in triples:
            u[head] += through[relation] * x[tail]  # head hears tail through r
            u[tail] += through[relation + relations] * x[head]
        h = linear(f"{layer}.linear", np.concatenate([x, u], axis=1))
        h = (h - h.mean(1, keepdims=True)) / np.sqrt(h.var(1, keepdims=True) + 1e-5)
        h = h * w[f"{layer}.layer_norm.weight"] + w[f"{layer}.layer_norm.bias"]
        x = x + np.maximum(h, 0)
    both = np.concatenate([x, np.tile(q, (nodes, 1))], axis=1)
    return linear("entity_model.mlp.2", np.maximum(linear("entity_model.mlp.0", both), 0))[:, 0]


def graph_of(triples: list[tuple[int, int, int]], nodes: int, relations: int) -> MessageGraph:
    head, relation, tail = np.array(triples, np.int64).reshape(-1, 3).T
    return message_graph(head, relation, tail, nodes, relations)


def reference_logits(
    network: GFM, graph: MessageGraph, question: torch.Tensor, seeds: dict[int, float], vectors: torch.Tensor
) -> np.ndarray:
    weights = torch.zeros(graph.nodes)
    for node, weight in seeds.items():
        weights[node] = weight
    receiver = np.repeat(np.arange(graph.nodes), np.diff(graph.indptr))
    edges = torch.from_numpy(np.stack([graph.source.astype(np.int64), receiver]))
    kinds = torch.from_numpy(graph.relation.astype(np.int64))
    return network(question, weights, edges, kinds, vectors).numpy()


@st.composite
def cases(draw: st.DrawFn) -> tuple[int, int, list[tuple[int, int, int]], list[dict[int, float]]]:
    """Graphs with parallel relations, self-loops and isolated nodes; no seed, one, or many."""
    nodes, relations = draw(st.integers(1, 9)), draw(st.integers(1, 4))
    node = st.integers(0, nodes - 1)
    triples = draw(st.lists(st.tuples(node, st.integers(0, relations - 1), node), max_size=25))
    seeds = st.dictionaries(node, st.floats(0.0625, 1.0, width=32), max_size=nodes)
    return nodes, relations, triples, draw(st.lists(seeds, min_size=1, max_size=3))


@given(cases(), st.integers(0, 5))
@settings(max_examples=60, deadline=None)
def test_both_passes_give_the_numbers_of_the_formula(
    case: tuple[int, int, list[tuple[int, int, int]], list[dict[int, float]]], seed: int
) -> None:
    nodes, relations, triples, seeds = case
    network, graph = small_network(seed), graph_of(triples, nodes, relations)
    vectors, questions = torch.randn(2 * relations, 12), torch.randn(len(seeds), 12)
    scores = ExactGFM(Projected(network, vectors), graph).score(questions, seeds)
    assert scores.shape == (len(seeds), nodes)
    for row, marked in enumerate(seeds):
        wanted = by_the_formula(network, triples, nodes, relations, questions[row], marked, vectors)
        np.testing.assert_allclose(reference_logits(network, graph, questions[row], marked, vectors), wanted, atol=1e-4)
        np.testing.assert_allclose(scores[row], wanted, atol=1e-4)


def test_messages_run_from_tail_to_head_through_the_relation() -> None:
    graph = graph_of([(0, 2, 1)], 2, 3)
    assert graph.source.tolist() == [1, 0]  # node 0, the head, hears node 1
    assert graph.relation.tolist() == [2, 5]
    assert relation_texts(["treats", "equivalent"]) == [
        "treats",
        "equivalent",
        "inverse_treats",
        "inverse_equivalent",
    ]


def test_the_full_size_has_the_published_parameters() -> None:
    with torch.device("meta"):
        network = GFM(GFMConfig())
    state = network.state_dict()
    assert len(state) == 56
    assert sum(tensor.numel() for tensor in state.values()) == 8_144_897
    assert tuple(state["entity_model.layers.5.linear.weight"].shape) == (512, 1024)


@pytest.mark.parametrize("queries", [1, 5])
def test_the_blocks_of_a_larger_graph_join_without_a_seam(queries: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("hybrid_ir.graph.gfm.exact.NODES_PER_BLOCK", 64)
    random = np.random.default_rng(3)
    nodes, relations = 300, 7
    head, tail = random.integers(0, nodes, (2, 1500))
    graph = message_graph(head, random.integers(0, relations, 1500), tail, nodes, relations)
    network, vectors, questions = small_network(), torch.randn(14, 12), torch.randn(queries, 12)
    seeds = [{int(n): 0.5 for n in random.integers(0, nodes, 4)} for _ in range(queries)]
    scores = ExactGFM(Projected(network, vectors), graph).score(questions, seeds)
    for row in range(queries):
        wanted = reference_logits(network, graph, questions[row], seeds[row], vectors)
        np.testing.assert_allclose(scores[row], wanted, atol=1e-4)
    rough = ExactGFM(Projected(network, vectors, "bfloat16"), graph).score(questions, seeds)
    assert 0 < np.abs(rough - scores).max() < 0.2


def write_checkpoint(folder: Path, network: GFM, key: str = "rel_emb_dim") -> None:
    """In the published layout, optimizer state beside the model."""
    config = network.config
    entity = {
        "_target_": "gfmrag.ultra.models.QueryNBFNet",
        "input_dim": config.dimension,
        "hidden_dims": [config.dimension] * config.layers,
        "message_func": "distmult",
        "aggregate_func": "sum",
        "short_cut": True,
        "layer_norm": True,
    }
    text = {"text_emb_model_name": "sentence-transformers/all-mpnet-base-v2", "normalize": False}
    model = {"_target_": "gfmrag.models.GNNRetriever", "entity_model": entity, key: config.text_dimension}
    folder.mkdir(exist_ok=True)
    (folder / "config.json").write_text(json.dumps({"text_emb_model_config": text, "model_config": model}))
    torch.save({"model": network.state_dict(), "optimizer": {"state": {}, "lr": 0.1}}, folder / "model.pth")


@pytest.mark.parametrize("key", ["rel_emb_dim", "feat_dim"])
def test_a_checkpoint_in_either_published_layout_loads_and_scores(tmp_path: Path, key: str) -> None:
    network = small_network()
    write_checkpoint(tmp_path, network, key)
    loaded = load(tmp_path)
    graph, vectors, question = graph_of([(0, 0, 1), (1, 1, 2)], 4, 2), torch.randn(4, 12), torch.randn(1, 12)
    scores = ExactGFM(Projected(loaded, vectors), graph).score(question, [{0: 1.0}])
    np.testing.assert_array_equal(scores, ExactGFM(Projected(network, vectors), graph).score(question, [{0: 1.0}]))


def test_a_checkpoint_that_does_not_fit_is_refused_with_the_tensors_names(tmp_path: Path) -> None:
    network = small_network()
    write_checkpoint(tmp_path, network)
    state = network.state_dict()
    for change, words in (
        ({"rel_mlp.bias": None}, "missing: rel_mlp.bias"),
        ({"extra.weight": torch.zeros(2)}, "unknown: extra.weight"),
        ({"rel_mlp.bias": torch.zeros(3)}, r"rel_mlp.bias is \(3,\), expected \(8,\)"),
        ({"rel_mlp.bias": torch.full((8,), float("nan"))}, "NaN or infinite values: rel_mlp.bias"),
    ):
        changed = {k: v for k, v in (state | change).items() if v is not None}
        torch.save({"model": changed}, tmp_path / "model.pth")
        with pytest.raises(BadInput, match=words):
            load(tmp_path)
    torch.save({"weights": state}, tmp_path / "model.pth")
    with pytest.raises(BadInput, match="no entry `model`"):
        load(tmp_path)
    (tmp_path / "model.pth").write_bytes(b"PK\x03\x04 cut short")
    with pytest.raises(BadInput, match="not a whole PyTorch weights file"):
        load(tmp_path)
    (tmp_path / "model.pth").unlink()
    with pytest.raises(NotFound, match=r"model\.pth"):
        load(tmp_path)


def test_code_in_a_checkpoint_is_not_run(tmp_path: Path) -> None:
    class Trap:
        def __reduce__(self) -> tuple[object, tuple[str]]:
            return (Path.touch, (tmp_path / "ran",))  # type: ignore[return-value]

    network = small_network()
    write_checkpoint(tmp_path, network)
    torch.save({"model": network.state_dict(), "optimizer": Trap()}, tmp_path / "model.pth")
    with pytest.raises(BadInput, match="not a whole PyTorch weights file"):
        load(tmp_path)
    assert not (tmp_path / "ran").exists()


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"message_func": "transe"}, "message_func is 'transe'"),
        ({"hidden_dims": [8, 9]}, "hidden_dims"),
        ({"input_dim": "8"}, "input_dim"),
    ],
)
def test_a_config_of_another_network_is_refused(tmp_path: Path, change: dict[str, object], words: str) -> None:
    write_checkpoint(tmp_path, small_network())
    raw = json.loads((tmp_path / "config.json").read_text())
    raw["model_config"]["entity_model"] |= change
    (tmp_path / "config.json").write_text(json.dumps(raw))
    with pytest.raises(BadInput, match=words):
        load(tmp_path)


def test_vectors_of_another_encoder_and_unknown_seeds_are_refused() -> None:
    network, graph = small_network(), graph_of([(0, 0, 1)], 2, 1)
    with pytest.raises(BadInput, match="need vectors of 12 dimensions"):
        ExactGFM(Projected(network, torch.randn(2, 7)), graph)
    with pytest.raises(BadInput, match="1 relation vectors for 1 relations and inverses"):
        ExactGFM(Projected(network, torch.randn(1, 12)), graph)
    scorer = ExactGFM(Projected(network, torch.randn(2, 12)), graph)
    with pytest.raises(BadInput, match="Seed 2 is not an entity"):
        scorer.score(torch.randn(1, 12), [{2: 1.0}])
    with pytest.raises(BadInput, match="has 5 dimensions"):
        scorer.score(torch.randn(1, 5), [{}])
