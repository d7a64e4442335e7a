import pytest
from hypothesis import given
from hypothesis import strategies as st

from hybrid_ir.retrieval.fusion import fuse, votes
from hybrid_ir.roles import PathRanking
from hybrid_ir.settings import FusionSettings

LISTS = st.lists(st.integers(0, 30), unique=True, max_size=20)
SETTINGS = st.builds(
    FusionSettings,
    eta=st.floats(0, 100),
    weights=st.dictionaries(st.sampled_from(["graph", "dense"]), st.floats(0.01, 3)),
    peaks=st.dictionaries(st.sampled_from(["graph", "dense"]), st.floats(0, 3)),
    temperature=st.floats(0.01, 1),
)
PLAIN = FusionSettings(eta=60, weights={}, peaks={})


def ranking(chunks, scores=None):
    given_ = scores or [1.0 / (i + 1) for i in range(len(chunks))]
    return PathRanking(chunks=tuple(chunks), scores=tuple(given_))


def test_equation_5():
    fused = fuse({"graph": ranking([7, 3]), "dense": ranking([3, 9])}, PLAIN)
    assert [f.chunk for f in fused] == [3, 7, 9]
    assert fused[0].score == pytest.approx(1 / 62 + 1 / 61)
    assert fused[1].score == pytest.approx(1 / 61)
    assert {p: h.rank for p, h in fused[0].paths.items()} == {"graph": 2, "dense": 1}


@given(LISTS, LISTS, SETTINGS)
def test_fusion_keeps_every_chunk_once_in_a_fixed_order(graph, dense, settings):
    lists = {"graph": ranking(graph), "dense": ranking(dense)}
    fused = fuse(lists, settings)
    assert sorted(f.chunk for f in fused) == sorted(set(graph) | set(dense))
    assert [(-f.score, f.chunk) for f in fused] == sorted((-f.score, f.chunk) for f in fused)
    assert fused == fuse(dict(reversed(lists.items())), settings)


@given(LISTS, st.lists(st.floats(-1, 50), max_size=20), SETTINGS)
def test_one_path_alone_keeps_its_order(chunks, scores, settings):
    scores = sorted([*scores, *[0.5] * (len(chunks) - len(scores))][: len(chunks)], reverse=True)
    assert [f.chunk for f in fuse({"dense": ranking(chunks, scores)}, settings)] == chunks


@given(LISTS, SETTINGS)
def test_the_score_is_the_sum_of_the_votes(chunks, settings):
    lists = {"graph": ranking(chunks), "dense": ranking(chunks[::-1])}
    for fused in fuse(lists, settings):
        given_ = [votes(p, lists[p], settings)[hit.rank - 1] for p, hit in sorted(fused.paths.items())]
        assert fused.score == pytest.approx(sum(given_))


def test_a_dense_hit_that_stands_out_goes_first_and_a_level_list_does_not():
    graph = ranking([1, 2, 3, 4, 5])
    sure, level = [0.8, 0.5, 0.49, 0.48, 0.47], [0.52, 0.515, 0.51, 0.505, 0.5]
    assert fuse({"graph": graph, "dense": ranking([9, 8, 7, 6, 5], sure)}, FusionSettings())[0].chunk == 9
    assert fuse({"graph": graph, "dense": ranking([9, 8, 7, 6, 10], level)}, FusionSettings())[0].chunk == 1


def test_scores_of_nothing_and_below_count_by_rank():
    settings = FusionSettings(weights={}, peaks={"dense": 1.0})
    for scores in ([0.0, 0.0], [-0.1, -0.2]):
        assert votes("dense", ranking([1, 2], scores), settings) == [1 / 6, 1 / 7]
    assert votes("dense", ranking([]), settings) == []


def test_a_weight_of_zero_silences_a_path_and_a_repeated_chunk_votes_once():
    settings = FusionSettings(weights={"graph": 0.0}, peaks={})
    fused = fuse({"graph": ranking([5]), "dense": ranking([1, 2])}, settings)
    assert [f.chunk for f in fused] == [1, 2, 5]
    twice = fuse({"dense": ranking([1, 1, 2])}, FusionSettings(eta=0, weights={}, peaks={}))
    assert twice[0].score == pytest.approx(1.0)
