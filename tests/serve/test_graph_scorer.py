"""The graph scorer's batches."""

from __future__ import annotations

from hybrid_ir.errors import BadInput
from hybrid_ir.roles import PathRanking, Query
from serve.graph_scorer import Call, Opened, _ranked


class Path:
    def __init__(self) -> None:
        self.sizes: list[int] = []

    def rank_many(self, queries: list[Query], ks: list[int]) -> list[PathRanking]:
        self.sizes.append(len(queries))
        if any(query.text == "bad" for query in queries):
            raise BadInput("bad query")
        return [PathRanking(chunks=(k,), scores=(1.0,)) for k in ks]


def calls(*asked: tuple[Path, str, int]) -> list[Call]:
    opened: dict[int, Opened] = {}
    return [
        (opened.setdefault(id(path), Opened(path, None)), Query(text=text), k)  # type: ignore[arg-type]
        for path, text, k in asked
    ]


def test_a_batch_is_ranked_together() -> None:
    path = Path()
    found = _ranked(calls((path, "a", 3), (path, "b", 5)))
    assert [ranking.chunks for ranking in found] == [(3,), (5,)]
    assert path.sizes == [2]


def test_each_build_of_a_batch_is_ranked_by_its_own_graph_and_in_order() -> None:
    old, new = Path(), Path()
    found = _ranked(calls((old, "a", 1), (new, "b", 2), (old, "c", 3), (new, "bad", 4)))
    assert [ranking.chunks for ranking in found[:3]] == [(1,), (2,), (3,)]
    assert isinstance(found[3], BadInput)
    assert (old.sizes, new.sizes) == ([2], [2, 1, 1])


def test_a_bad_query_does_not_take_its_batch_with_it() -> None:
    path = Path()
    found = _ranked(calls((path, "a", 3), (path, "bad", 4), (path, "b", 5)))
    assert [found[0].chunks, found[2].chunks] == [(3,), (5,)]
    assert isinstance(found[1], BadInput)
