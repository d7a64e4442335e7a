"""The benchmark against a running service, over real HTTP."""

from __future__ import annotations

import json
import socket
import threading
import time

import pytest
import uvicorn
import yaml
from small_service import Quoting, SharedWords, chunks, small_manifest, small_store

from hybrid_ir.errors import BadInput, Conflict, Unavailable
from hybrid_ir.evaluation.run import benchmark, journal
from hybrid_ir.evaluation.run.benchmark import Request
from hybrid_ir.index.chunk_store import ChunkStore
from hybrid_ir.progress import Reporter
from hybrid_ir.settings import Settings
from ray_jobs.benchmark import asked_by
from serve.api import create_app
from serve.service import Service
from serve.switch import Served

QUIET = Reporter(quiet=True)


@pytest.fixture
def graph():
    return SharedWords(chunks())


@pytest.fixture
def url(tmp_path, graph):
    manifest = small_manifest()
    store = ChunkStore(small_store(tmp_path), manifest)
    app = create_app(Served(Service(manifest, Settings(), store, {"graph": graph}, Quoting(), {})))
    held = socket.create_server(("127.0.0.1", 0))
    server = uvicorn.Server(uvicorn.Config(app, log_level="critical", access_log=False))
    thread = threading.Thread(target=server.run, args=([held],), daemon=True)
    thread.start()
    while not server.started:
        time.sleep(0.01)
    yield f"http://127.0.0.1:{held.getsockname()[1]}"
    server.should_exit = True
    thread.join(10)


@pytest.fixture
def request_to(tmp_path):
    questions = [
        {"id": "1", "type": "open", "question": "What inhibits CYP2C9.", "answer": "fluconazole"},
        {"id": "2", "type": "open", "question": "What do bats carry", "answer": "rabies"},
        {"id": "3", "type": "open", "question": "Nothing here", "answer": "x"},
    ]
    questions[0]["gold"] = ["anticoagulants/warfarin"]
    (tmp_path / "q.jsonl").write_text("".join(json.dumps(row) + "\n" for row in questions), encoding="utf-8")
    grid = {"methods": ["served"], "datasets": ["q.jsonl"], "rounds": [1, 2], "deadline_s": 30}
    (tmp_path / "g.yaml").write_text(yaml.safe_dump(grid), encoding="utf-8")
    return lambda url, **more: Request(grid=str(tmp_path / "g.yaml"), url=url, **more)


def test_a_grid_of_rounds_by_a_service(url, request_to, tmp_path):
    done = benchmark.run(request_to(url), tmp_path / "out", QUIET, asked_by, concurrency=2)
    assert (done.rows, done.errors, done.stopped) == (6, 0, "")
    rows = journal.read(tmp_path / "out" / journal.NAME)
    first = rows["served/default/q/rounds=1/k=own/seed=0", "1"]
    assert first.strict
    assert first.rounds[0].gold_recall == 1.0
    assert rows["served/default/q/rounds=2/k=own/seed=0", "2"].strict
    assert rows["served/default/q/rounds=2/k=own/seed=0", "3"].unanswered
    again = benchmark.run(Request(rerun=str(tmp_path / "out")), tmp_path / "again", QUIET, asked_by)
    assert again.rows == 6


def test_what_a_service_refuses_is_a_row_or_with_strict_an_error(url, graph, request_to, tmp_path):
    graph.error = BadInput("The index has no such path.")
    done = benchmark.run(request_to(url), tmp_path / "out", QUIET, asked_by, concurrency=1)
    assert (done.rows, done.errors) == (6, 6)
    error = next(iter(journal.read(tmp_path / "out" / journal.NAME).values())).error
    assert url in error
    assert "no such path" in error
    with pytest.raises(BadInput, match="question 1: "):
        benchmark.run(request_to(url, strict=True), tmp_path / "strict", QUIET, asked_by, concurrency=1)


def test_a_service_that_is_down_and_one_that_is_none(request_to, tmp_path, monkeypatch):
    down = "http://127.0.0.1:9"
    with pytest.raises(Unavailable, match="no service answers there"):
        benchmark.prepare(request_to(down, strict=True), QUIET)
    monkeypatch.setattr("hybrid_ir.evaluation.run.runner.FIRST_WAIT_S", 0.001)
    done = benchmark.run(request_to(down), tmp_path / "out", QUIET, asked_by)
    assert (done.rows, done.errors) == (6, 6)
    assert "no service answers there" in (tmp_path / "out" / "report.html").read_text(encoding="utf-8")


def test_another_build_of_a_service_is_another_run(url, request_to, tmp_path, monkeypatch):
    benchmark.run(request_to(url, limit=1), tmp_path / "out", QUIET, asked_by)
    monkeypatch.setattr("hybrid_ir.evaluation.run.asking.check_service", lambda url: {"build_id": "other"})
    with pytest.raises(Conflict, match="holds a run with other index"):
        benchmark.run(request_to(url, limit=1), tmp_path / "out", QUIET, asked_by)
    with pytest.raises(Conflict, match="now serves the build other"):
        benchmark.run(Request(rerun=str(tmp_path / "out")), tmp_path / "again", QUIET, asked_by)
