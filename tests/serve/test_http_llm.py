"""The service with a language model behind an endpoint: real Ray, real Serve, real HTTP, a fake model.

Its parts are divided as on a cluster: the query encoder is a deployment, and the shards are in three groups.
"""

from __future__ import annotations

import json
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import httpx
import pytest
from fake_server import FakeServer
from ray import serve

import hybrid_ir
from hybrid_ir.api import HybridIR
from hybrid_ir.llm.records import Prompt
from hybrid_ir.progress import Reporter
from hybrid_ir.settings import BuildSettings, Settings
from ray_jobs.index import index
from serve.run import APPLICATION, run

pytestmark = [pytest.mark.cluster, pytest.mark.slow]

CORPUS = Path(__file__).parents[2] / "examples" / "corpus"
QUESTION = "Which enzyme does fluconazole inhibit?"
BUILD = BuildSettings(shards=4, vectors_per_shard=1)  # each shard of documents is one of vectors
LIGHT = {"num_cpus": 0.2, "max_ongoing_requests": 64, "max_queued_requests": 64}


def script(prompt: Prompt) -> str:
    fields = (prompt.json_schema or {})["properties"]
    if "sub_questions" in fields:
        return json.dumps({"missing": "", "sub_questions": [{"question": QUESTION, "entities": ["fluconazole"]}]})
    statements = [{"text": "Fluconazole inhibits CYP2C9.", "citations": ["E1"]}]
    return json.dumps({"statements": statements, "enough_evidence": True, "short": "CYP2C9"})


@pytest.fixture(scope="module")
def model():
    with FakeServer(script, seconds=0.2) as server:
        yield server


@pytest.fixture(scope="module")
def root(tmp_path_factory) -> str:
    made = str(tmp_path_factory.mktemp("llm") / "root")
    names = ("anticoagulants/warfarin", "anticoagulants/fluconazole", "anticoagulants/cyp2c9", "rabies/bats")
    index([str(CORPUS / f"{name}.md") for name in names], made, Settings(build=BUILD), Reporter())
    return made


@pytest.fixture(scope="module")
def url(root, model):
    llm = {"backend": "openai", "base_url": model.url, "model": "fake"}
    parts = dict.fromkeys(("graph_scorer", "reasoner", "controller", "query_encoder"), LIGHT)
    parts |= {name: {**LIGHT, "groups": 3} for name in ("dense_scorer", "sparse_scorer")}
    settings = Settings.model_validate(
        {"build": BUILD, "reasoner": {"kind": "llm", "llm": llm}, "serve": {"port": 0, **parts}}
    )
    running = run(root, settings)
    yield running.url
    running.close()


@pytest.fixture(scope="module")
def here(root) -> HybridIR:
    """The same index in this process, in one piece."""
    return hybrid_ir.open(root)


@pytest.mark.parametrize("path", ["dense", "sparse", "graph"])
def test_groups_and_the_encoders_deployment_rank_as_one_process(url: str, here: HybridIR, path: str) -> None:
    for query in (QUESTION, "rabies of bats", "an anticoagulant cleared by a liver enzyme"):
        body = {"query": query, "k": 4, "paths": [path]}
        found = httpx.post(f"{url}/v1/retrieve", json=body, timeout=60, trust_env=False).raise_for_status().json()
        expected = here.retrieve(query, 4, paths=[path])
        assert found["degraded"] == []
        assert [item["chunk"]["id"] for item in found["evidence"]] == [item.chunk.id for item in expected.evidence]
        scores = [item["paths"][path]["score"] for item in found["evidence"]]
        assert scores == pytest.approx([item.paths[path].score for item in expected.evidence], abs=1e-5)


def test_what_is_asked_at_the_same_time_is_one_batch_of_the_encoder(url: str) -> None:
    encoder = serve.get_deployment_handle("QueryEncoder", APPLICATION)
    before = encoder.batches.remote().result()

    def ask(number: int) -> None:
        body = {"query": f"{QUESTION} {number}", "paths": ["dense"]}
        httpx.post(f"{url}/v1/retrieve", json=body, timeout=60, trust_env=False).raise_for_status()

    with ThreadPoolExecutor(3) as pool:
        list(pool.map(ask, range(3)))
    after = encoder.batches.remote().result()
    new = {size: count - before.get(size, 0) for size, count in after.items() if count > before.get(size, 0)}
    assert sum(size * count for size, count in new.items()) == 9  # three groups ask for each
    assert max(new) >= 3


def test_an_answer_comes_in_events_with_its_pieces(url: str, model: FakeServer) -> None:
    body = {"question": QUESTION, "rounds": 1, "deadline_s": 120}
    whole = httpx.post(f"{url}/v1/answer", json=body, timeout=150, trust_env=False).json()
    assert (whole["reasoner"], whole["short"], whole["enough_evidence"]) == ("fake", "CYP2C9", True)
    assert whole["statements"][0]["support"] > 0.4
    kinds, said = [], ""
    streamed = {**body, "stream": True}
    with httpx.stream("POST", f"{url}/v1/answer", json=streamed, timeout=150, trust_env=False) as response:
        for line in response.iter_lines():
            if line.startswith("data: "):
                event = json.loads(line.removeprefix("data: "))
                kinds.append(event["kind"])
                said += event["text"] if event["kind"] == "wrote" else ""
    assert said == "Fluconazole inhibits CYP2C9.\nCYP2C9\n"
    assert kinds[0] == "called"
    assert kinds[-1] == "finished"
    assert kinds.count("called") == 3
    assert kinds.index("concluding") < kinds.index("wrote")
    assert model.log.running() == 0


def test_a_client_that_leaves_ends_the_models_work(url: str, model: FakeServer) -> None:
    model.seconds = 60.0
    body = {"question": QUESTION, "rounds": 1, "deadline_s": 120, "stream": True}
    before = len(model.log)
    with pytest.raises(httpx.ReadTimeout):
        httpx.post(f"{url}/v1/answer", json=body, timeout=httpx.Timeout(60, read=8), trust_env=False)
    end = time.monotonic() + 30
    while (len(model.log) == before or model.log.running()) and time.monotonic() < end:
        time.sleep(0.05)
    model.seconds = 0.2
    assert model.log.outcomes()[before:] == ["cancelled"]


def test_a_model_that_hangs_holds_the_deadline_and_the_answer_says_so(url: str, model: FakeServer) -> None:
    model.seconds = 60.0
    try:
        for deadline_s in (2, 4):
            start = time.monotonic()
            body = {"question": QUESTION, "rounds": 1, "deadline_s": deadline_s}
            answer = httpx.post(f"{url}/v1/answer", json=body, timeout=30, trust_env=False)
            assert time.monotonic() - start < deadline_s + 2
            found = answer.raise_for_status().json()
            assert (found["stopped"], found["enough_evidence"], found["short"]) == ("deadline", False, "")
        end = time.monotonic() + 10
        while model.log.running() and time.monotonic() < end:
            time.sleep(0.05)
        assert model.log.running() == 0
    finally:
        model.seconds = 0.2
