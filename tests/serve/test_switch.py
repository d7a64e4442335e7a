"""From one build to the next: what a replica has open, and when the service changes over."""

from __future__ import annotations

import asyncio
import threading

import httpx
import pytest
from small_service import Quoting, SharedWords, chunks, small_manifest, small_store

from hybrid_ir.errors import NotFound
from hybrid_ir.index import layout, manifest
from hybrid_ir.index.chunk_store import ChunkStore
from hybrid_ir.records import Answer
from hybrid_ir.settings import Settings
from serve.api import create_app
from serve.builds import Builds
from serve.service import Service
from serve.switch import AGAIN_S, Follower, Served

FIRST, SECOND, BROKEN = "0" * 12, "1" * 12, "2" * 12


@pytest.fixture
def store(tmp_path):
    """Three builds of one root; a file of the third is not what its manifest promises."""
    store = small_store(tmp_path)
    for build_id in (FIRST, SECOND, BROKEN):
        entry = store.write(f"{layout.build(build_id)}/extra", build_id.encode())
        found = small_manifest().model_copy(
            update={"build_id": build_id, "files": {f"{layout.build(build_id)}/extra": entry}}
        )
        store.write(layout.manifest(build_id), found.model_dump_json().encode())
    store.write(f"{layout.build(BROKEN)}/extra", b"2" * 11 + b"3")
    publish(store, FIRST)
    return store


def publish(store, build_id):
    store.write(layout.CURRENT, build_id.encode())


@pytest.fixture
def graph():
    return SharedWords(chunks())


@pytest.fixture
def follower(store, graph):
    def make(found):
        return Service(found, Settings(), ChunkStore(store, found), {"graph": graph}, Quoting(), {})

    return Follower(Served(make(manifest.read(store))), store, make, lambda service: service.warm(2), 0.01)


def served(follower):
    return follower._served.now.manifest.build_id


def test_what_is_published_takes_over_and_a_rollback_too(store, follower):
    async def run():
        seen = []
        for build_id in (FIRST, SECOND, FIRST):
            publish(store, build_id)
            await follower.look()
            seen.append(served(follower))
        return seen

    assert asyncio.run(run()) == [FIRST, SECOND, FIRST]


def test_a_request_keeps_its_build_to_its_end(store, follower, graph):
    graph.delay_s = 0.2

    async def run():
        transport = httpx.ASGITransport(create_app(follower._served))
        async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1") as client:
            asked = asyncio.create_task(client.post("/v1/answer", json={"question": "bats carry"}))
            await asyncio.sleep(0.05)
            publish(store, SECOND)
            await follower.look()
            after = await client.post("/v1/answer", json={"question": "bats carry"})
            return await asked, after, await client.get("/v1/build")

    before, after, build = asyncio.run(run())
    assert Answer.model_validate(before.json()).build_id == FIRST
    assert Answer.model_validate(after.json()).build_id == SECOND
    assert build.json()["build_id"] == SECOND


@pytest.mark.parametrize(("build_id", "said"), [(BROKEN, "checksum"), ("a" * 12, "no build"), ("ä\nb", "no build")])
def test_what_is_not_whole_is_refused_and_the_old_one_goes_on(store, follower, build_id, said):
    publish(store, build_id)

    async def run():
        await follower.look()
        assert served(follower) == FIRST
        transport = httpx.ASGITransport(create_app(follower._served))
        async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1") as client:
            refused = (await client.get("/v1/build")).json()["refused"]
            assert said in refused["reason"]
            assert (await client.post("/v1/answer", json={"question": "bats"})).json()["build_id"] == FIRST
            publish(store, SECOND)
            await follower.look()
            found = (await client.get("/v1/build")).json()
            assert (found["build_id"], found["refused"]) == (SECOND, None)

    asyncio.run(run())


def test_a_refused_build_is_looked_at_again_after_a_while(store, follower, monkeypatch):
    publish(store, BROKEN)

    async def run():
        await follower.look()
        store.write(f"{layout.build(BROKEN)}/extra", BROKEN.encode())
        await follower.look()
        assert served(follower) == FIRST
        follower._refused_at -= AGAIN_S
        await follower.look()
        assert served(follower) == BROKEN

    asyncio.run(run())


def test_a_part_that_cannot_open_the_build_refuses_it(store, follower):
    async def fails():
        raise NotFound("The dense scorer has no file x.")

    make = follower._make
    follower._make = lambda found: Service(
        found, Settings(), make(found)._chunks, {"graph": SharedWords(chunks())}, Quoting(), {"dense scorer": fails}
    )
    publish(store, SECOND)
    asyncio.run(follower.look())
    assert served(follower) == FIRST
    assert "no file x" in follower._served.refused.reason


def test_the_application_follows_while_it_lives(store, follower):
    async def run():
        app = create_app(follower._served, follower)
        async with app.router.lifespan_context(app):
            publish(store, SECOND)
            for _ in range(500):
                await asyncio.sleep(0.01)
                if served(follower) == SECOND:
                    break
        publish(store, FIRST)
        await asyncio.sleep(0.1)
        return served(follower)

    assert asyncio.run(run()) == SECOND


class Made:
    """Counts openings; the second build waits until it is let through."""

    def __init__(self):
        self.ids, self.gate = [], threading.Event()

    def __call__(self, index):
        if index.build_id != FIRST:
            self.gate.wait(10)
        self.ids.append(index.build_id)
        return index.build_id


def test_a_build_is_opened_once_for_all_who_ask_and_one_who_leaves_ends_nothing(store):
    made = Made()
    builds = Builds(store.uri, Settings(), FIRST, made, 10.0)

    async def run():
        asked = [asyncio.create_task(builds.get(SECOND)) for _ in range(5)]
        await asyncio.sleep(0.05)
        asked[0].cancel()
        assert await builds.get(FIRST) == FIRST  # served all the while
        made.gate.set()
        return await asyncio.gather(*asked, return_exceptions=True)

    first, *others = asyncio.run(run())
    assert isinstance(first, asyncio.CancelledError)
    assert others == [SECOND] * 4
    assert made.ids == [FIRST, SECOND]


def test_an_old_build_is_let_go_when_no_request_can_still_need_it(store):
    now, made = 0.0, Made()
    made.gate.set()
    builds = Builds(store.uri, Settings(), FIRST, made, 10.0, lambda: now)

    async def run():
        nonlocal now
        await builds.get(SECOND)
        now = 9.0
        await builds.get(SECOND)
        assert set(builds.held) == {FIRST, SECOND}
        now = 20.0
        await builds.get(SECOND)
        assert builds.held == (SECOND,)
        assert await builds.get(FIRST) == FIRST  # and comes back where it is asked for
        now = 100.0
        await builds.get(FIRST)
        assert builds.held == (FIRST,)

    asyncio.run(run())


def test_a_build_that_cannot_be_opened_is_an_error_each_time_and_costs_no_other(store):
    builds = Builds(store.uri, Settings(), FIRST, Made(), 10.0)

    async def run():
        for _ in range(2):
            with pytest.raises(NotFound):
                await builds.get("absent")
        return await builds.get(FIRST)

    assert asyncio.run(run()) == FIRST
