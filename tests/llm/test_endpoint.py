"""The client of OpenAI's chat completions against a real HTTP server that does what servers do to clients."""

import asyncio
import itertools
import logging
import time
from contextlib import aclosing

import pytest
from fake_llm import Fault, count_words
from fake_server import FakeServer

from hybrid_ir.errors import BadInput, HybridIRError, Unavailable
from hybrid_ir.llm import retry
from hybrid_ir.llm.endpoint import EndpointLLM
from hybrid_ir.llm.load import load
from hybrid_ir.llm.records import Message, Prompt, Reply
from hybrid_ir.settings import EndpointSettings, VLLMSettings

ASK = Prompt(messages=(Message(role="system", content="be brief"), Message(role="user", content="what is it β")))
SCHEMA = {"type": "object", "properties": {"answer": {"type": "string"}}, "required": ["answer"]}
SECRET = "sk-0123456789-of-nobody"  # noqa: S105


@pytest.fixture(autouse=True)
def short_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(retry, "FIRST_WAIT_S", 0.02)


def client(server: FakeServer, **settings) -> EndpointLLM:
    return EndpointLLM(EndpointSettings(model="fake", base_url=server.url, **settings), server.url)


async def whole(llm: EndpointLLM, prompt: Prompt = ASK) -> tuple[list[str], Reply]:
    async with aclosing(llm.stream(prompt)) as stream:
        got = [piece async for piece in stream]
    return got[:-1], got[-1]


async def take(llm: EndpointLLM, into: list[str | Reply]) -> None:
    async for piece in llm.stream(ASK):
        into.append(piece)


def test_a_reply_whole_and_streamed() -> None:
    async def run() -> None:
        with FakeServer("one two three") as server:
            llm = client(server)
            reply = await llm.complete(ASK)
            assert (reply.text, reply.finish, reply.tries) == ("one two three", "stop", 1)
            assert (reply.usage.prompt, reply.usage.completion) == (count_words(ASK.messages), 3)
            pieces, last = await whole(llm)
            assert pieces == ["one ", "two ", "three"]
            assert (last.text, last.finish, last.usage) == (reply.text, reply.finish, reply.usage)
            cut = await llm.complete(ASK.model_copy(update={"max_tokens": 2}))
            assert (cut.text, cut.finish) == ("one two ", "length")
            await llm.close()

    asyncio.run(run())


@pytest.mark.parametrize("streamed", [False, True])
@pytest.mark.parametrize(
    "fault", [Fault("status", status=s) for s in (429, 500, 502, 503, 529)] + [Fault("garbage"), Fault("cut", text="")]
)
def test_what_may_go_better_is_tried_again_later_each_time(fault: Fault, streamed: bool) -> None:
    if streamed and fault.kind != "status":
        return  # garbage is an empty stream, which the next test has

    async def run() -> None:
        with FakeServer([fault, fault, fault, "well"]) as server:
            llm = client(server)
            reply = (await whole(llm))[1] if streamed else await llm.complete(ASK)
        assert (reply.text, reply.tries) == ("well", 4)
        starts = [call.start for call in server.log]
        for number, (earlier, later) in enumerate(itertools.pairwise(starts)):
            assert later - earlier >= 0.75 * 0.02 * 2**number

    asyncio.run(run())


def test_waits_grow_are_jittered_and_bounded() -> None:
    for _ in range(50):
        waits = [retry.wait_s(number) for number in range(1, 6)]
        assert waits == sorted(waits)
    assert len({retry.wait_s(3) for _ in range(20)}) > 10
    assert retry.wait_s(100) <= 1.25 * retry.LONGEST_WAIT_S


@pytest.mark.parametrize("status", [400, 401, 403, 404, 408, 413, 422])
def test_another_4xx_is_not_tried_again_and_says_what_to_do(status: int) -> None:
    async def run() -> None:
        with FakeServer([Fault("status", status=status, message="no such thing"), "never asked for"]) as server:
            with pytest.raises(BadInput, match=server.url):
                await client(server).complete(ASK)
            assert len(server.log) == 1

    asyncio.run(run())


def test_retry_after_is_honoured_and_an_hour_of_it_is_an_answer() -> None:
    async def run() -> None:
        with FakeServer([Fault("status", status=429, retry_after="1"), "well"]) as server:
            await client(server).complete(ASK)
            assert server.log[1].start - server.log[0].start >= 1.0
        hour = Fault("status", status=429, retry_after="3600")
        with FakeServer([hour, "well"]) as server, pytest.raises(Unavailable, match=r"429.*1 try"):
            await client(server).complete(ASK)

    asyncio.run(run())
    assert retry.retry_after_s("Wed, 21 Oct 2015 07:28:00 GMT") == 0.0
    assert retry.retry_after_s("soon") is None


def test_after_all_tries_the_error_names_the_url_the_reason_and_the_tries() -> None:
    async def run() -> None:
        with FakeServer(lambda prompt: Fault("status", status=503, message="loading model")) as server:
            with pytest.raises(Unavailable, match=rf"{server.url}.*503: loading model.*3 tries") as caught:
                await client(server, retries=2).complete(ASK)
            assert "base_url" in str(caught.value)
            assert len(server.log) == 3
        with pytest.raises(Unavailable, match=r"cannot be reached"):  # the server is gone
            await client(server, retries=1).complete(ASK)

    asyncio.run(run())


def test_a_server_that_hangs_is_left_and_asked_again() -> None:
    async def run() -> None:
        with FakeServer([Fault("hang"), "well", Fault("hang")]) as server:
            llm = client(server, timeout_s=0.3, retries=1)
            assert (await llm.complete(ASK)).tries == 2
            with pytest.raises(Unavailable, match=r"no answer within 0\.3 s"):
                await client(server, timeout_s=0.3, retries=0).complete(ASK)
            await server.settle()
            assert server.log.outcomes() == ["cancelled", "answered", "cancelled"]

    asyncio.run(run())


def test_no_more_calls_at_once_than_the_settings_say() -> None:
    async def run() -> None:
        with FakeServer("well", seconds=0.1) as server:
            llm = client(server, concurrency=3)
            await asyncio.gather(*(llm.complete(ASK) for _ in range(5)), *(whole(llm) for _ in range(5)))
        assert len(server.log) == 10
        assert server.log.at_once() == 3

    asyncio.run(run())


@pytest.mark.parametrize("streamed", [False, True])
def test_a_cancelled_call_ends_in_the_engine_and_frees_its_place(streamed: bool) -> None:
    async def run() -> None:
        with FakeServer("one two three four five six", seconds=30.0 if not streamed else 1.2) as server:
            llm = client(server, concurrency=1)
            if streamed:
                async with aclosing(llm.stream(ASK)) as stream:
                    assert await anext(stream) == "one "
            else:
                task = asyncio.ensure_future(llm.complete(ASK))
                while not server.log:
                    await asyncio.sleep(0.01)
                task.cancel()
                with pytest.raises(asyncio.CancelledError):
                    await task
            await server.settle()
            (call,) = server.log
            assert call.cancelled
            assert call.written < 6
            server.seconds = 0.0
            assert (await llm.complete(ASK)).tries == 1

    asyncio.run(run())


def test_a_stream_that_breaks_half_way_is_an_error_after_its_pieces() -> None:
    async def run() -> None:
        with FakeServer([Fault("cut", text="a b c d"), "not asked"]) as server:
            got: list[str | Reply] = []
            with pytest.raises(Unavailable, match="half-way"):
                await take(client(server), got)
            assert got == ["a ", "b "]
            assert len(server.log) == 1
        with FakeServer([Fault("garbage"), Fault("cut", text="a"), "well"]) as server:  # nothing came yet: tried again
            assert (await whole(client(server)))[1].tries == 3
        with FakeServer("one two three four", seconds=1.2) as server:
            with pytest.raises(Unavailable, match="did not end"):
                await whole(client(server, timeout_s=1.0))
            await server.settle()
            assert server.log[0].cancelled

    asyncio.run(run())


def test_schema_seed_stop_and_further_fields_reach_the_endpoint() -> None:
    async def run() -> None:
        prompt = ASK.model_copy(update={"json_schema": SCHEMA, "stop": ("END",), "seed": 7, "max_tokens": 9})
        with FakeServer("{}") as server:
            await client(server, temperature=0.5).complete(prompt)
            await client(server, structured="json_object").complete(prompt)
            await client(server, structured="none", seed=None).complete(ASK.model_copy(update={"json_schema": SCHEMA}))
            await client(server, extra_body={"max_tokens": None, "max_completion_tokens": 5, "top_k": 1}).complete(ASK)
        full, loose, bare, own = (call.body for call in server.log)
        assert full["response_format"]["json_schema"]["schema"] == SCHEMA
        assert server.log[0].prompt == prompt
        assert (full["seed"], full["stop"], full["max_tokens"], full["temperature"]) == (7, ["END"], 9, 0.5)
        assert loose["response_format"] == {"type": "json_object"}
        assert not {"response_format", "seed", "stop"} & bare.keys()
        assert (own["max_completion_tokens"], own["top_k"], "max_tokens" in own) == (5, 1, False)

    asyncio.run(run())


def test_tokens_are_counted_by_the_endpoints_own_tokenizer() -> None:
    async def run() -> None:
        for flavour in ("vllm", "llama.cpp"):
            with FakeServer("well", flavour=flavour) as server:
                llm = client(server)
                assert (
                    await llm.count(ASK.messages) == count_words(ASK.messages) == (await llm.complete(ASK)).usage.prompt
                )
                assert llm.counts_by == flavour

    asyncio.run(run())


def test_without_one_the_settings_tokenizer_counts(tmp_path) -> None:
    from tokenizers import Tokenizer, models, pre_tokenizers
    from transformers import PreTrainedTokenizerFast

    words = Tokenizer(models.WordLevel({"[UNK]": 0}, unk_token="[UNK]"))  # noqa: S106
    words.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    fast = PreTrainedTokenizerFast(tokenizer_object=words)
    fast.chat_template = "{% for m in messages %}<| {{ m.role }} |> {{ m.content }}{% endfor %}"
    fast.save_pretrained(tmp_path)

    async def run() -> None:
        with FakeServer("well", flavour="openai") as server:
            llm = client(server, tokenizer=str(tmp_path))
            assert await llm.count((Message(role="user", content="three short words"),)) == 6
            assert llm.counts_by == "tokenizer"

    asyncio.run(run())


def test_without_one_tokens_are_estimated_from_above_and_that_is_said(caplog) -> None:
    async def run() -> None:
        with FakeServer("well", flavour="openai") as server, caplog.at_level(logging.WARNING):
            llm = client(server)
            assert await llm.count(ASK.messages) > count_words(ASK.messages)
            await llm.count(ASK.messages)
            assert llm.counts_by == "estimate"
            assert sum("estimated from above" in record.message for record in caplog.records) == 1

    asyncio.run(run())


def test_the_window_is_the_settings_or_the_endpoints_or_asked_for() -> None:
    async def run() -> None:
        for flavour in ("vllm", "llama.cpp"):
            with FakeServer("well", window=777, flavour=flavour) as server:
                assert await client(server).window() == 777
                assert await client(server, window=100).window() == 100
        with FakeServer("well", flavour="openai") as server, pytest.raises(BadInput, match="set window"):
            await client(server).window()
        long = Prompt(messages=(Message(role="user", content="w " * 50),))
        with FakeServer("well", window=20) as server, pytest.raises(BadInput, match="context length is 20"):
            await client(server).complete(long)

    asyncio.run(run())


def test_the_key_comes_from_its_variable_and_stands_in_no_error_and_no_log(monkeypatch, caplog) -> None:
    caplog.set_level(logging.DEBUG)
    monkeypatch.setenv("FAKE_KEY", SECRET)
    said: list[str] = []

    async def run() -> None:
        leaky = f"key {SECRET} is no good"
        faults = [Fault("status", status=s, message=leaky) for s in (400, 401, 404, 422, 500)]
        with FakeServer(["well", *faults], key=SECRET) as server:
            llm = client(server, api_key_env="FAKE_KEY", retries=0)
            assert (await llm.complete(ASK)).text == "well"
            for _ in faults:
                with pytest.raises(HybridIRError) as caught:
                    await llm.complete(ASK)
                said.append(str(caught.value))
            with pytest.raises(BadInput, match="a call without a key"):
                await client(server).complete(ASK)
            monkeypatch.setenv("FAKE_KEY", "sk-wrong")
            with pytest.raises(BadInput, match="the key in FAKE_KEY"):
                await client(server, api_key_env="FAKE_KEY").complete(ASK)
            with pytest.raises(BadInput, match="refuses the key in FAKE_KEY"):
                await client(server, api_key_env="FAKE_KEY").window()  # which is asked for before any call
            assert all(call.headers["authorization"] == f"Bearer {SECRET}" for call in server.log)
            assert "sk-" not in repr(llm) + str(vars(llm)["_settings"])

    asyncio.run(run())
    assert len(said) == 5
    assert not any("sk-" in text for text in [*said, caplog.text])
    monkeypatch.delenv("FAKE_KEY")
    with pytest.raises(BadInput, match="FAKE_KEY is not set"):
        load(EndpointSettings(model="m", base_url="http://h/v1", api_key_env="FAKE_KEY"))


@pytest.mark.parametrize("url", ["", "localhost:8000/v1", "ftp://h/v1", "http://user:pw@h/v1", "http://h/v1?key=pw"])
def test_a_url_that_is_none_or_holds_a_password_is_refused(url: str) -> None:
    with pytest.raises(BadInput, match="base_url") as caught:
        load(EndpointSettings(model="m", base_url=url))
    assert "pw" not in str(caught.value)


def test_one_client_serves_one_event_loop_after_the_other() -> None:
    with FakeServer("well") as server:
        llm = client(server)
        for _ in range(3):
            assert asyncio.run(llm.complete(ASK)).tries == 1
        assert len(llm._transport._clients._held) == 1


def test_half_a_surrogate_pair_is_no_end_of_a_call() -> None:
    async def run() -> None:
        with FakeServer("well") as server:
            reply = await client(server).complete(Prompt(messages=(Message(role="user", content="a \ud800 b"),)))
            assert reply.text == "well"
            assert server.log[0].prompt.messages[0].content == "a ? b"

    asyncio.run(run())


def test_vllm_outside_the_service_says_where_it_runs() -> None:
    with pytest.raises(BadInput, match="hybrid-ir serve"):
        load(VLLMSettings(backend="vllm", model="m"))


def test_calls_cost_little_beside_the_model() -> None:
    async def run() -> float:
        with FakeServer("well") as server:
            llm = client(server)
            await llm.complete(ASK)
            start = time.perf_counter()
            for _ in range(20):
                await llm.complete(ASK)
            return (time.perf_counter() - start) / 20

    assert asyncio.run(run()) < 0.25  # some milliseconds on a machine that is not busy
