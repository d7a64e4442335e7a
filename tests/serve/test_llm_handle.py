"""The language model behind a handle, with a deployment that answers in vLLM's place; vLLM itself: tests/vllm."""

from __future__ import annotations

import asyncio
import importlib.util
from contextlib import aclosing

import pytest
from ray import serve
from ray.exceptions import ActorDiedError

from hybrid_ir import models
from hybrid_ir.errors import BadInput, Conflict, Unavailable
from hybrid_ir.llm import retry
from hybrid_ir.llm.records import Message, Prompt, Reply
from hybrid_ir.llm.vllm import model_folder
from hybrid_ir.settings import VLLMSettings
from serve import llm as serve_llm
from serve.llm import HandleLLM, deployment

ASK = Prompt(messages=(Message(role="user", content="what is it"),), json_schema={"type": "object"}, max_tokens=9)


def chunk(text: str, reason: str | None = None) -> dict:
    return {"choices": [{"index": 0, "delta": {"content": text}, "finish_reason": reason}]}


class Engine:
    """Says "one two", after the errors it was given, one a call."""

    def __init__(self, errors: list[Exception]) -> None:
        self.errors, self.bodies, self.running, self.cancelled = errors, [], 0, 0

    async def _begin(self, body: dict) -> None:
        self.bodies.append(body)
        if self.errors:
            raise self.errors.pop(0)
        if body["messages"][0]["content"] == "wait":
            self.running += 1
            try:
                await asyncio.sleep(60)
            except asyncio.CancelledError:
                self.cancelled += 1
                raise
            finally:
                self.running -= 1

    async def ask(self, body: dict) -> dict:
        await self._begin(body)
        message = {"role": "assistant", "content": "one two"}
        usage = {"prompt_tokens": 3, "completion_tokens": 2}
        return {"choices": [{"index": 0, "message": message, "finish_reason": "stop"}], "usage": usage}

    async def stream(self, body: dict):
        yield [chunk("one"), chunk(" ")]
        await self._begin(body)
        yield [chunk("two", None if body.get("stop") else "stop")]
        yield [{"choices": [], "usage": {"prompt_tokens": 3, "completion_tokens": 2}}]

    async def count(self, messages: list[dict]) -> tuple[int, int]:
        return sum(len(message["content"].split()) for message in messages), 777

    async def state(self) -> tuple[int, int, list[dict]]:
        return self.running, self.cancelled, self.bodies


@pytest.fixture
def engine(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(retry, "FIRST_WAIT_S", 0.01)

    def started(errors: list[Exception] | None = None, **settings):
        handle = serve.run(serve.deployment(Engine).bind(errors or []), _local_testing_mode=True)
        return handle, HandleLLM(handle, VLLMSettings(backend="vllm", model="m", **settings))

    return started


async def whole(llm: HandleLLM, prompt: Prompt = ASK) -> list[str | Reply]:
    async with aclosing(llm.stream(prompt)) as stream:
        return [piece async for piece in stream]


def test_whole_streamed_counted(engine) -> None:
    handle, llm = engine(seed=5)

    async def run() -> None:
        reply = await llm.complete(ASK)
        assert (reply.text, reply.finish, reply.usage.completion, reply.tries) == ("one two", "stop", 2, 1)
        *pieces, last = await whole(llm)
        assert (pieces, last.text, last.usage) == (["one", " ", "two"], reply.text, reply.usage)
        assert (await llm.count(ASK.messages), await llm.window(), llm.name) == (3, 777, "m")
        _, _, (first, second) = await handle.state.remote()
        assert first["response_format"]["json_schema"]["schema"] == ASK.json_schema
        assert (first["seed"], first["max_tokens"], second["stream"]) == (5, 9, True)

    asyncio.run(run())


def test_a_replica_that_dies_is_asked_again_and_a_refusal_is_not(engine) -> None:
    async def run() -> None:
        _, llm = engine([ActorDiedError(), ActorDiedError()])  # the handle itself tries twice
        assert (await llm.complete(ASK)).tries == 2
        _, llm = engine([ActorDiedError() for _ in range(6)], retries=2)
        with pytest.raises(Unavailable, match=r"m does not answer: .*3 tries.*serve status"):
            await llm.complete(ASK)
        handle, llm = engine([BadInput("vLLM refuses the call: too long")])
        with pytest.raises(BadInput, match="too long"):
            await llm.complete(ASK)
        assert len((await handle.state.remote())[2]) == 1

    asyncio.run(run())


def test_a_stream_that_breaks_off_is_an_error_after_its_pieces(engine) -> None:
    async def run() -> None:
        _, llm = engine([ActorDiedError()])
        with pytest.raises(Unavailable, match="broke off"):
            await whole(llm)
        _, llm = engine()
        with pytest.raises(Unavailable, match="half-way"):
            await whole(llm, ASK.model_copy(update={"stop": ("x",)}))  # no reason why it ended

    asyncio.run(run())


@pytest.mark.parametrize("streamed", [False, True])
def test_a_call_that_is_cancelled_or_late_ends_on_the_replica_and_frees_its_place(engine, streamed: bool) -> None:
    wait = Prompt(messages=(Message(role="user", content="wait"),))

    async def run() -> None:
        handle, llm = engine(concurrency=1, timeout_s=1.0, retries=0)

        async def ended(count: int) -> None:
            for _ in range(200):
                running, cancelled, _ = await handle.state.remote()
                if (running, cancelled) == (0, count):
                    return
                await asyncio.sleep(0.02)
            raise AssertionError((running, cancelled))

        task = asyncio.ensure_future(whole(llm, wait) if streamed else llm.complete(wait))
        await asyncio.sleep(0.3)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        if not streamed:  # local mode does not hand a stream's cancelling on; a real Serve does: tests/vllm
            await ended(1)
        with pytest.raises(Unavailable, match=r"within 1 s"):
            await (whole(llm, wait) if streamed else llm.complete(wait))
        assert (await llm.complete(ASK)).text == "one two"

    asyncio.run(run())


def test_a_model_that_is_not_here_and_one_at_another_revision(tmp_path, monkeypatch) -> None:
    monkeypatch.setenv("HYBRID_IR_MODELS", str(tmp_path))
    settings = VLLMSettings(backend="vllm", model="meta/llama", revision="v2")
    with pytest.raises(BadInput, match=r"models fetch --config FILE` on every node"):
        deployment(settings, {})
    (tmp_path / "meta/llama").mkdir(parents=True)
    record = models.FetchedModel(name="meta/llama", commit="c" * 40, files={"a.safetensors": "0"}, revision="v1")
    (tmp_path / "meta/llama" / models.RECORD).write_text(record.model_dump_json())
    with pytest.raises(Conflict, match="the settings want v2"):
        deployment(settings, {})
    assert model_folder(settings.model_copy(update={"revision": "v1"})) == tmp_path / "meta/llama"


@pytest.mark.skipif(
    getattr(importlib.util.find_spec("vllm"), "origin", None) is not None, reason="vLLM is installed here"
)
def test_without_vllm_its_package_is_named(tmp_path) -> None:
    with pytest.raises(BadInput, match=r"hybrid-ir\[vllm\]"):
        deployment(VLLMSettings(backend="vllm", model=str(tmp_path)), {})


def test_replicas_follow_the_settings() -> None:
    fixed = VLLMSettings(backend="vllm", model="m", min_replicas=2, max_replicas=2)
    assert serve_llm._scale(fixed) == {"num_replicas": 2}
    scaled = serve_llm._scale(fixed.model_copy(update={"max_replicas": 4}))["autoscaling_config"]
    assert (scaled["min_replicas"], scaled["max_replicas"]) == (2, 4)
    assert scaled["downscale_delay_s"] > scaled["look_back_period_s"]
    with pytest.raises(BadInput, match="below min_replicas"):
        serve_llm._scale(fixed.model_copy(update={"max_replicas": 1}))
