"""The service as it is run: a real index, a real Ray, real Serve, over HTTP.

One service for the whole module; tests that harm it wait until it has recovered.
"""

from __future__ import annotations

import os
import signal
import threading
import time
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from urllib.parse import quote, urlsplit

import httpx
import psutil
import pytest
import ray
from running_service import replica, stopped, wait_for, wait_until_ready

from hybrid_ir.errors import BadInput, Conflict
from hybrid_ir.index import layout, retention
from hybrid_ir.index.retention import rollback
from hybrid_ir.progress import Reporter
from hybrid_ir.records import Answer, Chunk, Retrieval
from hybrid_ir.settings import JobSettings, Settings
from hybrid_ir.store import Store
from ray_jobs.cluster import connected
from ray_jobs.index import index, update
from serve.run import run

pytestmark = [pytest.mark.cluster, pytest.mark.slow]

CORPUS = Path(__file__).parents[2] / "examples" / "corpus"
QUESTION = "A patient on warfarin gets fluconazole. Which enzyme does fluconazole inhibit?"
DEADLINE_S = 150
"""Long, as a busy machine may be slow and a late path is left out; who tests lateness gives a shorter one."""
OTHERS = {"num_cpus": 0.2, "max_ongoing_requests": 64, "max_queued_requests": 64}
SERVED = {
    "follow_s": 0.3,
    "port": 0,
    "dense_scorer": {"num_cpus": 0.2, "max_ongoing_requests": 16, "max_queued_requests": 16},
    "graph_scorer": OTHERS,
    "reasoner": OTHERS,
    "controller": OTHERS,
}


@pytest.fixture(scope="module")
def root(tmp_path_factory) -> str:
    """An index of a few notes, one with a name that has to be percent-encoded."""
    folder = tmp_path_factory.mktemp("serve")
    corpus = folder / "corpus"
    corpus.mkdir()
    for name in ("anticoagulants/warfarin", "anticoagulants/fluconazole", "anticoagulants/cyp2c9", "rabies/bats"):
        note = (CORPUS / f"{name}.md").read_text(encoding="utf-8")
        (corpus / f"{Path(name).name} & co.md").write_text(note, encoding="utf-8")
    made = str(folder / "root")
    # Two more builds to change over to, the second of which is damaged.
    for name in ("thyroid/graves-disease", "malaria/primaquine"):
        (folder / f"{Path(name).name}.md").write_text((CORPUS / f"{name}.md").read_text("utf-8"), "utf-8")
    with connected(JobSettings()):  # one Ray for the three jobs
        first = index([str(corpus)], made, Settings(), Reporter())
        update(made, [str(folder / "graves-disease.md")], [], None, Reporter())
        broken = update(made, [str(folder / "primaquine.md")], [], None, Reporter())
    store = Store(made)
    damaged = next(name for name in broken.files if "/graph/" in name and name.endswith(".npy"))
    store.write(damaged, store.read(damaged)[:-1] + b"?")
    rollback(store, first.build_id)
    return made


@pytest.fixture(scope="module")
def builds(root) -> list[str]:
    """The ids of the three builds, the oldest first; the last is damaged."""
    found = {made.parent: made.build_id for made in retention.builds(Store(root))}
    first = found[None]
    return [first, found[first], found[found[first]]]


@pytest.fixture(scope="module")
def service(root):
    running = run(root, Settings.model_validate({"loop": {"deadline_s": DEADLINE_S}, "serve": SERVED}))
    yield running
    running.close()
    assert not ray.is_initialized()


@pytest.fixture
def client(service):
    with httpx.Client(base_url=service.url, timeout=180, trust_env=False) as client:
        yield client
    wait_until_ready(service)


def test_every_endpoint(client, service):
    alive = client.get("/healthz", headers={"X-Request-ID": "mine"})
    assert alive.json() == {"status": "ok", "build_id": service.build_id}
    assert alive.headers.get_list("x-request-id") == ["mine"]
    assert client.get("/readyz").json() == {"status": "ready", "build_id": service.build_id}
    build = client.get("/v1/build").json()
    assert build["build_id"] == service.build_id
    assert build["counts"]["documents"] == 4
    assert build["fingerprints"]["extractor"]["kind"] == "rules"
    assert "no medical device" in client.get("/openapi.json").json()["info"]["description"]
    assert client.get("/docs").status_code == 200

    answer = Answer.model_validate(client.post("/v1/answer", json={"question": QUESTION}).raise_for_status().json())
    assert (answer.build_id, answer.reasoner, answer.degraded) == (service.build_id, "extractive", ())
    assert answer.rounds
    evidence = {e.chunk.id for r in answer.rounds for s in r.sub_answers for e in s.retrieval.evidence}
    cited = {citation for statement in answer.statements for citation in statement.citations}
    assert cited == {chunk.id for chunk in answer.citations} <= evidence

    options = {"A": "CYP2C9", "B": "The proton pump"}
    answer = Answer.model_validate(
        client.post("/v1/answer", json={"question": QUESTION, "options": options, "rounds": 1}).json()
    )
    assert answer.choice in (*options, None)
    assert len(answer.rounds) <= 1

    found = Retrieval.model_validate(client.post("/v1/retrieve", json={"query": "fluconazole", "k": 2}).json())
    assert len(found.evidence) == 2
    assert set(found.seconds) == {"graph", "dense"}
    for evidence in found.evidence:
        for safe in ("", "/"):
            chunk = Chunk.model_validate(client.get(f"/v1/chunks/{quote(evidence.chunk.id, safe=safe)}").json())
            assert chunk == evidence.chunk


@pytest.mark.parametrize("path", ["graph", "dense", "sparse"])
def test_each_path_answers_alone(client, path):
    found = Retrieval.model_validate(
        client.post("/v1/retrieve", json={"query": "warfarin and CYP2C9", "k": 2, "paths": [path]}).json()
    )
    assert [item.paths[path].rank for item in found.evidence] == [1, 2]
    assert found.seconds.keys() == {path}


def test_bad_input_over_http(client):
    bad = [
        ("/v1/answer", {"question": "x" * 100_000}, 400, "100000 characters, the limit is 20000"),
        ("/v1/answer", {"question": "x" * 1_000_000}, 413, "305536 bytes"),
        ("/v1/answer", {"question": QUESTION, "options": {"AB": "x", "C": "y"}}, 400, "AB"),
        ("/v1/answer", {"question": QUESTION, "paths": ["lexical"]}, 400, "graph and dense and sparse"),
        ("/v1/answer", {"question": QUESTION, "rounds": 99}, 400, "rounds"),
        ("/v1/answer", {"question": QUESTION, "model": "x"}, 400, "model"),
        ("/v1/retrieve", {"query": "x", "k": 0}, 400, "k"),
        ("/v1/retrieve", {"query": "  "}, 400, "query"),
    ]
    for path, body, status, named in bad:
        response = client.post(path, json=body)
        assert (response.status_code, named in response.json()["error"]["message"]) == (status, True), response.text
    response = client.post("/v1/answer", content=b"{nonsense", headers={"content-type": "application/json"})
    assert (response.status_code, "JSON" in response.json()["error"]["message"]) == (400, True)
    for path in ("/v1/chunks/nothing%230", "/nowhere"):
        assert client.get(path).status_code == 404
        said = client.get(path).json()["error"]["message"]
        assert "nothing" in said or "nowhere" in said


def test_eight_at_a_time_get_the_same_answer(client):
    body = {"question": QUESTION, "rounds": 2}

    def ask(_: int) -> dict:
        return client.post("/v1/answer", json=body).raise_for_status().json()

    with ThreadPoolExecutor(8) as pool:
        answers = [Answer.model_validate(found) for found in pool.map(ask, range(8))]
    assert {answer.degraded for answer in answers} == {()}
    assert len({(a.short, a.statements, tuple(c.id for c in a.citations)) for a in answers}) == 1


def test_an_answer_streams_and_a_chat_client_is_served(client):
    with client.stream("POST", "/v1/answer", json={"question": QUESTION, "rounds": 1, "stream": True}) as response:
        lines = [line for line in response.iter_lines() if line.startswith("event: ")]
    assert lines[0] == "event: round_started"
    assert lines[-1] == "event: finished"
    said = {"model": "hybrid-ir", "messages": [{"role": "user", "content": QUESTION}]}
    reply = client.post("/v1/chat/completions", json=said).raise_for_status().json()
    assert reply["choices"][0]["message"]["content"]


def test_builds_change_over_under_load_and_a_damaged_one_does_not(client, service, root, builds):
    """Five changes: no request fails, and each has seen one build alone."""
    store, stop = Store(root), threading.Event()
    failed: list[str] = []
    seen: list[tuple[str, bool]] = []

    def ask() -> None:
        while not stop.is_set():
            response = client.post("/v1/answer", json={"question": "What does thyroid storm in Graves disease do?"})
            if response.status_code != 200:
                failed.append(response.text)
                continue
            answer = Answer.model_validate(response.json())
            evidence = (e.chunk for r in answer.rounds for s in r.sub_answers for e in s.retrieval.evidence)
            seen.append((answer.build_id, any("graves" in chunk.id for chunk in evidence)))

    def becomes(build_id: str) -> bool:
        end = time.monotonic() + 60
        while client.get("/healthz").json()["build_id"] != build_id and time.monotonic() < end:
            time.sleep(0.1)
        return client.get("/healthz").json()["build_id"] == build_id

    old, new, damaged = builds
    with ThreadPoolExecutor(3) as pool:
        asking = [pool.submit(ask) for _ in range(3)]
        try:
            for build_id in (new, old, new, old, new):
                store.write(layout.CURRENT, f"{build_id}\n".encode())
                assert becomes(build_id)
                count = len(seen)
                while len(seen) < count + 4 and not failed:
                    time.sleep(0.1)
            store.write(layout.CURRENT, f"{damaged}\n".encode())
            end = time.monotonic() + 60
            while not (refused := client.get("/v1/build").json()["refused"]) and time.monotonic() < end:
                time.sleep(0.1)
            assert (refused["build_id"], "checksum" in refused["reason"]) == (damaged, True)
            assert client.get("/healthz").json()["build_id"] == new
        finally:
            stop.set()
            store.write(layout.CURRENT, f"{old}\n".encode())
        for one in asking:
            one.result()
    assert not failed
    assert {build_id for build_id, _ in seen} == {old, new}
    # The note on Graves' disease is in the newer build alone: no answer has it with the older one's id.
    assert {graves for build_id, graves in seen if build_id == old} == {False}
    assert {graves for build_id, graves in seen if build_id == new} == {True}
    assert becomes(old)


@pytest.mark.parametrize("name", ["DenseScorer", "Controller"])
def test_a_replica_killed_under_load_costs_its_own_requests_at_most(client, service, name):
    """Three ask all the time; a scorer's calls are made once more, a controller's requests in flight are lost."""
    body = {"query": QUESTION, "k": 3}
    by_paths = {}
    for paths in (["graph", "dense"], ["graph"], ["dense"]):
        found = client.post("/v1/retrieve", json={**body, "paths": paths}).raise_for_status().json()
        by_paths[tuple(paths)] = [item["chunk"]["id"] for item in found["evidence"]]
    lost: list[str] = []
    served: list[tuple[tuple[str, ...], list[str]]] = []
    stop = threading.Event()

    def ask() -> None:
        while not stop.is_set():
            try:
                response = client.post("/v1/retrieve", json=body)
            except httpx.TransportError as error:
                lost.append(repr(error))
                continue
            if response.status_code != 200:
                lost.append(response.text)
                continue
            found = response.json()
            used = tuple(path for path in ("graph", "dense") if path not in found["degraded"])
            served.append((used, [item["chunk"]["id"] for item in found["evidence"]]))

    def another_than(pid: int) -> bool:
        try:
            return replica(name).pid != pid
        except AssertionError:
            return False

    with ThreadPoolExecutor(3) as pool:
        asking = [pool.submit(ask) for _ in range(3)]
        try:
            wait_for(lambda: len(served) >= 6)
            victim = replica(name)
            victim.kill()
            wait_for(lambda: another_than(victim.pid))
            count = len(served)
            wait_for(lambda: len(served) >= count + 6 and all(len(used) == 2 for used, _ in served[-3:]))
        finally:
            stop.set()
        for one in asking:
            one.result()
    assert len(lost) <= (3 if name == "Controller" else 0), lost
    assert all(chunks == by_paths[used] for used, chunks in served)
    assert client.get("/healthz").json()["build_id"] == service.build_id


def test_a_scorer_that_hangs_is_left_behind_and_said(client):
    with stopped("DenseScorer"):
        response = client.post("/v1/answer", json={"question": QUESTION, "deadline_s": 12, "rounds": 1})
        answer = Answer.model_validate(response.raise_for_status().json())
        assert answer.degraded == ("dense",)
        assert answer.seconds < 12.5
        ready = client.get("/readyz")
        assert (ready.status_code, ready.headers["retry-after"].isdigit()) == (503, True)
        assert "dense scorer" in ready.json()["error"]["message"]
        assert client.get("/healthz").status_code == 200


def test_a_full_queue_is_said_with_when_to_come_back(client):
    body = {"query": "warfarin", "k": 1, "paths": ["dense"]}
    asked: list[Future[httpx.Response]] = []
    with stopped("DenseScorer"), ThreadPoolExecutor(60) as pool:
        # One after the other: a burst is let through on a guess, before the replica's length is known.
        while len(asked) < 60 and not any(response.done() for response in asked):
            asked.append(pool.submit(client.post, "/v1/retrieve", json=body))
            time.sleep(0.05)
        os.kill(replica("DenseScorer").pid, signal.SIGCONT)
        responses = [response.result() for response in asked]
    refused = [response for response in responses if response.status_code == 429]
    assert refused
    assert {response.status_code for response in responses} == {200, 429}
    for response in refused:
        assert "try again" in response.json()["error"]["message"]
        assert response.headers["retry-after"].isdigit()


def test_a_client_that_leaves_ends_the_work(client):
    def ongoing() -> int:
        names = [a for a in ray.util.list_named_actors(all_namespaces=True) if "#Controller#" in a["name"]]
        actor = ray.get_actor(names[0]["name"], namespace=names[0]["namespace"])
        return ray.get(actor.get_num_ongoing_requests.remote())

    def leave() -> None:
        with pytest.raises(httpx.ReadTimeout):
            client.post("/v1/retrieve", json={"query": "warfarin", "paths": ["dense"]}, timeout=2)

    def becomes(count: int) -> bool:
        end = time.monotonic() + 5  # the deadline alone would end the work much later
        while ongoing() != count and time.monotonic() < end:
            time.sleep(0.05)
        return ongoing() == count

    with stopped("DenseScorer"), ThreadPoolExecutor(1) as pool:
        left = pool.submit(leave)
        assert becomes(1)
        left.result()
        assert becomes(0)


def test_a_second_service_on_the_port_is_refused(service, root):
    port = urlsplit(service.url).port
    with pytest.raises(BadInput, match=f"Port {port} is in use; choose another with --port"):
        run(root, port=port)
    wait_until_ready(service)


@pytest.mark.parametrize("given", [None, 0])
def test_a_second_service_on_the_cluster_is_refused_and_harms_nothing(service, root, monkeypatch, given):
    monkeypatch.setenv("RAY_ADDRESS", "joined already")  # so that the port is Serve's to judge, not ours
    port = urlsplit(service.url).port if given is None else given
    with pytest.raises(Conflict, match="already"):
        run(root, port=port)
    assert httpx.get(f"{service.url}/readyz", timeout=30, trust_env=False).status_code == 200


def test_nothing_of_it_listens_beyond_this_machine(service):
    """Neither the service nor any process of its Ray."""
    listening = set()
    for process in (psutil.Process(), *psutil.Process().children(recursive=True)):
        with suppress(psutil.Error):
            sockets = process.net_connections(kind="inet")
            listening |= {(process.pid, one.laddr) for one in sockets if one.status == psutil.CONN_LISTEN}
    assert urlsplit(service.url).port in {address.port for _, address in listening}
    assert {address.ip.removeprefix("::ffff:") for _, address in listening} <= {"127.0.0.1", "::1"}, listening


def test_a_stop_lets_questions_in_progress_finish(service):
    """The last test here: it ends the service."""

    def ask(number: int) -> httpx.Response:
        body = {"question": f"{QUESTION} {number}", "rounds": 10, "sub_questions": 5, "top_k": 50}  # within the queues
        return httpx.post(f"{service.url}/v1/answer", json=body, timeout=200, trust_env=False)

    with ThreadPoolExecutor(3) as pool:
        asked = [pool.submit(ask, number) for number in range(3)]
        time.sleep(1)
        assert not all(one.done() for one in asked)
        service.close()
        answers = [one.result() for one in asked]
    assert [one.status_code for one in answers] == [200] * 3, [one.text[:200] for one in answers]
    assert {Answer.model_validate(one.json()).degraded for one in answers} == {()}
    with pytest.raises(httpx.TransportError):
        httpx.get(f"{service.url}/healthz", trust_env=False)
