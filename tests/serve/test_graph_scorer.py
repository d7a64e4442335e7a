"""The graph scorer's batches."""

from __future__ import annotations

import pytest

from hybrid_ir.errors import BadInput
from hybrid_ir.roles import PathRanking, Query
from serve.graph_scorer import GraphScorer


class Path:
    def __init__(self) -> None:
        self.sizes: list[int] = []

    def rank_many(self, queries: list[Query], ks: list[int]) -> list[PathRanking]:
        self.sizes.append(len(queries))
        if any(query.text == "bad" for query in queries):
            raise BadInput("bad query")
        return [PathRanking(chunks=(k,), scores=(1.0,)) for k in ks]


@pytest.fixture
def scorer() -> GraphScorer:
    made = object.__new__(GraphScorer)  # what it opens is not needed here
    made._path = Path()  # type: ignore[assignment]
    return made


def test_a_batch_is_ranked_together(scorer: GraphScorer) -> None:
    found = scorer._rank([(Query(text="a"), 3), (Query(text="b"), 5)])
    assert [ranking.chunks for ranking in found] == [(3,), (5,)]
    assert scorer._path.sizes == [2]


def test_a_bad_query_does_not_take_its_batch_with_it(scorer: GraphScorer) -> None:
    found = scorer._rank([(Query(text="a"), 3), (Query(text="bad"), 4), (Query(text="b"), 5)])
    assert [found[0].chunks, found[2].chunks] == [(3,), (5,)]
    assert isinstance(found[1], BadInput)
