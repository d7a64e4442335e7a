"""vLLM in the cluster: its deployment, by ``ray.serve.llm``, and the language model behind its handle."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import aclosing
from typing import Any, TypeVar, cast

from pydantic import ValidationError
from ray.serve import Application
from ray.serve.handle import DeploymentHandle

from hybrid_ir.errors import BadInput, Unavailable
from hybrid_ir.llm.chat import Written, body_of, messages_of
from hybrid_ir.llm.per_loop import PerLoop
from hybrid_ir.llm.records import Message, Prompt, Reply
from hybrid_ir.llm.retry import Failure, retried
from hybrid_ir.llm.vllm import engine_arguments, model_folder
from hybrid_ir.settings import VLLMSettings
from serve.errors import Overloaded
from serve.handles import call, call_stream

NAME = "LanguageModel"
"""The deployment's."""
WHO = "language model"
T = TypeVar("T")


def deployment(settings: VLLMSettings, options: dict[str, Any]) -> Application:
    """One replica is one engine; ``options`` are further ones of its Serve deployment.

    Raises BadInput where vLLM is not installed, the model is not here, or the settings do not fit.
    """
    folder = model_folder(settings)
    try:
        from ray.serve.llm import LLMConfig, build_llm_deployment

        from serve.vllm_server import VLLMServer
    except ImportError as error:
        raise BadInput(
            "The reasoner's language model runs by vLLM, which is not installed: "
            "pip install 'hybrid-ir[vllm]' on every node."
        ) from error
    try:
        config = LLMConfig(
            model_loading_config={"model_id": settings.model, "model_source": str(folder)},
            engine_kwargs=engine_arguments(settings),
            accelerator_type=settings.accelerator,
            placement_group_config={"bundles": settings.bundles} if settings.bundles else None,
            deployment_config=_scale(settings),
            # The model was fetched before: nothing is downloaded at start, and nothing reported.
            runtime_env={"env_vars": {"HF_HUB_OFFLINE": "1", "VLLM_NO_USAGE_STATS": "1"}},
        )
        named = {**options, "name": NAME}
        return build_llm_deployment(config, override_serve_options=named, deployment_cls=VLLMServer)
    except ValidationError as error:
        raise BadInput(f"reasoner.llm: {error.errors()[0]['msg']}.") from error
    except (ValueError, TypeError) as error:  # of an engine's argument that vLLM does not know
        raise BadInput(f"reasoner.llm.engine: {error}") from error


def _scale(settings: VLLMSettings) -> dict[str, Any]:
    if settings.max_replicas < settings.min_replicas:
        raise BadInput(
            f"reasoner.llm: max_replicas is {settings.max_replicas}, below min_replicas ({settings.min_replicas})."
        )
    if settings.max_replicas == settings.min_replicas:
        return {"num_replicas": settings.min_replicas}
    return {
        "autoscaling_config": {
            "min_replicas": settings.min_replicas,
            "max_replicas": settings.max_replicas,
            "target_ongoing_requests": settings.concurrency,
            # Longer than the look-back, or engines, which take minutes to start, come and go with each burst.
            "look_back_period_s": 30.0,
            "upscale_delay_s": 60.0,
            "downscale_delay_s": 900.0,
        }
    }


class HandleLLM:
    """See :class:`hybrid_ir.roles.LLM`; a cancelled call is cancelled on the replica, and vLLM drops its request."""

    def __init__(self, handle: DeploymentHandle[Any], settings: VLLMSettings) -> None:
        self._handle, self._settings = handle, settings
        self._window = settings.window
        self._slots = PerLoop(lambda: asyncio.Semaphore(settings.concurrency))

    @property
    def name(self) -> str:
        return self._settings.model

    async def complete(self, prompt: Prompt) -> Reply:
        body = body_of(prompt, self._settings, stream=False)

        async def once() -> Written:
            written = Written()
            written.add(await self._call("ask", body))
            return written

        start = time.monotonic()
        async with self._slots.get():
            written, tries = await self._retried(once)
        return written.reply(time.monotonic() - start, tries)

    async def stream(self, prompt: Prompt) -> AsyncGenerator[str | Reply, None]:
        """Not tried again: what was said cannot be taken back.  Leave it by closing it, so that vLLM stops at once."""
        body, written, limit = body_of(prompt, self._settings, stream=True), Written(), self._settings.timeout_s
        start = time.monotonic()
        async with self._slots.get(), aclosing(call_stream(self._handle, "stream", body, who=WHO)) as batches:
            end = time.monotonic() + limit
            try:
                while True:
                    async with asyncio.timeout(end - time.monotonic()):
                        batch = await anext(batches)
                    for event in batch:
                        if piece := written.add(event):
                            yield piece
            except StopAsyncIteration:
                pass
            except TimeoutError:
                raise Unavailable(f"The {WHO} did not end its reply within {limit:g} s.") from None
        if written.finish is None:
            raise Unavailable(f"The {WHO} broke off half-way through its reply.")
        yield written.reply(time.monotonic() - start, tries=1)

    async def count(self, messages: Sequence[Message]) -> int:
        return (await self._tokens(messages))[0]

    async def window(self) -> int:
        if self._window is None:
            self._window = (await self._tokens([Message(role="user", content="a")]))[1]
        return self._window

    async def close(self) -> None:
        """The deployment is Serve's."""

    async def _tokens(self, messages: Sequence[Message]) -> tuple[int, int]:
        """(tokens, window)"""
        found, _ = await self._retried(lambda: self._call("count", messages_of(messages)))
        return cast(tuple[int, int], found)

    async def _call(self, method: str, *arguments: Any) -> Any:
        try:
            return await call(self._handle, method, *arguments, who=WHO)
        except (Unavailable, Overloaded) as error:
            raise Failure(str(error).rstrip(".")) from error

    async def _retried(self, once: Callable[[], Awaitable[T]]) -> tuple[T, int]:
        who = f"The language model {self.name}"
        hint = "See its deployment with `serve status`."
        return await retried(once, self._settings.retries, self._settings.timeout_s, who, hint)
