"""Which queries are audited, and what an audit leaves behind."""

from __future__ import annotations

import asyncio
import threading

import pytest

from hybrid_ir.graph.gfm.scorer import Audit
from hybrid_ir.roles import Query
from hybrid_ir.settings import GraphPathSettings
from serve.graph_audit import GraphAudit, audit_of


class Seen:
    """In a metric's place."""

    def __init__(self) -> None:
        self.values: list[float] = []

    def observe(self, value: float) -> None:
        self.values.append(value)

    def inc(self) -> None:
        self.values.append(1)


@pytest.fixture
def seen() -> dict[str, Seen]:
    return {name: Seen() for name in ("_error", "_overlap", "_failed")}


def of(audit: object, seen: dict[str, Seen], draws: list[float], share: float = 0.5) -> GraphAudit:
    made = GraphAudit(audit, share, iter(draws).__next__)  # type: ignore[arg-type]
    for name, metric in seen.items():
        setattr(made, name, metric)
    return made


def test_a_share_of_the_queries_is_audited_one_at_a_time(seen: dict[str, Seen]) -> None:
    asked: list[str] = []
    free = threading.Event()

    def audit(query: Query) -> Audit:
        asked.append(query.text)
        free.wait(10)
        return Audit(0.02, 0.95)

    async def run() -> None:
        made = of(audit, seen, [0.9, 0.1, 0.2, 0.3])
        for text in ("not drawn", "first", "while the first runs"):
            made.offer(Query(text=text))
        await asyncio.sleep(0.05)
        free.set()
        while not seen["_error"].values:
            await asyncio.sleep(0.01)
        made.offer(Query(text="next"))
        while len(seen["_error"].values) < 2:
            await asyncio.sleep(0.01)

    asyncio.run(run())
    assert asked == ["first", "next"]
    assert seen["_error"].values == [0.02, 0.02]
    assert seen["_overlap"].values == [0.95, 0.95]


def test_an_audit_that_fails_is_counted_and_harms_nobody(seen: dict[str, Seen]) -> None:
    def audit(query: Query) -> Audit:
        raise MemoryError

    async def run() -> None:
        made = of(audit, seen, [0.0])
        made.offer(Query(text="a"))
        while not seen["_failed"].values:
            await asyncio.sleep(0.01)

    asyncio.run(run())
    assert not seen["_error"].values


@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"scorer": "gfm", "gfm": {"model": "x"}},
        {"scorer": "gfm", "gfm": {"model": "x", "mode": "bounded", "audit_share": 0}},
    ],
)
def test_exact_scorers_have_nothing_to_audit(settings: dict[str, object]) -> None:
    assert audit_of(None, GraphPathSettings.model_validate(settings)) is None  # type: ignore[arg-type]
