"""vLLM by ``ray.serve.llm`` with a tiny random model on a CPU: ``make test-vllm`` has the environment for it."""

from __future__ import annotations

import asyncio
import importlib.util
import json
import os
import time
from contextlib import aclosing
from pathlib import Path

import pytest

pytestmark = [
    pytest.mark.vllm,
    pytest.mark.slow,
    pytest.mark.timeout(1500),
    pytest.mark.skipif(
        getattr(importlib.util.find_spec("vllm"), "origin", None) is None,  # this folder is found under its name too
        reason="vLLM is not installed: make test-vllm",
    ),
]

CORPUS = Path(__file__).parent.parent.parent / "examples" / "corpus" / "neurology"
SCHEMA = {
    "type": "object",
    "properties": {
        "answer": {"type": "string", "maxLength": 20},
        "enough": {"type": "boolean"},
        "citations": {"type": "array", "items": {"type": "integer", "minimum": 1, "maximum": 9}, "maxItems": 3},
    },
    "required": ["answer", "enough", "citations"],
    "additionalProperties": False,
}


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory):
    """(URL, settings of the model) of the whole service over a small index, in a Ray of its own."""
    os.environ |= {
        "HF_HUB_OFFLINE": "1",
        "RAY_AUTH_MODE": "disabled",
        "RAY_USAGE_STATS_ENABLED": "0",
        "VLLM_CPU_KVCACHE_SPACE": "1",
        "VLLM_NO_USAGE_STATS": "1",
    }
    from tiny_qwen import qwen

    import serve.run
    from hybrid_ir.progress import Reporter
    from hybrid_ir.settings import Settings
    from ray_jobs.index import index

    model = qwen(tmp_path_factory.mktemp("model") / "tiny-qwen2", "\n".join(map(Path.read_text, CORPUS.glob("*.md"))))
    llm = {
        "backend": "vllm",
        "model": str(model),
        "engine": {"dtype": "bfloat16", "enforce_eager": True, "max_model_len": 2048, "max_num_seqs": 2},
        "bundles": [{"CPU": 1}],
        "max_tokens": 400,
        "timeout_s": 300,
        "retries": 0,
    }
    settings = Settings.model_validate({"reasoner": {"kind": "llm", "llm": llm}, "loop": {"deadline_s": 280}})
    root = str(tmp_path_factory.mktemp("root"))
    index([str(CORPUS)], root, settings, Reporter(quiet=True))
    serve.run.START_TIMEOUT_S = 1200.0
    running = serve.run.run(root, settings, port=0)
    try:
        yield running.url, settings.reasoner.llm
    finally:
        running.close()


@pytest.fixture
def llm(service):
    """Its model, asked through the handle of its deployment."""
    from ray import serve

    from serve.llm import NAME, HandleLLM
    from serve.run import APPLICATION

    return HandleLLM(serve.get_deployment_handle(NAME, APPLICATION), service[1])


def test_the_loop_runs_to_its_end_with_a_model_that_writes_noise(service) -> None:
    import httpx

    asked = {"question": "What causes myasthenia gravis?", "rounds": 2, "sub_questions": 2, "top_k": 2}
    answer = httpx.post(f"{service[0]}/v1/answer", json=asked, timeout=300, trust_env=False)
    assert answer.status_code == 200, answer.text
    found = answer.json()
    assert found["reasoner"] == service[1].model
    # Noise may fill a string of the schema up to the limit of the reply, which then cannot be read: said, not hidden.
    assert found["stopped"] in ("rounds", "nothing missing", "unreadable")
    if found["stopped"] != "unreadable":
        assert found["rounds"]
    known = {
        evidence["chunk"]["id"]
        for r in found["rounds"]
        for a in r["sub_answers"]
        for evidence in a["retrieval"]["evidence"]
    }
    assert {chunk["id"] for chunk in found["citations"]} <= known


def ask(text: str, **changes):
    from hybrid_ir.llm.records import Message, Prompt

    messages = (Message(role="system", content="You answer in JSON."), Message(role="user", content=text))
    return Prompt(messages=messages, **changes)


def test_the_reply_is_json_of_the_schema_and_the_tokens_are_the_engines(llm) -> None:
    async def run() -> None:
        prompts = [ask(f"What is fever, case {n}?", json_schema=SCHEMA, max_tokens=200, seed=n) for n in range(4)]
        for prompt, reply in zip(prompts, await asyncio.gather(*map(llm.complete, prompts)), strict=True):
            # Not strict: where a string has a maxLength, xgrammar lets raw control characters through.
            found = json.loads(reply.text, strict=False)
            assert reply.finish == "stop"
            assert sorted(found) == ["answer", "citations", "enough"]
            assert isinstance(found["enough"], bool)
            assert all(1 <= n <= 9 for n in found["citations"])
            assert reply.usage.prompt == await llm.count(prompt.messages)
        assert await llm.window() == 2048

    asyncio.run(run())


def test_a_stream_is_the_same_reply_in_pieces(llm) -> None:
    async def run() -> None:
        prompt = ask("What is fever?", json_schema=SCHEMA, max_tokens=200, seed=1)
        async with aclosing(llm.stream(prompt)) as stream:
            *pieces, last = [piece async for piece in stream]
        whole = await llm.complete(prompt)
        assert "".join(pieces) == last.text == whole.text
        assert (last.finish, last.usage) == (whole.finish, whole.usage)

    asyncio.run(run())


def test_a_prompt_over_the_window_is_refused_in_a_sentence(llm) -> None:
    from hybrid_ir.errors import BadInput

    with pytest.raises(BadInput, match="2048"):
        asyncio.run(llm.complete(ask("fever " * 3000)))


@pytest.mark.parametrize("streamed", [False, True])
def test_a_cancelled_call_leaves_the_engine(llm, streamed: bool) -> None:
    """The engine takes two at a time: where two long ones still ran, a short one would wait for them."""
    long = ask(
        "Write without end.",
        max_tokens=1900,
        json_schema={"type": "array", "minItems": 900, "items": {"type": "integer", "minimum": 0, "maximum": 9}},
    )

    async def consume() -> None:
        async for _ in llm.stream(long):
            pass

    async def seconds(work) -> float:
        start = time.monotonic()
        await work
        return time.monotonic() - start

    async def run() -> None:
        short = ask("Say a word.", max_tokens=2)
        await llm.complete(short)
        whole = await seconds(llm.complete(long))
        tasks = [asyncio.ensure_future(consume() if streamed else llm.complete(long)) for _ in range(2)]
        await asyncio.sleep(whole / 10)
        for task in tasks:
            task.cancel()
        await asyncio.wait(tasks)
        assert all(task.cancelled() for task in tasks)
        assert await seconds(llm.complete(short)) < whole / 3

    asyncio.run(run())
