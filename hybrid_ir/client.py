"""A few lines to ask a running service."""

from __future__ import annotations

import os
from typing import Any

import httpx

from hybrid_ir.errors import BadInput, NotFound


def post(url: str, path: str, body: dict[str, Any], timeout_s: float = 600.0) -> Any:
    """POST JSON and return the JSON answer; the service's own sentence becomes the error's.

    The key, where the service wants one, is taken from the environment: ``HYBRID_IR_KEY``.
    """
    key = os.environ.get("HYBRID_IR_KEY")
    headers = {"Authorization": f"Bearer {key}"} if key else {}
    try:
        response = httpx.post(url.rstrip("/") + path, json=body, headers=headers, timeout=timeout_s)
    except httpx.HTTPError as error:
        raise NotFound(f"{url}: no service answers there ({error}). Start one: hybrid-ir serve --root ROOT") from error
    if response.is_success:
        return response.json()
    try:
        reason = response.json()["error"]["message"]
    except (ValueError, KeyError, TypeError):
        reason = response.text[:200]
    raise BadInput(f"{url} answered {response.status_code}: {reason}")
