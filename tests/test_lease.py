"""One writer at a time: by an injected clock, by processes that race and die, and in an object store."""

import json
import multiprocessing
import os
import signal
import subprocess
import sys
import time

import pytest
from object_store import ObjectStore

from hybrid_ir import lease, remote_errors
from hybrid_ir.errors import Conflict, Damaged, Unavailable
from hybrid_ir.lease import held
from hybrid_ir.store import Store


class Clock:
    now = 1_000_000.0

    def __call__(self):
        return self.now


@pytest.fixture(scope="module")
def server():
    with ObjectStore() as server:
        server.make_bucket("medical")
        yield server


@pytest.fixture(params=["folder", "s3"])
def store(request, tmp_path, monkeypatch):
    if request.param == "folder":
        return Store(str(tmp_path / "root"))
    server = request.getfixturevalue("server")
    server.reset()
    for name, value in server.environment(tmp_path / "cache").items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(remote_errors, "FIRST_PAUSE_S", 0.01)
    return Store(f"s3://medical/{tmp_path.name}")


def said(store):
    return json.loads(store.read(lease.NAME))


def elsewhere(store):
    """Make the lease that of a process on another machine, of which only time can tell whether it lives."""
    data, version = store.read_version(lease.NAME)
    assert store.replace(lease.NAME, json.dumps({**json.loads(data), "process": ""}).encode(), version)


def test_the_second_is_told_who_and_until_when(store):
    clock = Clock()
    with held(store, 60, clock=clock):
        clock.now += 17
        with (
            pytest.raises(
                Conflict, match=r"is being written by .*\(process \d+ on .*\) since 1970-01-12 13:46:40 UTC"
            ) as f,
            held(store, 60, clock=clock),
        ):
            pass
        assert "its lease ends in 43 s" in str(f.value)
        assert "--wait SECONDS" in str(f.value)
        assert str(os.getpid()) in said(store)["holder"]
    with held(store, 60, clock=clock):
        pass
    assert not store.exists(lease.NAME)


def test_it_is_given_back_when_the_work_fails(store):
    with pytest.raises(ZeroDivisionError), held(store):
        _ = 1 / 0
    with held(store):
        pass


def test_it_is_renewed_while_the_work_lasts(store):
    with held(store, 0.6):
        before = said(store)["expires_at"]
        time.sleep(1.5)
        assert said(store)["expires_at"] > before + 0.6
        with pytest.raises(Conflict), held(store):
            pass


def test_waiting_gets_it_as_soon_as_it_ends(store, monkeypatch):
    clock = Clock()
    naps = []

    def nap(seconds):
        naps.append(seconds)
        clock.now += seconds
        if len(naps) == 3:
            first.__exit__(None, None, None)

    first = held(store, 60, clock=clock)
    first.__enter__()
    monkeypatch.setattr(lease.time, "sleep", nap)
    with held(store, 60, wait_s=10, clock=clock):
        assert len(naps) == 3
        with pytest.raises(Conflict), held(store, 60, wait_s=2.5, clock=clock):
            pass
        assert sum(naps[3:]) == 2.5


def test_one_who_stood_still_too_long_is_succeeded_and_may_not_publish(store):
    clock = Clock()
    with held(store, 60, clock=clock) as first:
        first.check()
        elsewhere(store)
        clock.now += 59
        with pytest.raises(Conflict), held(store, 60, clock=clock):
            pass
        clock.now += 2
        with held(store, 60, clock=clock) as second:
            with pytest.raises(Conflict, match=r"taken over by .*stood still for longer than its lease of 60 s"):
                first.check()
            second.check()
        with pytest.raises(Conflict):
            first.check()
    assert not store.exists(lease.NAME)


def test_one_who_stood_still_but_was_not_succeeded_goes_on(store):
    clock = Clock()
    with held(store, 60, clock=clock) as first:
        clock.now += 500
        first.check()
        assert said(store)["expires_at"] == clock.now + 60


def test_the_loser_notices_at_its_next_renewal_and_leaves_the_winners_lease(store, caplog):
    with held(store, 0.6):
        elsewhere(store)
        data = {**said(store), "token": "another", "holder": "another job", "expires_at": time.time() + 60}
        store.write(lease.NAME, json.dumps(data).encode())
        time.sleep(0.6)
        assert "lost its lease" in caplog.text
    assert said(store)["holder"] == "another job"


def test_a_lease_file_that_is_none_is_named(store):
    store.write(lease.NAME, b"{")
    with pytest.raises(Damaged, match=r"LEASE: not a lease.*delete the file"), held(store):
        pass


def test_a_store_that_is_away_for_a_while_costs_nothing_and_one_that_stays_away_is_told(server, store, monkeypatch):
    if not store.uri.startswith("s3"):
        pytest.skip("a folder is never away")
    monkeypatch.setattr(remote_errors, "TRIES", 2)
    with held(store, 0.9) as holder:
        server.fault = lambda *_: (503, "SlowDown")
        time.sleep(0.7)
        with pytest.raises(Unavailable):
            holder.check()
        server.fault = None
        holder.check()


def _race(uri, barrier, results, number):
    store = Store(uri)
    for turn in range(20):
        barrier.wait()
        try:
            with held(Store(f"{uri}/{turn}"), 60):
                results.put((turn, number))
                barrier.wait()  # held until the other has tried
        except Conflict:
            barrier.wait()
    del store


@pytest.mark.slow
def test_of_two_processes_that_race_exactly_one_wins(store):
    spawn = multiprocessing.get_context("spawn")
    barrier, results = spawn.Barrier(2), spawn.Queue()
    racers = [spawn.Process(target=_race, args=(store.uri, barrier, results, number)) for number in range(2)]
    for racer in racers:
        racer.start()
    winners = [results.get(timeout=120) for _ in range(20)]
    for racer in racers:
        racer.join(60)
        assert racer.exitcode == 0
    assert results.empty()
    assert sorted(turn for turn, _ in winners) == list(range(20))
    print(f"won by the first: {sum(number == 0 for _, number in winners)} of 20")


HOLD = """
import sys, time
from hybrid_ir.lease import held
from hybrid_ir.store import Store
with held(Store(sys.argv[1]), float(sys.argv[2])):
    print("held", flush=True)
    time.sleep(600)
"""


def hold(store, ttl_s):
    process = subprocess.Popen([sys.executable, "-c", HOLD, store.uri, str(ttl_s)], stdout=subprocess.PIPE, text=True)
    assert process.stdout.readline() == "held\n"
    return process


def kill(process):
    process.send_signal(signal.SIGKILL)
    process.wait()
    process.stdout.close()


def test_a_killed_holder_of_this_machine_is_known_to_be_dead(store):
    process = hold(store, 600)
    with pytest.raises(Conflict, match=rf"process {process.pid} on"), held(store):
        pass
    kill(process)
    with held(store):  # at once
        pass


def test_a_killed_holder_of_another_machine_is_succeeded_when_its_lease_ends(store):
    process = hold(store, 3)
    elsewhere(store)
    kill(process)
    killed = time.monotonic()
    with pytest.raises(Conflict), held(store):
        pass
    with held(store, wait_s=30):
        assert 0.5 < time.monotonic() - killed < 6


def test_the_name_of_a_process_is_its_own():
    mine = lease.process_name()
    if not mine:
        pytest.skip("this system does not tell when a process started")
    assert mine == lease.process_name(os.getpid())
    assert mine != lease.process_name(os.getppid())
    assert lease.process_name(2**22 + 1) == ""


def test_a_look_refuses_while_another_holds_it_and_only_then(store, monkeypatch):
    clock = Clock()
    lease.refuse_if_held(store, clock)
    with held(store, 60, clock=clock):
        with pytest.raises(Conflict, match=r"is being written by .* its lease ends in 60 s"):
            lease.refuse_if_held(store, clock)
        clock.now += 61
        lease.refuse_if_held(store, clock)
        clock.now -= 61
        monkeypatch.setattr(lease, "_died", lambda process: True)
        lease.refuse_if_held(store, clock)
    lease.refuse_if_held(store, clock)
    assert store.files("") == []


def test_where_nothing_may_be_deleted_the_lease_ends(store, monkeypatch):
    def refuse(*_):
        raise Unavailable("may not delete")

    monkeypatch.setattr(Store, "delete_version", refuse)
    with held(store, 60):
        pass
    assert said(store)["expires_at"] == 0
    with held(store, 60):
        pass
