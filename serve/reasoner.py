"""The reasoner as a deployment."""

from __future__ import annotations

from hybrid_ir.index.opened import open_index
from hybrid_ir.records import Conclusion, Decomposition, LoopState, Retrieval, Statement, SubQuestion
from hybrid_ir.settings import Settings
from serve.pinned import require


class Reasoner:
    """Around :class:`hybrid_ir.roles.Reasoner`, as the settings name it."""

    def __init__(self, root: str, build_id: str, settings: Settings) -> None:
        self._build_id = build_id
        self._reasoner = open_index(root, settings, build_id).reasoner

    async def decompose(self, build_id: str, state: LoopState, limit: int) -> Decomposition:
        require(build_id, self._build_id, "reasoner")
        return await self._reasoner.decompose(state, limit)

    async def answer(
        self, build_id: str, state: LoopState, sub_question: SubQuestion, retrieval: Retrieval
    ) -> tuple[Statement, ...]:
        require(build_id, self._build_id, "reasoner")
        return await self._reasoner.answer(state, sub_question, retrieval)

    async def conclude(self, build_id: str, state: LoopState) -> Conclusion:
        require(build_id, self._build_id, "reasoner")
        return await self._reasoner.conclude(state)

    async def ready(self, build_id: str) -> str:
        """The reasoner's name."""
        require(build_id, self._build_id, "reasoner")
        return self._reasoner.name
