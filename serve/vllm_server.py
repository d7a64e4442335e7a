"""vLLM's deployment, asked in plain dictionaries: its callers need no vLLM of their own.

Imported only where vLLM is installed.
"""

from __future__ import annotations

import asyncio
import json
import uuid
from collections.abc import AsyncGenerator
from typing import Any

from pydantic import ValidationError
from ray.serve.llm.deployment import LLMServer
from ray.serve.llm.openai_api_models import ChatCompletionRequest

from hybrid_ir.errors import BadInput, Unavailable
from hybrid_ir.llm.records import Message
from hybrid_ir.llm.tokens import tokenizer


class VLLMServer(LLMServer):
    """One engine.  A call that is cancelled here is dropped by it."""

    async def ask(self, body: dict[str, Any]) -> dict[str, Any]:
        """A whole chat completion in OpenAI's form."""
        found: Any = None
        async for found in await self.chat(_request(body)):
            _check(found)
        return dict(found.model_dump(mode="json"))

    async def stream(self, body: dict[str, Any]) -> AsyncGenerator[list[dict[str, Any]], None]:
        """Its chunks, as many at a time as Ray gathers."""
        async for batch in await self.chat(_request(body)):
            events = []
            for item in batch if isinstance(batch, list) else [batch]:
                _check(item)
                for line in item.splitlines():
                    data = line.removeprefix("data:").strip()
                    if data and data != "[DONE]":
                        events.append(_event(data))
            if events:
                yield events

    async def count(self, messages: list[dict[str, str]]) -> tuple[int, int]:
        """(tokens of the messages in the chat template, tokens that fit into the window)

        By the model's own tokenizer: Ray 2.60 looks for vLLM's under a name that vLLM 0.29 has changed.
        """
        config: Any = await self.llm_config()
        source = config.engine_kwargs.get("tokenizer") or config.model_loading_config.model_source
        counter = await asyncio.to_thread(tokenizer, str(source))
        engine: Any = self.engine
        window = engine._engine_client.model_config.max_model_len  # Ray has no public name for it
        return counter([Message.model_validate(message) for message in messages]), int(window)


def _request(body: dict[str, Any]) -> Any:
    try:
        # An id of its own: Ray would give all calls of one question the question's, and vLLM takes an id once.
        return ChatCompletionRequest(**body, request_id=uuid.uuid4().hex)
    except ValidationError as error:
        raise BadInput(f"vLLM refuses the call: {error.errors()[0]['msg']}.") from error


def _event(data: str) -> dict[str, Any]:
    event: dict[str, Any] = json.loads(data)
    if "error" in event:
        _refuse(event["error"])
    return event


def _check(found: Any) -> None:
    """Raise what vLLM returns in the place of a reply."""
    error = getattr(found, "error", None)
    if error is not None:
        _refuse(error.model_dump())


def _refuse(error: dict[str, Any]) -> None:
    said = " ".join(str(error.get("message", "no reason given")).split())[:300]
    if int(error.get("code") or 500) < 500:
        raise BadInput(f"vLLM refuses the call: {said}")
    raise Unavailable(f"vLLM failed on the call: {said}")
