"""What goes to a language model and what comes back."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field

from hybrid_ir.records import Record


class Message(Record):
    """One turn of a chat."""

    role: Literal["system", "user", "assistant"]
    content: str


class Prompt(Record):
    """One call: the messages and the limits of the reply."""

    messages: tuple[Message, ...]
    json_schema: dict[str, Any] | None = None
    """The reply is to be one JSON object of this schema, enforced where the backend can."""
    max_tokens: Annotated[int, Field(ge=1)] | None = None
    """Of the reply; ``None``: as the settings say."""
    stop: tuple[str, ...] = ()
    seed: int | None = None
    """``None``: as the settings say."""


class Usage(Record):
    """Tokens, as the backend counted them."""

    prompt: int = 0
    completion: int = 0


class Reply(Record):
    """What a model wrote."""

    text: str
    finish: Literal["stop", "length", "other"]
    """``length``: it was cut off by ``max_tokens`` or the window."""
    usage: Usage
    seconds: float
    """From the first try to the last token."""
    tries: Annotated[int, Field(ge=1)] = 1
