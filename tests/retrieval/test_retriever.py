"""Two paths, fused: failures of one, time limits, duplicates, unknown names."""

import asyncio

import pytest

from hybrid_ir.errors import BadInput, Damaged
from hybrid_ir.records import Chunk, EntityLink
from hybrid_ir.retrieval.retriever import FusedRetriever
from hybrid_ir.roles import PathRanking, Query
from hybrid_ir.settings import FusionSettings

QUERY = Query(text="how?")


class Chunks:
    """Chunk i says 'text i', but 8 repeats 3."""

    def __len__(self):
        return 1000

    def by_number(self, number):
        text = "text 3" if number == 8 else f"text {number}"
        return Chunk(
            id=f"d#{number}", document_id="d", position=number, title="", text=text, start=0, end=6, source="s"
        )


class Listed:
    def __init__(self, *chunks, error=None, wait=0.0):
        self.chunks, self.error, self.wait, self.asked = chunks, error, wait, []

    async def rank(self, query, k):
        self.asked.append(k)
        await asyncio.sleep(self.wait)
        if self.error:
            raise self.error
        links = (EntityLink(mention="m", entity="e", similarity=1.0),)
        return PathRanking(chunks=self.chunks, scores=tuple(1.0 for _ in self.chunks), links=links)


def retrieve(with_paths, k=3, **given):
    retriever = FusedRetriever(with_paths, Chunks(), FusionSettings())
    return asyncio.run(retriever.retrieve(QUERY, k, **given))


def test_evidence_says_which_path_brought_it_at_which_rank():
    found = retrieve({"graph": Listed(1, 2), "dense": Listed(2, 5)})
    assert [item.chunk.position for item in found.evidence] == [2, 1, 5]
    assert {p: h.rank for p, h in found.evidence[0].paths.items()} == {"graph": 2, "dense": 1}
    assert set(found.seconds) == {"graph", "dense"}


@pytest.mark.parametrize("broken", [Listed(1, error=RuntimeError("gone")), Listed(1, wait=5)])
def test_a_path_that_fails_or_is_late_does_not_take_the_answer_with_it(broken):
    found = retrieve({"graph": broken, "dense": Listed(4)}, timeout_s=0.2)
    assert [item.chunk.position for item in found.evidence] == [4]
    assert found.degraded == ("graph",)


def test_when_no_path_serves_the_reason_is_raised():
    with pytest.raises(Damaged, match="broken file"):
        retrieve({"graph": Listed(error=Damaged("broken file")), "dense": Listed(error=Damaged("broken file"))})
    with pytest.raises(RuntimeError):
        retrieve({"dense": Listed(error=ValueError("x"))})
    with pytest.raises(TimeoutError):
        retrieve({"graph": Listed(wait=5), "dense": Listed(wait=5)}, timeout_s=0.05)
    with pytest.raises(Damaged):
        retrieve({"graph": Listed(error=ValueError("x")), "dense": Listed(error=Damaged("file"))})


def test_a_repeated_text_is_folded_into_its_best_place():
    found = retrieve({"dense": Listed(8, 3, 1)}, k=2)
    assert [item.chunk.position for item in found.evidence] == [8, 1]


def test_paths_are_asked_for_long_enough_lists():
    path = Listed(1)
    retrieve({"dense": path}, k=3)
    retrieve({"dense": path}, k=80)
    retrieve({"dense": path}, k=10**9)
    assert path.asked == [100, 160, 1000]


def test_bad_requests():
    paths = {"graph": Listed(1), "dense": Listed(2)}
    with pytest.raises(BadInput, match=r"sparse.*graph, dense"):
        retrieve(paths, paths=["sparse"])
    with pytest.raises(BadInput, match="none named"):
        retrieve(paths, paths=[])
    with pytest.raises(BadInput, match="k is 0"):
        retrieve(paths, k=0)
    with pytest.raises(BadInput, match="empty"):
        asyncio.run(FusedRetriever(paths, Chunks(), FusionSettings()).retrieve(Query(text="  "), 1))


def test_the_paths_of_the_settings_are_fused_and_others_where_they_are_named():
    paths = {"graph": Listed(1), "dense": Listed(2), "sparse": Listed(3)}
    assert {item.chunk.position for item in retrieve(paths).evidence} == {1, 2}
    assert {item.chunk.position for item in retrieve(paths, paths=["sparse", "dense"]).evidence} == {2, 3}
    retriever = FusedRetriever(paths, Chunks(), FusionSettings(paths=("sparse", "graph")))
    assert {item.chunk.position for item in asyncio.run(retriever.retrieve(QUERY, 3)).evidence} == {1, 3}


def test_a_path_of_the_settings_that_the_index_lacks_is_left_out_and_said(caplog):
    retriever = FusedRetriever({"dense": Listed(2)}, Chunks(), FusionSettings(paths=("dense", "sparse")))
    assert "sparse, which this index does not have" in caplog.text
    assert retriever.default_paths == ("dense",)
    with pytest.raises(BadInput, match="none named"):
        asyncio.run(FusedRetriever({"x": Listed(1)}, Chunks(), FusionSettings()).retrieve(QUERY, 1))


def test_one_path_alone():
    found = retrieve({"graph": Listed(1), "dense": Listed(2)}, paths=["dense", "dense"])
    assert [item.chunk.position for item in found.evidence] == [2]


def test_cancelling_cancels_the_paths():
    async def run():
        path = Listed(1, wait=30)
        retriever = FusedRetriever({"dense": path}, Chunks(), FusionSettings())
        task = asyncio.create_task(retriever.retrieve(QUERY, 1))
        await asyncio.sleep(0.05)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(run())
