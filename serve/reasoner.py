"""The reasoner as a deployment."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import Any

from ray.serve.handle import DeploymentHandle

from hybrid_ir import roles
from hybrid_ir.opened import Index
from hybrid_ir.records import (
    Conclusion,
    Decomposition,
    Evidence,
    Findings,
    LoopState,
    Question,
    Retrieval,
    SubQuestion,
)
from hybrid_ir.settings import Settings
from serve.builds import Builds
from serve.llm import HandleLLM
from serve.pinned import WARM_UP, longest_request_s


class Reasoner:
    """Around :class:`hybrid_ir.roles.Reasoner`, as the settings name it."""

    def __init__(
        self, root: str, build_id: str, settings: Settings, language_model: DeploymentHandle[Any] | None = None
    ) -> None:
        """``language_model``: vLLM's deployment, where the settings have one."""
        self._language_model = language_model
        self._builds = Builds(root, settings, build_id, self._opened, longest_request_s(settings))

    def _opened(self, index: Index) -> roles.Reasoner:
        chosen = index.settings.reasoner
        if self._language_model is not None and chosen.kind == "llm" and chosen.llm.backend == "vllm":
            return index.llm_reasoner(chosen, HandleLLM(self._language_model, chosen.llm))
        reasoner = index.reasoner
        if chosen.kind == "extractive":  # a language model is warm, and not free, behind its endpoint
            asyncio.run(_warm_up(index, reasoner))
        return reasoner

    async def decompose(self, build_id: str, state: LoopState, limit: int) -> Decomposition:
        return await (await self._builds.get(build_id)).decompose(state, limit)

    async def answer(
        self, build_id: str, state: LoopState, sub_question: SubQuestion, retrieval: Retrieval
    ) -> Findings:
        return await (await self._builds.get(build_id)).answer(state, sub_question, retrieval)

    async def conclude(self, build_id: str, state: LoopState) -> Conclusion:
        return await (await self._builds.get(build_id)).conclude(state)

    async def concluding(self, build_id: str, state: LoopState) -> AsyncGenerator[str | Conclusion, None]:
        """The conclusion, after pieces of it where the reasoner has them."""
        reasoner = await self._builds.get(build_id)
        if not isinstance(reasoner, roles.StreamingReasoner):
            yield await reasoner.conclude(state)
            return
        async with aclosing(reasoner.concluding(state)) as pieces:
            async for piece in pieces:
                yield piece

    async def ready(self, build_id: str) -> str:
        """The reasoner's name."""
        return (await self._builds.get(build_id)).name


async def _warm_up(index: Index, reasoner: roles.Reasoner) -> None:
    state, asked = LoopState(question=Question(text=WARM_UP)), SubQuestion(text=WARM_UP)
    await reasoner.decompose(state, 1)
    evidence = tuple(
        Evidence(chunk=index.chunks.by_number(number), score=1.0, paths={})
        for number in range(min(1, len(index.chunks)))
    )
    await reasoner.answer(state, asked, Retrieval(query=WARM_UP, evidence=evidence))
