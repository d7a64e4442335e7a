"""The answer as it is written, through a handle: in order, and whole where it breaks."""

from __future__ import annotations

import asyncio
from contextlib import aclosing

from ray import serve

from hybrid_ir.errors import Unavailable
from hybrid_ir.records import Conclusion, LoopState, Question
from hybrid_ir.roles import StreamingReasoner
from serve.handles import HandleReasoner

STATE = LoopState(question=Question(text="What do bats carry?"))
BUILD = "0123456789ab"


class Writer:
    """A deployment that writes word by word, and may break off."""

    def __init__(self, name: str = "writer", breaks: bool = False) -> None:
        self.name, self.breaks = name, breaks

    async def ready(self, build_id: str) -> str:
        return self.name

    async def concluding(self, build_id: str, state: LoopState):
        for word in ("rabies ", "virus"):
            yield word
        if self.breaks:
            raise Unavailable("The language model broke off.")
        yield Conclusion(short="streamed", enough_evidence=True)

    async def conclude(self, build_id: str, state: LoopState) -> Conclusion:
        return Conclusion(short="whole", enough_evidence=True)


def deployed(*arguments: object):
    return serve.run(serve.deployment(Writer).bind(*arguments), _local_testing_mode=True)


def pieces_of(*arguments: object) -> list[str]:
    async def collect() -> list[str]:
        reasoner = HandleReasoner(deployed(*arguments), BUILD)
        assert isinstance(reasoner, StreamingReasoner)
        async with aclosing(reasoner.concluding(STATE)) as pieces:
            return [piece if isinstance(piece, str) else piece.short async for piece in pieces]

    return asyncio.run(collect())


def test_pieces_then_the_conclusion() -> None:
    assert pieces_of() == ["rabies ", "virus", "streamed"]


def test_a_stream_that_breaks_is_concluded_anew() -> None:
    assert pieces_of("writer", True) == ["rabies ", "virus", "whole"]


def test_the_extractive_reasoner_is_asked_as_before() -> None:
    assert pieces_of("extractive") == ["whole"]
