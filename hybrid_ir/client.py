"""A few lines to ask a running service.

The key, where the service wants one, is taken from the environment: ``HYBRID_IR_KEY``.  The service's own sentence
becomes the error's: Unavailable where it does not answer or is busy, NotFound for what it does not have, BadInput for
what it refuses.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import httpx

from hybrid_ir.errors import BadInput, HybridIRError, NotFound, Unavailable

CONNECT_S = 10.0


def get(url: str, path: str, timeout_s: float = 30.0) -> Any:
    """The JSON of a GET."""
    with _asked("GET", url, path, None, timeout_s) as response:
        return _json(url, response)


def post(url: str, path: str, body: dict[str, Any], timeout_s: float = 600.0) -> Any:
    """The JSON that answers posted JSON."""
    with _asked("POST", url, path, body, timeout_s) as response:
        return _json(url, response)


def events(url: str, path: str, body: dict[str, Any], timeout_s: float = 600.0) -> Iterator[tuple[str, str]]:
    """(kind, data) of the Server-Sent Events that answer posted JSON, each with one line of data.

    The service's ``error`` event is raised.
    """
    kind = ""
    with _asked("POST", url, path, body, timeout_s) as response:
        for line in response.iter_lines():
            field, _, value = line.partition(": ")
            if field == "event":
                kind = value
            elif field == "data" and kind == "error":
                said = _error(value)
                raise _refused(url, 503 if said.get("type") == "unavailable" else 500, value)
            elif field == "data":
                yield kind, value


@contextmanager
def _asked(method: str, url: str, path: str, body: dict[str, Any] | None, timeout_s: float) -> Iterator[httpx.Response]:
    """The response of a service that took the request, not read yet."""
    key = os.environ.get("HYBRID_IR_KEY")
    headers = {"Authorization": f"Bearer {key}"} if key else {}
    if not url.startswith(("http://", "https://")):
        raise BadInput(f"{url!r} is no address of a service; write it as http://HOST:PORT.")
    timeout = httpx.Timeout(timeout_s, connect=CONNECT_S)
    try:
        with (
            httpx.Client(timeout=timeout) as client,
            client.stream(method, url.rstrip("/") + path, json=body, headers=headers) as response,
        ):
            if response.is_error:
                response.read()
                raise _refused(url, response.status_code, response.text)
            yield response
    except (httpx.HTTPError, httpx.InvalidURL) as error:
        raise Unavailable(
            f"{url}: no service answers there ({error or type(error).__name__}). Start one: hybrid-ir serve --root ROOT"
        ) from error


def _json(url: str, response: httpx.Response) -> Any:
    response.read()
    try:
        return response.json()
    except ValueError as error:
        raise BadInput(f"{url}: what answers there is no service of Hybrid-IR.") from error


def _refused(url: str, status: int, body: str) -> HybridIRError:
    reason = _error(body).get("message") or body[:200]
    if status == 401:
        reason = f"{reason} Put it into the environment as HYBRID_IR_KEY."
    kind = Unavailable if status in (429, 502, 503, 504) else NotFound if status == 404 else BadInput
    return kind(f"{url} answered {status}: {reason}")


def _error(body: str) -> dict[str, Any]:
    """What the service says of an error; empty where this is no error of the service."""
    try:
        said = json.loads(body)["error"]
    except (ValueError, KeyError, TypeError):
        return {}
    return said if isinstance(said, dict) else {}
