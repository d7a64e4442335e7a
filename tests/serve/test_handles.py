"""Handle-backed roles over real handles, in Serve's local mode: each deployment runs in this process."""

from __future__ import annotations

import asyncio

import pytest
from ray import serve
from ray.exceptions import ActorDiedError, RayTaskError
from ray.serve.exceptions import BackPressureError
from small_service import Quoting

from hybrid_ir.errors import BadInput, Conflict, HybridIRError, Unavailable
from hybrid_ir.records import LoopState, Question
from hybrid_ir.roles import PathRanking, Query
from serve.errors import Overloaded, original
from serve.handles import HandlePath, HandleReasoner

BUILD = "0123456789ab"


def require(asked: str, served: str, who: str) -> None:
    if asked != served:
        raise Conflict(f"The {who} serves build {served}, the request is for build {asked}.")


class Scorer:
    """Serves one build; raises the errors it was given, one a call, before it answers."""

    def __init__(self, errors: list[Exception]) -> None:
        self.errors, self.cancelled = errors, False

    async def rank(self, build_id: str, query: Query, k: int) -> PathRanking:
        require(build_id, BUILD, "scorer")
        if query.text == "wait":
            try:
                await asyncio.sleep(60)
            except asyncio.CancelledError:
                self.cancelled = True
                raise
        if self.errors:
            raise self.errors.pop(0)
        return PathRanking(chunks=(1,), scores=(0.5,))

    async def was_cancelled(self) -> bool:
        return self.cancelled


def deployed(kind, *arguments):
    return serve.run(serve.deployment(kind).bind(*arguments), _local_testing_mode=True)


def rank(errors: list[Exception], build_id: str = BUILD) -> PathRanking:
    path = HandlePath(deployed(Scorer, errors), build_id, "scorer")
    return asyncio.run(path.rank(Query(text="bats"), 3))


def test_a_path_behind_a_handle():
    assert rank([]).chunks == (1,)


def test_another_build_is_refused():
    with pytest.raises(Conflict, match=f"serves build {BUILD}, the request is for build other"):
        rank([], "other")


def test_the_librarys_error_arrives_as_itself():
    with pytest.raises(BadInput, match=r"^k is 0\.$") as caught:
        rank([BadInput("k is 0.")])
    assert type(caught.value) is BadInput


def test_a_call_is_made_once_more_when_its_replica_died():
    assert rank([ActorDiedError()]).chunks == (1,)
    with pytest.raises(Unavailable, match="scorer does not answer"):
        rank([ActorDiedError(), ActorDiedError()])


def test_a_full_queue_is_not_pressed_again():
    with pytest.raises(Overloaded, match="scorer has more requests"):
        rank([BackPressureError(num_queued_requests=4, max_queued_requests=4)])


def test_an_unknown_error_stays_what_it_is():
    with pytest.raises(ZeroDivisionError):
        rank([ZeroDivisionError()])


def test_a_timeout_cancels_the_work_on_the_replica():
    handle = deployed(Scorer, [])

    async def leave() -> bool:
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.1):
                await HandlePath(handle, BUILD, "scorer").rank(Query(text="wait"), 3)
        await asyncio.sleep(0.1)
        return await handle.was_cancelled.remote()

    assert asyncio.run(leave())


class Thinker:
    def __init__(self) -> None:
        self.reasoner = Quoting()

    async def ready(self, build_id: str) -> str:
        require(build_id, BUILD, "reasoner")
        return self.reasoner.name

    async def decompose(self, build_id: str, state: LoopState, limit: int):
        require(build_id, BUILD, "reasoner")
        return await self.reasoner.decompose(state, limit)


def test_a_reasoner_behind_a_handle_says_its_own_name():
    reasoner = HandleReasoner(deployed(Thinker), BUILD)
    assert reasoner.name == "unknown"
    found = asyncio.run(reasoner.decompose(LoopState(question=Question(text="Why?")), 3))
    assert found.sub_questions[0].text == "Why?"
    assert reasoner.name == "quoting"


def test_original_looks_through_all_wrappers():
    inner = BadInput("row 3.")
    wrapped = RayTaskError("rank", "traceback", RayTaskError("inner", "traceback", inner))
    assert original(wrapped) is inner
    assert original(RayTaskError("rank", "traceback", inner).as_instanceof_cause()) is inner
    assert not isinstance(original(ZeroDivisionError()), HybridIRError)
    chained = RuntimeError("No path served")
    chained.__cause__ = inner
    assert original(chained) is inner
