"""A language model behind an endpoint that speaks OpenAI's chat completions.

By httpx, not by OpenAI's own library: a call here is one POST, and what it needs besides (tries that are counted,
tokens by the engine's own tokenizer, the window, errors that never hold the key) is not in that library.
"""

from __future__ import annotations

import asyncio
import logging
import os
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import aclosing
from typing import Any, TypeVar

from hybrid_ir.errors import BadInput, Unavailable
from hybrid_ir.llm import tokens
from hybrid_ir.llm.chat import Structured, Written, body_of, messages_of
from hybrid_ir.llm.per_loop import PerLoop
from hybrid_ir.llm.records import Message, Prompt, Reply
from hybrid_ir.llm.retry import Failure, retried
from hybrid_ir.llm.transport import Transport
from hybrid_ir.settings.llm import EndpointSettings, LlamaCppSettings

T = TypeVar("T")
log = logging.getLogger(__name__)

WINDOW_KEYS = ("max_model_len", "context_length", "context_window", "max_context_length")
"""Of an entry of ``/v1/models``: vLLM's, and those of other servers."""


class EndpointLLM:
    """See :class:`hybrid_ir.roles.LLM`."""

    def __init__(
        self,
        settings: EndpointSettings | LlamaCppSettings,
        base_url: str,
        name: str | None = None,
        key: str | None = None,
    ) -> None:
        """``key``: in the place of the settings' variable.

        Raises BadInput where the URL is none or the key's variable is not set.
        """
        self._settings = settings
        self._name = name or settings.model
        self._structured: Structured = "json_schema"
        self._extra: dict[str, Any] = {}
        self._tokenizer: str | None = None
        variable = None
        if isinstance(settings, EndpointSettings):
            self._structured, self._extra = settings.structured, settings.extra_body
            self._tokenizer = settings.tokenizer
            variable = settings.api_key_env
            key = _key(variable, base_url) if variable else key
        self._transport = Transport(base_url, key, variable)
        # Held while a call waits for its next try too: an endpoint that is busy is asked less.
        self._slots = PerLoop(lambda: asyncio.Semaphore(settings.concurrency))
        self._window = settings.window
        self.counts_by: str | None = None
        """``vllm``, ``llama.cpp``, ``tokenizer`` or ``estimate``, once tokens have been counted."""

    @property
    def name(self) -> str:
        return self._name

    async def complete(self, prompt: Prompt) -> Reply:
        body = self._body(prompt, stream=False)

        async def once() -> Written:
            written = Written()
            self._take(written, await self._transport.complete(body))
            return written

        start = time.monotonic()
        async with self._slots.get():
            written, tries = await self._retried(once)
        return written.reply(time.monotonic() - start, tries)

    async def stream(self, prompt: Prompt) -> AsyncGenerator[str | Reply, None]:
        """Tried again until the first piece is there; a stream that breaks after it is an Unavailable.

        Leave it by closing it (``contextlib.aclosing``), so that the engine stops at once.
        """
        body = self._body(prompt, stream=True)

        async def once() -> tuple[AsyncGenerator[Any, None], Written, str, float]:
            end = time.monotonic() + self._settings.timeout_s
            events, written = self._transport.events(body), Written()
            try:
                while not (piece := self._take(written, await anext(events))) and not written.finish:
                    pass
            except StopAsyncIteration:
                raise Failure("its stream is empty") from None
            except BaseException:
                await events.aclose()
                raise
            return events, written, piece, end

        start = time.monotonic()
        async with self._slots.get():
            (events, written, piece, end), tries = await self._retried(once)
            async with aclosing(events):
                try:
                    while True:
                        if piece:
                            yield piece
                        async with asyncio.timeout(end - time.monotonic()):
                            event = await anext(events)
                        piece = self._take(written, event)
                except StopAsyncIteration:
                    pass
                except TimeoutError:
                    raise Unavailable(
                        f"{self._who()} did not end its reply within {self._settings.timeout_s:g} s."
                    ) from None
                except Failure as failure:
                    if written.finish is None:  # else only the usage is missing
                        raise Unavailable(f"{self._who()} broke off half-way: {failure.reason}.") from failure
        yield written.reply(time.monotonic() - start, tries)

    async def count(self, messages: Sequence[Message]) -> int:
        """By the endpoint's ``/tokenize`` (vLLM's or llama.cpp's), else by the settings' tokenizer, else estimated
        from above; ``counts_by`` says which.
        """
        if self.counts_by is None:
            self.counts_by = await self._find_counter()
            if self.counts_by == "estimate":
                log.warning(
                    "%s does not count tokens: prompts are estimated from above; name a tokenizer in the settings.",
                    self._who(),
                )
        if self.counts_by == "tokenizer" and self._tokenizer is not None:
            return (await asyncio.to_thread(tokens.tokenizer, self._tokenizer))(messages)
        if self.counts_by == "estimate":
            return tokens.estimate(messages)
        counted = await (self._count_vllm(messages) if self.counts_by == "vllm" else self._count_llama_cpp(messages))
        if counted is None:
            raise Unavailable(f"{self._who()} does not count tokens any more; it did before.")
        return counted

    async def window(self) -> int:
        """As the settings say, else as the endpoint says.  Raises BadInput where neither does."""
        if self._window is None:
            self._window = await self._ask_window()
        return self._window

    async def close(self) -> None:
        await self._transport.close()

    def _body(self, prompt: Prompt, stream: bool) -> dict[str, Any]:
        body = body_of(prompt, self._settings, stream, self._structured) | self._extra
        return {key: value for key, value in body.items() if value is not None}

    @staticmethod
    def _take(written: Written, event: Any) -> str:
        try:
            return written.add(event)
        except (KeyError, TypeError, AttributeError, IndexError) as error:
            raise Failure("its reply is no chat completion") from error

    async def _retried(self, once: Callable[[], Awaitable[T]]) -> tuple[T, int]:
        hint = "Start it, or name another in the settings (base_url)."
        return await retried(once, self._settings.retries, self._settings.timeout_s, self._who(), hint)

    def _who(self) -> str:
        return f"The language model {self._name} at {self._transport.url}"

    async def _find_counter(self) -> str:
        probe = [Message(role="user", content="a")]
        if await self._count_vllm(probe) is not None:
            return "vllm"
        if await self._count_llama_cpp(probe) is not None:
            return "llama.cpp"
        return "tokenizer" if self._tokenizer else "estimate"

    async def _count_vllm(self, messages: Sequence[Message]) -> int | None:
        """vLLM's ``/tokenize`` takes messages."""
        body = {"model": self._settings.model, "messages": messages_of(messages)}
        found, _ = await self._retried(lambda: self._transport.post(f"{self._transport.root}/tokenize", body))
        count = found.get("count") if isinstance(found, dict) else None
        return count if isinstance(count, int) else None

    async def _count_llama_cpp(self, messages: Sequence[Message]) -> int | None:
        """llama.cpp's takes a text, which its ``/apply-template`` makes of messages."""
        url, body = f"{self._transport.root}/apply-template", {"messages": messages_of(messages)}
        made, _ = await self._retried(lambda: self._transport.post(url, body))
        text = made.get("prompt") if isinstance(made, dict) else None
        if not isinstance(text, str):
            return None
        asked = {"content": text, "add_special": True, "parse_special": True}
        found, _ = await self._retried(lambda: self._transport.post(f"{self._transport.root}/tokenize", asked))
        listed = found.get("tokens") if isinstance(found, dict) else None
        return len(listed) if isinstance(listed, list) else None

    async def _ask_window(self) -> int:
        props, _ = await self._retried(lambda: self._transport.get(f"{self._transport.root}/props"))
        if isinstance(props, dict):  # llama.cpp: of one of its slots, which is what a call gets
            n_ctx = (props.get("default_generation_settings") or {}).get("n_ctx")
            if isinstance(n_ctx, int) and n_ctx > 0:
                return n_ctx
        listed, _ = await self._retried(lambda: self._transport.get(f"{self._transport.url}/models", keyed=True))
        models = listed.get("data") if isinstance(listed, dict) else None
        models = [model for model in models or [] if isinstance(model, dict)]
        mine = [model for model in models if model.get("id") == self._settings.model] or models[:1]
        for about in (*mine, *(model.get("meta") or {} for model in mine)):
            for key in (*WINDOW_KEYS, "n_ctx", "n_ctx_train"):
                if isinstance(about.get(key), int) and about[key] > 0:
                    return int(about[key])
        raise BadInput(
            f"{self._who()} does not say how many tokens fit into it: "
            "set window in the settings, beside base_url (window: 8192, say)."
        )


def _key(variable: str, base_url: str) -> str:
    key = os.environ.get(variable, "").strip()
    if not key:
        raise BadInput(f"The environment variable {variable} is not set; it is to hold the key for {base_url}.")
    if not key.isascii() or not key.isprintable():
        raise BadInput(f"The environment variable {variable} holds characters that no key has.")
    return key
