"""The fake behaves as it says: what other tests prove by it stands on this."""

import asyncio
import time

import httpx
import pytest
from fake_llm import Fault, ScriptedLLM
from fake_server import FakeServer

from hybrid_ir.errors import BadInput, Unavailable
from hybrid_ir.llm.records import Message, Prompt

ASK = Prompt(messages=(Message(role="user", content="what is it"),))
BODY = {"model": "fake", "messages": [{"role": "user", "content": "what is it"}]}


def test_canned_replies_come_in_order_and_rules_see_the_prompt() -> None:
    async def run() -> None:
        llm = ScriptedLLM(["one", RuntimeError("own"), Fault("status"), "four"])
        assert (await llm.complete(ASK)).text == "one"
        with pytest.raises(RuntimeError, match="own"):
            await llm.complete(ASK)
        with pytest.raises(Unavailable):
            await llm.complete(ASK)
        assert (await llm.complete(ASK)).text == "four"
        with pytest.raises(BadInput, match="no more"):
            await llm.complete(ASK)
        assert llm.log.outcomes() == ["answered", "failed", "failed", "answered", "failed"]
        ruled = ScriptedLLM(lambda prompt: prompt.messages[-1].content.upper())
        assert (await ruled.complete(ASK)).text == "WHAT IS IT"

    asyncio.run(run())


def test_limits_are_kept_as_a_backend_keeps_them() -> None:
    async def run() -> None:
        llm = ScriptedLLM("one two three END four", window=12)
        cut = await llm.complete(ASK.model_copy(update={"max_tokens": 2}))
        assert (cut.text, cut.finish, cut.usage.completion) == ("one two ", "length", 2)
        stopped = await llm.complete(ASK.model_copy(update={"stop": (" END",)}))
        assert (stopped.text, stopped.finish) == ("one two three", "stop")
        with pytest.raises(BadInput, match="maximum context"):
            await llm.complete(Prompt(messages=(Message(role="user", content="w " * 20),)))

    asyncio.run(run())


def test_a_call_takes_its_time_and_a_cancelled_one_is_in_the_log() -> None:
    async def run() -> None:
        llm = ScriptedLLM("a b c d", seconds=0.5)
        start = time.perf_counter()
        await asyncio.gather(*(llm.complete(ASK) for _ in range(5)))
        assert 0.5 <= time.perf_counter() - start < 2.5  # one after the other
        assert llm.log.at_once() == 5
        task = asyncio.ensure_future(llm.complete(ASK))
        await asyncio.sleep(0.02)
        assert llm.log.running() == 1
        task.cancel()
        await asyncio.wait({task})
        assert llm.log[-1].cancelled
        stream = llm.stream(ASK)
        assert await anext(stream) == "a "
        await stream.aclose()
        assert (llm.log[-1].cancelled, llm.log[-1].written) == (True, 1)
        got = [piece async for piece in llm.stream(ASK)]
        assert got[:-1] == ["a ", "b ", "c ", "d"]
        assert got[-1].text == "a b c d"

    asyncio.run(run())


def test_the_server_speaks_http_and_sees_a_client_leave() -> None:
    async def run() -> None:
        script = ["hello there", Fault("status", status=429, retry_after="3"), Fault("hang"), Fault("cut"), "a b"]
        with FakeServer(script) as server:
            async with httpx.AsyncClient(base_url=server.url) as client:
                first = await client.post("/chat/completions", json=BODY)
                assert first.json()["choices"][0]["message"]["content"] == "hello there"
                second = await client.post("/chat/completions", json=BODY)
                assert (second.status_code, second.headers["retry-after"]) == (429, "3")
                with pytest.raises(httpx.ReadTimeout):
                    await client.post("/chat/completions", json=BODY, timeout=0.1)
                await server.settle()
                with pytest.raises(httpx.RemoteProtocolError):
                    await client.post("/chat/completions", json=BODY | {"stream": True})
                last = await client.post("/chat/completions", json=BODY | {"stream": True})
                assert last.text.endswith("data: [DONE]\n\n")
                models = (await client.get("/models")).json()
                assert models["data"][0]["max_model_len"] == 8192
        assert server.log.outcomes() == ["answered", "failed", "cancelled", "failed", "answered"]

    asyncio.run(run())
