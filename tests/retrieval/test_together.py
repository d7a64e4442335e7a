import asyncio
import random
import threading
import time

import pytest

from hybrid_ir.retrieval import together
from hybrid_ir.retrieval.together import Together


class Doubled:
    def __init__(self, seconds=0.0):
        self.calls, self.seconds = [], seconds

    def __call__(self, asked):
        self.calls.append(list(asked))
        time.sleep(self.seconds)
        if any(one < 0 for one in asked):
            raise ValueError(f"{min(asked)} is below zero")
        return [2 * one for one in asked]


def test_what_is_gathered_is_one_call_and_each_gets_its_own():
    call = Doubled()
    path = Together(call)

    async def run():
        return await asyncio.gather(*map(path.ask, range(5)))

    assert asyncio.run(run()) == [0, 2, 4, 6, 8]
    assert call.calls == [[0, 1, 2, 3, 4]]
    assert asyncio.run(run()) == [0, 2, 4, 6, 8]  # another event loop


def test_no_call_is_larger_than_the_most():
    call = Doubled()

    async def run(path):
        return await asyncio.gather(*map(path.ask, range(10)))

    assert asyncio.run(run(Together(call, most=4))) == [2 * i for i in range(10)]
    assert max(map(len, call.calls)) <= 4


def test_what_comes_while_all_threads_are_busy_is_asked_together(monkeypatch):
    monkeypatch.setattr(together, "AT_ONCE", 1)
    call = Doubled(0.1)
    path = Together(call)

    async def later(one):
        await asyncio.sleep(0.02)
        return await path.ask(one)

    async def run():
        return await asyncio.gather(path.ask(1), later(2), later(3))

    assert asyncio.run(run()) == [2, 4, 6]
    assert call.calls == [[1], [2, 3]]


@pytest.mark.parametrize("at_once", [1, 3])
def test_one_who_asks_again_and_again_is_answered_each_time(monkeypatch, at_once):
    """The next question comes in the very step in which the last answer arrives."""
    monkeypatch.setattr(together, "AT_ONCE", at_once)
    path = Together(Doubled())

    async def run():
        async with asyncio.timeout(20):
            return [await path.ask(one) for one in range(30)]

    assert asyncio.run(run()) == [2 * one for one in range(30)]


@pytest.mark.parametrize("at_once", [1, 2])
def test_many_who_ask_and_leave_at_random_are_all_answered(monkeypatch, at_once):
    monkeypatch.setattr(together, "AT_ONCE", at_once)
    path, draw = Together(Doubled(), most=3), random.Random(1)

    async def one(number):
        for step in range(10):
            if draw.random() < 0.3:
                await asyncio.sleep(draw.random() / 1000)
            if draw.random() < 0.2:
                task = asyncio.ensure_future(path.ask(step))
                await asyncio.sleep(0)
                task.cancel()
            assert await path.ask(number + step) == 2 * (number + step)

    async def run():
        async with asyncio.timeout(20):
            await asyncio.gather(*map(one, range(12)))

    asyncio.run(run())


def test_a_fault_of_one_is_not_the_others():
    path = Together(Doubled())

    async def run():
        return await asyncio.gather(*map(path.ask, (1, -1, 3, -2)), return_exceptions=True)

    one, bad, three, worse = asyncio.run(run())
    assert (one, three) == (2, 6)
    assert [str(bad), str(worse)] == ["-1 is below zero", "-2 is below zero"]


def test_who_leaves_costs_the_others_nothing():
    call = Doubled(0.1)
    path = Together(call)

    async def run():
        left, stays = asyncio.create_task(path.ask(1)), asyncio.create_task(path.ask(2))
        await asyncio.sleep(0.03)
        left.cancel()
        assert await stays == 4
        with pytest.raises(asyncio.CancelledError):
            await left
        return await path.ask(3)

    assert asyncio.run(run()) == 6


def test_loops_of_several_threads_are_served_apart():
    path, found = Together(Doubled(0.01)), {}

    def ask(one):
        found[one] = asyncio.run(path.ask(one))

    threads = [threading.Thread(target=ask, args=(one,)) for one in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == {one: 2 * one for one in range(8)}
