"""HTTP to a language model's endpoint: one try of one request, and what its failure means."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator
from typing import Any
from urllib.parse import urlsplit

import httpx

from hybrid_ir.errors import BadInput
from hybrid_ir.llm.per_loop import PerLoop
from hybrid_ir.llm.retry import Failure, retry_after_s

CONNECT_TIMEOUT_S = 10.0
KEEP_ALIVE_S = 3.0
"""Shorter than the five seconds after which uvicorn, and so vLLM, closes an idle connection."""
QUOTED_CHARS = 300
LOOPBACK = ("localhost", "127.0.0.1", "::1")


class Transport:
    """Requests to one endpoint.  A cancelled request closes its connection, so that the engine behind it stops.

    It is used from any event loop: each has connections of its own, since none can be used in another.
    """

    def __init__(self, base_url: str, key: str | None = None, key_name: str | None = None) -> None:
        """``key_name`` is the variable that the key came from: only it stands in errors.

        Raises BadInput where the URL is none, or carries a password.
        """
        parts = urlsplit(base_url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise BadInput(f"base_url is {base_url!r}: write a URL such as http://127.0.0.1:8000/v1.")
        if parts.username or parts.password or parts.query:
            raise BadInput(
                f"The base_url of {parts.hostname} carries a user, a password or a query: "
                "put the key into an environment variable and name that in api_key_env."
            )
        self.url = base_url.rstrip("/")
        self.root = self.url.removesuffix("/v1")
        self._key, self._key_name = key, key_name
        self._trust_env = parts.hostname not in LOOPBACK  # a proxy does not reach this machine
        self._clients = PerLoop(self._new_client)

    async def get(self, url: str, keyed: bool = False) -> Any:
        """The JSON at a URL; None where the server has none there, or not for us.

        ``keyed``: where every valid key may read it, so that a 401 is a wrong key and raises BadInput.
        """
        return await self._ask("GET", url, None, keyed)

    async def post(self, url: str, body: dict[str, Any]) -> Any:
        """As :meth:`get`."""
        return await self._ask("POST", url, body)

    async def complete(self, body: dict[str, Any]) -> Any:
        """The completion's JSON."""
        url = f"{self.url}/chat/completions"
        try:
            response = await self._clients.get().post(url, json=body)
        except httpx.TransportError as error:
            raise Failure(_reason(error)) from error
        self._check(response, response.text, body)
        try:
            return response.json()
        except ValueError as error:
            raise Failure(f"its reply is no JSON: {self._quoted(response.text)}") from error

    async def events(self, body: dict[str, Any]) -> AsyncGenerator[Any, None]:
        """The chunks of a streamed completion; closing the generator closes the connection.

        Raises Failure where the stream breaks off or the server reports an error in it.
        """
        url = f"{self.url}/chat/completions"
        try:
            async with self._clients.get().stream("POST", url, json=body) as response:
                if response.status_code != httpx.codes.OK:
                    self._check(response, (await response.aread()).decode("utf-8", "replace"), body)
                async for line in response.aiter_lines():
                    if not line.startswith("data:"):
                        continue
                    data = line.removeprefix("data:").strip()
                    if data == "[DONE]":
                        return
                    try:
                        event = json.loads(data)
                    except ValueError as error:
                        raise Failure(f"its stream holds no JSON: {self._quoted(data)}") from error
                    if not isinstance(event, dict) or event.get("error"):
                        raise Failure(f"its stream ends in an error: {self._quoted(data)}")
                    yield event
                raise Failure("its stream ends before it is done")
        except httpx.TransportError as error:
            raise Failure(_reason(error)) from error

    async def close(self) -> None:
        """Of the running loop; those of loops that have ended are closed with them."""
        client = self._clients.pop()
        if client is not None:
            await client.aclose()

    async def _ask(self, method: str, url: str, body: dict[str, Any] | None, keyed: bool = False) -> Any:
        try:
            response = await self._clients.get().request(method, url, json=body)
        except httpx.TransportError as error:
            raise Failure(_reason(error)) from error
        status = response.status_code
        wrong_key = keyed and status == httpx.codes.UNAUTHORIZED
        if 400 <= status < 500 and status != httpx.codes.TOO_MANY_REQUESTS and not wrong_key:
            return None
        self._check(response, response.text, body or {})
        try:
            return response.json()
        except ValueError:
            return None

    def _new_client(self) -> httpx.AsyncClient:
        return httpx.AsyncClient(
            headers={"Authorization": f"Bearer {self._key}"} if self._key else {},
            # The whole try is timed by its caller.
            timeout=httpx.Timeout(None, connect=CONNECT_TIMEOUT_S),
            limits=httpx.Limits(max_connections=None, max_keepalive_connections=64, keepalive_expiry=KEEP_ALIVE_S),
            trust_env=self._trust_env,
        )

    def _check(self, response: httpx.Response, text: str, body: dict[str, Any]) -> None:
        """Failure where another try may help, BadInput where it cannot."""
        status = response.status_code
        if status == httpx.codes.OK:
            return
        said = f"HTTP {status}: {self._quoted(_message(text))}"
        if status == httpx.codes.TOO_MANY_REQUESTS or status >= 500:
            raise Failure(said, retry_after_s(response.headers.get("retry-after")))
        if status in (401, 403):
            where = (
                f"the key in {self._key_name}" if self._key_name else "a call without a key; name one in api_key_env"
            )
            raise BadInput(f"{self.url} refuses {where} (HTTP {status}).")  # its own text may repeat the key
        if status == httpx.codes.NOT_FOUND:
            raise BadInput(
                f"{self.url} does not know this path or the model {body.get('model')!r} ({said}). "
                "A base_url usually ends in /v1, and GET /v1/models lists the models."
            )
        hint = " Where it cannot do a JSON schema, set structured: json_object or none." if _asks_schema(body) else ""
        raise BadInput(f"{self.url} refuses the call ({said}).{hint}")

    def _quoted(self, text: str) -> str:
        """What the endpoint said, short, on one line, without the key."""
        line = " ".join(text.split())
        if self._key:
            line = line.replace(self._key, "…")
        return line if len(line) <= QUOTED_CHARS else line[:QUOTED_CHARS] + "…"


def _message(text: str) -> str:
    """The sentence in an error's body, whose form is each server's own."""
    try:
        found = json.loads(text)
    except ValueError:
        return text
    for key in ("error", "message", "detail"):
        if isinstance(found, dict) and key in found:
            found = found[key]
    return found if isinstance(found, str) else text


def _reason(error: httpx.TransportError) -> str:
    kind = "it cannot be reached" if isinstance(error, httpx.ConnectError | httpx.ConnectTimeout) else "it broke off"
    return f"{kind} ({str(error).strip() or type(error).__name__})"


def _asks_schema(body: dict[str, Any]) -> bool:
    return bool(body.get("response_format", {}).get("type") == "json_schema")
