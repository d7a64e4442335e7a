"""A fake language model behind real HTTP, for tests and benchmarks alone: what a client must survive, by a script.

with FakeServer(["hello", Fault("status", status=429)]) as server:  # server.url, server.log
    ...
"""

from __future__ import annotations

import asyncio
import json
import socket
import threading
import time
from typing import Any, Literal

import uvicorn
from fake_llm import KEPT_OPEN_S, NAME, Actor, Call, Fault, Script, count_words, pieces

from hybrid_ir.llm.records import Message, Prompt, Usage


class FakeServer(Actor):
    """``/v1/chat/completions``, ``/v1/models`` and ``/tokenize`` over real HTTP on loopback, in a thread.

    ``flavour`` is whose ``/tokenize`` and ``/v1/models`` it has: vLLM's, llama.cpp's, or none (a plain OpenAI
    endpoint, which tells neither).  ``log`` holds every chat call, a client that left included; ``asked`` the path
    of every request.  With ``key`` a request without it is refused with 401.
    """

    def __init__(
        self,
        script: Script,
        seconds: float = 0.0,
        window: int = 8192,
        flavour: Literal["vllm", "llama.cpp", "openai"] = "vllm",
        key: str | None = None,
    ) -> None:
        super().__init__(script, seconds, window)
        self.flavour, self.key = flavour, key
        self.asked: list[str] = []
        self._socket = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self._socket.getsockname()[1]}/v1"
        settings = uvicorn.Config(self._app, log_level="critical", lifespan="off", access_log=False, interface="asgi3")
        settings.timeout_graceful_shutdown = 1
        self._server = uvicorn.Server(settings)
        self._thread = threading.Thread(target=self._server.run, args=([self._socket],), daemon=True)

    def __enter__(self) -> FakeServer:
        self._thread.start()
        while not self._server.started:
            time.sleep(0.005)
        return self

    def __exit__(self, *error: object) -> None:
        self._server.should_exit = True
        self._thread.join(10)
        self._socket.close()

    async def settle(self, seconds: float = 5.0) -> None:
        """Until no call runs here: a client's leaving is seen a moment after it left."""
        end = time.monotonic() + seconds
        while self.log.running() and time.monotonic() < end:
            await asyncio.sleep(0.005)

    async def _app(self, scope: dict[str, Any], receive: Any, send: Any) -> None:
        if scope["type"] != "http":
            return
        path = scope["path"]
        self.asked.append(path)
        body = b""
        while True:
            message = await receive()
            body += message.get("body", b"")
            if not message.get("more_body"):
                break
        headers = {name.decode(): value.decode() for name, value in scope["headers"]}
        if self.key is not None and headers.get("authorization") != f"Bearer {self.key}":
            said = headers.get("authorization", "nothing")
            await _send(send, 401, _error(f"Incorrect API key provided: {said}"))  # as OpenAI's own echoes a part
        elif path == "/v1/models":
            await _send(send, 200, {"object": "list", "data": [self._about()]})
        elif path == "/tokenize" and self.flavour != "openai":
            await _send(send, *self._tokens(json.loads(body)))
        elif path == "/apply-template" and self.flavour == "llama.cpp":
            messages = json.loads(body)["messages"]
            await _send(send, 200, {"prompt": " ".join("<|t|> <|r|> <|n|> <|e|> " + m["content"] for m in messages)})
        elif path == "/v1/chat/completions":
            await self._chat(json.loads(body), headers, receive, send)
        else:
            await _send(send, 404, _error(f"there is no {path}"))

    def _about(self) -> dict[str, Any]:
        about: dict[str, Any] = {"id": NAME, "object": "model"}
        if self.flavour == "vllm":
            about["max_model_len"] = self.window_tokens
        if self.flavour == "llama.cpp":
            about["meta"] = {"n_ctx": self.window_tokens, "n_ctx_train": self.window_tokens * 2}
        return about

    def _tokens(self, asked: dict[str, Any]) -> tuple[int, dict[str, Any]]:
        """vLLM counts messages; llama.cpp only a text, which its ``/apply-template`` makes of messages."""
        if self.flavour == "vllm":
            if "messages" in asked:
                count = count_words([Message.model_validate(message) for message in asked["messages"]])
            else:
                count = len(asked["prompt"].split())
            return 200, {"count": count, "max_model_len": self.window_tokens, "tokens": list(range(count))}
        if "content" not in asked:
            return 200, {"tokens": []}
        return 200, {"tokens": list(range(len(asked["content"].split())))}

    async def _chat(self, body: dict[str, Any], headers: dict[str, str], receive: Any, send: Any) -> None:
        prompt = _prompt(body)
        call = Call(prompt, time.perf_counter(), bool(body.get("stream")), headers=headers, body=body)
        self.log.append(call)
        left = asyncio.ensure_future(receive())  # the body is read: what comes now is the client's leaving
        work = asyncio.ensure_future(self._respond(call, send))
        try:
            await asyncio.wait({left, work}, return_when=asyncio.FIRST_COMPLETED)
            if not work.done():
                work.cancel()
                call.over("cancelled")
                return
            work.result()  # a cut stream's exception closes the connection
        finally:
            left.cancel()
            if call.outcome == "running":
                call.over("failed")

    async def _respond(self, call: Call, send: Any) -> None:
        prompt, streamed = call.prompt, call.streamed
        if refusal := self.refusal(prompt):
            await _send(send, 400, _error(refusal))
            return
        said = self.say(prompt)
        kind = said.kind if isinstance(said, Fault) else ""
        await asyncio.sleep(KEPT_OPEN_S if kind == "hang" else self.seconds / 2 if streamed else self.seconds)
        if isinstance(said, Exception) and not isinstance(said, Fault):
            said, kind = Fault("status", status=500, message=str(said)), "status"
        if isinstance(said, Fault) and kind == "status":
            extra = {"retry-after": said.retry_after} if said.retry_after is not None else {}
            await _send(send, said.status, _error(said.message), extra)
            return
        if kind == "garbage":
            await _send(send, 200, "<html>this is no completion</html>")
            return
        text, finish, usage = self.reply(said.text if isinstance(said, Fault) else str(said), prompt)
        if streamed:
            await self._send_stream(call, send, text, finish, usage, cut=kind == "cut")
        elif kind == "cut":
            await _send(send, 200, json.dumps(_completion(text, finish, usage))[:40], {"content-length": "4000"})
            raise ConnectionError("cut by the script")
        else:
            await _send(send, 200, _completion(text, finish, usage))
        call.over("answered")

    async def _send_stream(self, call: Call, send: Any, text: str, finish: str, usage: Usage, cut: bool) -> None:
        words = pieces(text)
        await send({"type": "http.response.start", "status": 200, "headers": [(b"content-type", b"text/event-stream")]})

        async def event(data: str) -> None:
            await send({"type": "http.response.body", "body": f"data: {data}\n\n".encode(), "more_body": True})

        def delta(content: str | None, reason: str | None = None) -> str:
            choice = {"index": 0, "delta": {"content": content} if content else {}, "finish_reason": reason}
            return json.dumps(_chunk([choice]))

        for position, word in enumerate(words):
            if cut and position >= len(words) // 2:
                raise ConnectionError("cut by the script")
            await asyncio.sleep(self.seconds / 2 / len(words))
            await event(delta(word))
            call.written += 1
        await event(delta(None, finish))
        if call.body.get("stream_options", {}).get("include_usage"):
            await event(json.dumps(_chunk([]) | {"usage": _usage(usage)}))
        await event("[DONE]")
        await send({"type": "http.response.body", "body": b""})


def _prompt(body: dict[str, Any]) -> Prompt:
    form = body.get("response_format") or {}
    stop = body.get("stop") or ()
    return Prompt(
        messages=tuple(Message.model_validate(message) for message in body["messages"]),
        json_schema=form.get("json_schema", {}).get("schema"),
        max_tokens=body.get("max_tokens") or body.get("max_completion_tokens"),
        stop=(stop,) if isinstance(stop, str) else tuple(stop),
        seed=body.get("seed"),
    )


def _completion(text: str, finish: str, usage: Usage) -> dict[str, Any]:
    choice = {"index": 0, "message": {"role": "assistant", "content": text}, "finish_reason": finish}
    return _chunk([choice], "chat.completion") | {"usage": _usage(usage)}


def _chunk(choices: list[Any], kind: str = "chat.completion.chunk") -> dict[str, Any]:
    return {"id": "fake-1", "object": kind, "created": 0, "model": NAME, "choices": choices}


def _usage(usage: Usage) -> dict[str, int]:
    total = usage.prompt + usage.completion
    return {"prompt_tokens": usage.prompt, "completion_tokens": usage.completion, "total_tokens": total}


def _error(message: str) -> dict[str, Any]:
    return {"error": {"message": message, "type": "fake", "code": None}}


async def _send(send: Any, status: int, body: Any, extra: dict[str, str] | None = None) -> None:
    data = body.encode() if isinstance(body, str) else json.dumps(body).encode()
    headers = {"content-type": "application/json", "content-length": str(len(data))} | (extra or {})
    raw = [(name.encode(), value.encode()) for name, value in headers.items()]
    await send({"type": "http.response.start", "status": status, "headers": raw})
    await send({"type": "http.response.body", "body": data, "more_body": int(headers["content-length"]) > len(data)})
