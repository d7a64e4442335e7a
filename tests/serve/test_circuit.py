"""A path that keeps failing is left out, and comes back by itself."""

from __future__ import annotations

import asyncio

import pytest
from small_service import SharedWords, chunks

from hybrid_ir.errors import BadInput, Damaged, Unavailable
from hybrid_ir.roles import Query
from serve.circuit import FAILURES, OPEN_S, SLOW_S, Circuit, circuits
from serve.errors import Overloaded

ASKED = Query(text="bats carry")


class Clock:
    now = 0.0

    def __call__(self):
        return self.now


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def path():
    return SharedWords(chunks())


@pytest.fixture
def circuit(path, clock):
    made = Circuit(path, "graph scorer", clock)
    made.beside([Circuit(SharedWords(chunks()), "dense scorer", clock)])
    return made


def fail(circuit, times=1, error=Damaged):
    for _ in range(times):
        with pytest.raises(error):
            asyncio.run(circuit.rank(ASKED, 3))


@pytest.mark.parametrize("error", [Damaged("x.npy: gone."), Unavailable("No replica."), ValueError("inner")])
def test_it_opens_after_failures_in_a_row_and_closes_by_itself(circuit, path, clock, error):
    path.error = error
    fail(circuit, FAILURES, type(error))
    path.error = None
    fail(circuit, 3, Unavailable)  # not asked at all
    clock.now += OPEN_S
    assert asyncio.run(circuit.rank(ASKED, 3)).chunks
    path.error = error
    fail(circuit, FAILURES - 1, type(error))
    path.error = None
    assert asyncio.run(circuit.rank(ASKED, 3)).chunks  # a success between starts the count anew
    path.error = error
    fail(circuit, FAILURES - 1, type(error))
    assert not circuit.open


def test_a_trial_that_fails_leaves_it_open(circuit, path, clock):
    path.error = Damaged("x.npy: gone.")
    fail(circuit, FAILURES)
    clock.now += OPEN_S
    fail(circuit)
    fail(circuit, 1, Unavailable)
    assert circuit.open


def test_one_trial_at_a_time(circuit, path, clock):
    path.error = Damaged("x.npy: gone.")
    fail(circuit, FAILURES)
    clock.now, path.error, path.delay_s = OPEN_S, None, 0.05

    async def run():
        return await asyncio.gather(*(circuit.rank(ASKED, 3) for _ in range(5)), return_exceptions=True)

    found = asyncio.run(run())
    assert [isinstance(one, Unavailable) for one in found] == [False, True, True, True, True]
    assert asyncio.run(circuit.rank(ASKED, 3)).chunks


@pytest.mark.parametrize("error", [BadInput("The query is empty."), Overloaded("The queue is full.")])
def test_a_bad_request_and_a_full_queue_open_nothing(circuit, path, error):
    path.error = error
    fail(circuit, 3 * FAILURES, type(error))
    assert not circuit.open


@pytest.mark.parametrize(("waited", "opens"), [(SLOW_S, True), (SLOW_S / 2, False)])
def test_a_slow_path_counts_and_a_client_that_leaves_soon_does_not(circuit, path, clock, waited, opens):
    path.delay_s = 30.0

    async def give_up():
        asked = asyncio.create_task(circuit.rank(ASKED, 3))
        await asyncio.sleep(0.01)
        clock.now += waited
        asked.cancel()
        await asyncio.wait((asked,))

    for _ in range(FAILURES):
        asyncio.run(give_up())
    assert circuit.open == opens


def test_a_path_is_left_out_only_while_another_serves():
    held = {name: SharedWords(chunks()) for name in ("graph", "dense")}
    made = circuits(held)
    for path in held.values():
        path.error = Unavailable("No replica.")
    for circuit in made.values():
        fail(circuit, FAILURES, Unavailable)
    for path in held.values():
        path.error = None
    assert asyncio.run(made["graph"].rank(ASKED, 3)).chunks  # both failed: it is asked, and is back at once
    fail(made["dense"], 1, Unavailable)  # now there is one that serves
    assert made["dense"].open
