"""The reasoner as a deployment."""

from __future__ import annotations

import asyncio
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from ray.serve.handle import DeploymentHandle

from hybrid_ir.opened import Index, open_index
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
from serve.llm import HandleLLM
from serve.pinned import WARM_UP, require


class Reasoner:
    """Around :class:`hybrid_ir.roles.Reasoner`, as the settings name it."""

    def __init__(
        self, root: str, build_id: str, settings: Settings, language_model: DeploymentHandle[Any] | None = None
    ) -> None:
        """``language_model``: vLLM's deployment, where the settings have one."""
        self._build_id = build_id
        index = open_index(root, settings, build_id)
        chosen = settings.reasoner
        if language_model is not None and chosen.kind == "llm" and chosen.llm.backend == "vllm":
            self._reasoner = index.llm_reasoner(chosen, HandleLLM(language_model, chosen.llm))
        else:
            self._reasoner = index.reasoner
        if settings.reasoner.kind == "extractive":  # a language model is warm, and not free, behind its endpoint
            with ThreadPoolExecutor(1) as thread:  # Serve's event loop already runs on this one
                thread.submit(asyncio.run, self._warm_up(index)).result()

    async def _warm_up(self, index: Index) -> None:
        state, asked = LoopState(question=Question(text=WARM_UP)), SubQuestion(text=WARM_UP)
        await self._reasoner.decompose(state, 1)
        evidence = tuple(
            Evidence(chunk=index.chunks.by_number(number), score=1.0, paths={})
            for number in range(min(1, len(index.chunks)))
        )
        await self._reasoner.answer(state, asked, Retrieval(query=WARM_UP, evidence=evidence))

    async def decompose(self, build_id: str, state: LoopState, limit: int) -> Decomposition:
        require(build_id, self._build_id, "reasoner")
        return await self._reasoner.decompose(state, limit)

    async def answer(
        self, build_id: str, state: LoopState, sub_question: SubQuestion, retrieval: Retrieval
    ) -> Findings:
        require(build_id, self._build_id, "reasoner")
        return await self._reasoner.answer(state, sub_question, retrieval)

    async def conclude(self, build_id: str, state: LoopState) -> Conclusion:
        require(build_id, self._build_id, "reasoner")
        return await self._reasoner.conclude(state)

    async def ready(self, build_id: str) -> str:
        """The reasoner's name."""
        require(build_id, self._build_id, "reasoner")
        return self._reasoner.name
