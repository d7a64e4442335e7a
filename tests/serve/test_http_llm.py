"""The service with a language model behind an endpoint: real Ray, real Serve, real HTTP, a fake model."""

from __future__ import annotations

import json
import time
from pathlib import Path

import httpx
import pytest
from fake_server import FakeServer

from hybrid_ir.llm.records import Prompt
from hybrid_ir.progress import Reporter
from hybrid_ir.settings import DeploymentSettings, ServeSettings, Settings
from ray_jobs.index import index
from serve.run import run

pytestmark = [pytest.mark.cluster, pytest.mark.slow]

CORPUS = Path(__file__).parents[2] / "examples" / "corpus"
QUESTION = "Which enzyme does fluconazole inhibit?"
LIGHT = DeploymentSettings(num_cpus=0.2, max_ongoing_requests=64, max_queued_requests=64)


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
def url(tmp_path_factory, model):
    folder = tmp_path_factory.mktemp("llm")
    notes = [str(CORPUS / f"anticoagulants/{name}.md") for name in ("warfarin", "fluconazole")]
    index(notes, str(folder / "root"), Settings(), Reporter())
    llm = {"backend": "openai", "base_url": model.url, "model": "fake"}
    parts = dict.fromkeys(("dense_scorer", "graph_scorer", "reasoner", "controller"), LIGHT)
    settings = Settings.model_validate(
        {"reasoner": {"kind": "llm", "llm": llm}, "serve": ServeSettings(port=0, **parts).model_dump()}
    )
    running = run(str(folder / "root"), settings)
    yield running.url
    running.close()


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
