"""The benchmark job on a real Ray: killed and resumed, its workers killed, its language model throttled."""

import json
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest
import ray
import yaml
from fake_llm import Fault
from fake_server import FakeServer
from killing import kill

from hybrid_ir.evaluation.run import journal
from hybrid_ir.evaluation.run import run as runs
from hybrid_ir.evaluation.run.benchmark import Request
from hybrid_ir.evaluation.run.grid import Cell, Grid, Planned
from hybrid_ir.evaluation.run.rows import Row
from hybrid_ir.evaluation.run.run import Run
from hybrid_ir.evaluation.run.runner import go
from hybrid_ir.evaluation.sets.datasets import AnswerSet
from hybrid_ir.evaluation.sets.question_sets import record
from hybrid_ir.evaluation.sets.questions import GoldQuestion
from hybrid_ir.progress import Reporter
from hybrid_ir.settings import Settings
from ray_jobs import benchmark

pytestmark = [
    pytest.mark.slow,
    pytest.mark.cluster,
    pytest.mark.timeout(900),
    pytest.mark.usefixtures("shared_ray"),
]

QUIET = Reporter(quiet=True)
EXAMPLES = Path(__file__).parents[2] / "examples"


@pytest.fixture
def grid(tmp_path):
    def written(**changes):
        path = tmp_path / "grid.yaml"
        made = {"methods": ["medcpt_k1", "ablation_dense_iterated"], "datasets": [str(EXAMPLES / "questions.jsonl")]}
        path.write_text(yaml.safe_dump({**made, **changes}), encoding="utf-8")
        return str(path)

    return written


def test_a_killed_run_goes_on_asks_nothing_twice_and_repeats_byte_for_byte(sample_root, grid, tmp_path):
    killed, again = tmp_path / "killed", tmp_path / "again"
    given = ["--grid", grid(), "--root", sample_root, "--limit", "8"]
    command = [sys.executable, "-m", "ray_jobs.benchmark", *given, "--out", str(killed), "--workers", "1"]
    job = subprocess.Popen(command, start_new_session=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        end = time.monotonic() + 600
        while (killed / journal.NAME).stat().st_size == 0 if (killed / journal.NAME).exists() else True:
            assert job.poll() is None, "the run ended before it could be killed"
            assert time.monotonic() < end
            time.sleep(0.02)
    finally:
        kill(job)
    with (killed / journal.NAME).open("ab") as file:
        file.write(b'{"cell": "torn')  # as if the kill had come within a line
    before = (killed / journal.NAME).read_bytes()
    whole = before[: before.rfind(b"\n") + 1]
    assert 0 < whole.count(b"\n") < 16

    request = Request(grid=grid(), root=sample_root, limit=8)
    done = benchmark.run(request, killed, QUIET, workers=1)
    assert (done.rows, done.errors, done.stopped) == (16, 0, "")
    after = (killed / journal.NAME).read_bytes()
    assert after.startswith(whole)
    assert after.count(b"\n") == 16

    assert benchmark.run(Request(rerun=str(killed)), again, QUIET, workers=1).rows == 16
    first, second = ((folder / runs.PREDICTIONS).read_bytes() for folder in (killed, again))
    assert first == second
    rows = journal.read(again / journal.NAME).values()
    assert all(row.rounds and row.rounds[0].chunks for row in rows)
    assert runs.read(again).build_id == runs.read(killed).build_id
    assert "Where failures arise" in (again / "report.html").read_text(encoding="utf-8")


def says(prompt):
    """Whatever is asked for, by the fields of its schema."""
    fields = prompt.json_schema["properties"]
    said = {"answer_choice": "A", "answer": "yes", "short": "nerve", "steps": "s", "statements": [], "missing": ""}
    said |= {"enough_evidence": False, "sub_questions": []}
    return json.dumps({name: said[name] for name in fields})


def test_a_throttled_model_answers_all_in_the_end(sample_root, grid, tmp_path):
    asked = 0

    def throttling(prompt):
        nonlocal asked
        asked += 1
        return Fault("status", status=429, retry_after="0.05") if asked % 3 else says(prompt)

    config = tmp_path / "c.yaml"
    with FakeServer(throttling, seconds=0.02) as server:
        llm = {"backend": "openai", "base_url": server.url, "model": "fake", "retries": 4}
        config.write_text(yaml.safe_dump({"reasoner": {"kind": "llm", "llm": llm}}), encoding="utf-8")
        request = Request(grid=grid(methods=["zero_shot", "medcpt_k1"]), root=sample_root, config=str(config), limit=12)
        done = benchmark.run(request, tmp_path / "out", QUIET, concurrency=8)
        outcomes = [call.body["model"] for call in server.log]
    assert (done.rows, done.errors, done.stopped) == (24, 0, "")
    rows = list(journal.read(tmp_path / "out" / journal.NAME).values())
    assert all(row.calls >= 1 and row.prompt_tokens > 0 for row in rows)
    assert len(outcomes) > 2 * sum(row.calls for row in rows)  # two refusals for each reply
    assert any(row.choice == "A" for row in rows)


@ray.remote(num_cpus=0)
class Mortal:
    """A worker that dies of one question, and whose process can be killed."""

    def __init__(self, run):
        self._cells = {one.cell.key: one for one in run.planned}

    async def ask(self, cell, question):
        import asyncio

        asked = GoldQuestion.model_validate_json(question)
        if asked.id == "poison":
            os._exit(1)
        await asyncio.sleep(0.2)
        return Row(cell=cell, id=asked.id, choice="A", strict=True, stopped="rounds").model_dump_json(), "", ""


def test_workers_that_die_cost_no_question_and_the_one_at_fault_is_a_row(tmp_path, monkeypatch):
    monkeypatch.setattr(benchmark, "Worker", Mortal)
    ids = [*(f"q{number}" for number in range(20)), "poison", *(f"r{number}" for number in range(10))]
    questions = tuple(GoldQuestion(id=i, question=i, options={"A": "x", "B": "y"}, answer="A") for i in ids)
    planned = (Planned(cell=Cell(method="m", model="default", dataset="d"), settings=Settings()),)
    run = Run(
        started=runs.now(),
        grid=Grid(name="g", methods=["m"], datasets=["d"]),
        planned=planned,
        build_id="b",
        fingerprints={},
        beside=".",
        datasets={"d": record("d", AnswerSet("d", questions))},
        versions={},
        questions={"d": questions},
    )
    pool = benchmark.Pool(run, workers=2, each=4)
    count = 0

    def ask(one, question):
        nonlocal count
        count += 1
        if question.id == "q5":
            ray.kill(pool._handles[0])
        return pool.ask(one, question)

    with journal.Journal(tmp_path) as held:
        assert go(run, held, ask, 8, QUIET) == ""
        rows = {identity: row for (_, identity), row in held.rows.items()}
    assert set(rows) == set(ids)
    assert {identity for identity, row in rows.items() if row.error} == {"poison"}
    assert rows["poison"].kind == "Died"
    assert "died 3 times" in rows["poison"].error
    assert count == len(ids)
