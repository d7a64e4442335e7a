import pytest
from hypothesis import given
from hypothesis import strategies as st

from hybrid_ir.retrieval.fusion import fuse
from hybrid_ir.roles import PathRanking
from hybrid_ir.settings import FusionSettings

LISTS = st.lists(st.integers(0, 30), unique=True, max_size=20)


def ranking(chunks):
    return PathRanking(chunks=tuple(chunks), scores=tuple(1.0 / (i + 1) for i in range(len(chunks))))


def test_equation_5():
    fused = fuse({"graph": ranking([7, 3]), "dense": ranking([3, 9])}, FusionSettings(eta=60))
    assert [f.chunk for f in fused] == [3, 7, 9]
    assert fused[0].score == pytest.approx(1 / 62 + 1 / 61)
    assert fused[1].score == pytest.approx(1 / 61)
    assert {p: h.rank for p, h in fused[0].paths.items()} == {"graph": 2, "dense": 1}


@given(LISTS, LISTS, st.floats(0, 100))
def test_fusion_keeps_every_chunk_once_in_a_fixed_order(graph, dense, eta):
    lists = {"graph": ranking(graph), "dense": ranking(dense)}
    fused = fuse(lists, FusionSettings(eta=eta))
    assert sorted(f.chunk for f in fused) == sorted(set(graph) | set(dense))
    assert [(-f.score, f.chunk) for f in fused] == sorted((-f.score, f.chunk) for f in fused)
    assert fused == fuse(dict(reversed(lists.items())), FusionSettings(eta=eta))


@given(LISTS)
def test_one_path_alone_keeps_its_order(chunks):
    assert [f.chunk for f in fuse({"dense": ranking(chunks)}, FusionSettings())] == chunks


def test_a_weight_of_zero_silences_a_path_and_a_repeated_chunk_votes_once():
    settings = FusionSettings(weights={"graph": 0.0})
    fused = fuse({"graph": ranking([5]), "dense": ranking([1, 2])}, settings)
    assert [f.chunk for f in fused] == [1, 2, 5]
    twice = fuse({"dense": ranking([1, 1, 2])}, FusionSettings(eta=0))
    assert twice[0].score == pytest.approx(1.0)
