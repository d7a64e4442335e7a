"""A prompt as OpenAI's chat completions write it, and a reply as they write it back."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal

from hybrid_ir.llm.records import Message, Prompt, Reply, Usage
from hybrid_ir.settings.llm import EndpointSettings, LlamaCppSettings, VLLMSettings

Structured = Literal["json_schema", "json_object", "none"]


def messages_of(messages: Sequence[Message]) -> list[dict[str, str]]:
    """Half a surrogate pair, which no UTF-8 holds, becomes a question mark."""
    return [{"role": m.role, "content": m.content.encode("utf-8", "replace").decode()} for m in messages]


def body_of(
    prompt: Prompt,
    settings: EndpointSettings | LlamaCppSettings | VLLMSettings,
    stream: bool,
    structured: Structured = "json_schema",
) -> dict[str, Any]:
    """The body of ``POST /v1/chat/completions``."""
    body: dict[str, Any] = {
        "model": settings.model,
        "messages": messages_of(prompt.messages),
        "temperature": settings.temperature,
        "max_tokens": prompt.max_tokens or settings.max_tokens,
    }
    seed = settings.seed if prompt.seed is None else prompt.seed
    if seed is not None:
        body["seed"] = seed
    if prompt.stop:
        body["stop"] = list(prompt.stop)
    if prompt.json_schema is not None and structured == "json_schema":
        asked = {"name": "reply", "schema": prompt.json_schema, "strict": True}
        body["response_format"] = {"type": "json_schema", "json_schema": asked}
    elif prompt.json_schema is not None and structured == "json_object":
        body["response_format"] = {"type": "json_object"}
    if stream:
        body |= {"stream": True, "stream_options": {"include_usage": True}}
    return body


class Written:
    """A reply as it comes, whole or in pieces."""

    def __init__(self) -> None:
        self._text: list[str] = []
        self._usage = Usage()
        self.finish: Literal["stop", "length", "other"] | None = None
        """None until the model has said why it ended."""

    def add(self, event: Mapping[str, Any]) -> str:
        """Take a completion, or one chunk of a stream; its text.

        Raises KeyError, TypeError or AttributeError where the event is neither.
        """
        if event.get("usage"):
            usage = event["usage"]
            self._usage = Usage(prompt=usage.get("prompt_tokens") or 0, completion=usage.get("completion_tokens") or 0)
        choices = event["choices"]
        if not choices:  # a stream's last chunk, which holds the usage alone
            return ""
        said = choices[0].get("delta") or choices[0].get("message") or {}
        reason = choices[0].get("finish_reason")
        if reason:
            self.finish = reason if reason in ("stop", "length") else "other"
        text = said.get("content") or ""
        if not isinstance(text, str):
            raise TypeError("content is no text")
        self._text.append(text)
        return text

    def reply(self, seconds: float, tries: int) -> Reply:
        return Reply(
            text="".join(self._text), finish=self.finish or "other", usage=self._usage, seconds=seconds, tries=tries
        )
