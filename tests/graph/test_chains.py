"""Chains of triples from seeds to entities."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hybrid_ir.graph.chains import MOST_HOPS, Step, chains
from hybrid_ir.graph.messages import MessageGraph, message_graph


def graph_of(triples: list[tuple[int, int, int]], nodes: int, relations: int = 3) -> MessageGraph:
    head, relation, tail = np.array(triples, np.int64).reshape(-1, 3).T
    return message_graph(head, relation, tail, nodes, relations)


def test_a_chain_reads_as_the_triples_stand_whichever_way_it_walks() -> None:
    caves, bats, virus = 0, 1, 2
    graph = graph_of([(caves, 0, bats), (virus, 1, bats)], 3)
    (chain,) = chains(graph, {caves: 2.0}, [virus], damping=0.5)
    assert chain.steps == (Step(caves, 0, bats), Step(virus, 1, bats))
    assert (chain.seed, chain.entity) == (caves, virus)
    assert chain.weight == pytest.approx(1.0 * 0.5 * 0.5 / 2)  # bats have two edges


def test_a_seed_that_the_chunk_names_needs_no_step() -> None:
    graph = graph_of([(0, 0, 1)], 3)
    first, second = chains(graph, {0: 1.0}, [0, 1, 2], damping=0.5)
    assert (first.entity, first.steps, first.weight) == (0, (), 1.0)
    assert (second.entity, second.weight) == (1, 0.5)


def test_nothing_leads_to_what_is_not_connected() -> None:
    assert chains(graph_of([(0, 0, 1)], 3), {0: 1.0}, [2], damping=0.5) == []
    assert chains(graph_of([], 2), {}, [1], damping=0.5) == []


@given(st.integers(2, 6), st.integers(1, 10), st.integers(0, 999))
@settings(max_examples=60, deadline=None)
def test_the_first_chain_is_the_heaviest_of_all_walks(nodes: int, edges: int, seed: int) -> None:
    random = np.random.default_rng(seed)
    drawn = random.integers(0, nodes, (edges, 2)).tolist()
    graph = graph_of([(a, int(random.integers(0, 3)), b) for a, b in drawn], nodes)
    target = nodes - 1
    found = chains(graph, {0: 1.0}, [target], damping=0.5)
    degree = np.diff(graph.indptr)
    passes = np.zeros((nodes, nodes))
    for node in range(nodes):
        for other in graph.source[graph.indptr[node] : graph.indptr[node + 1]]:
            passes[node, other] += 0.5 / degree[node]
    weights = [
        np.prod([passes[a, b] for a, b in itertools.pairwise((0, *middle, target))])
        for hops in range(MOST_HOPS)
        for middle in itertools.product(range(nodes), repeat=hops)
    ]
    if target == 0:
        return
    assert (found[0].weight if found else 0.0) == pytest.approx(max(weights))
