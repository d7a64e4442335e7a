"""What a method does with a question: how it comes to its queries, and what its answer rests on.

hybrid             rounds of sub-questions, each answered; concluded from all evidence (Algorithm 1)
single             the question itself, once; concluded from what it brought: plain RAG
imedrag            rounds of queries, each answered; concluded from questions and answers alone (i-MedRAG)
zero_shot          no retrieval: the model's memory
chain_of_thought   the same, thinking step by step before the answer
"""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import aclosing

from hybrid_ir.errors import BadInput
from hybrid_ir.records import Basis, Conclusion, Decomposition, Findings, LoopState, Retrieval, SubQuestion
from hybrid_ir.roles import Reasoner, StreamingReasoner
from hybrid_ir.settings import LoopSettings

BASES: dict[str, Basis] = {"imedrag": "pairs", "zero_shot": "memory", "chain_of_thought": "memory_steps"}
"""Of the flows that do not conclude from evidence."""


def basis_of(settings: LoopSettings) -> Basis:
    """What the conclusion of a flow may rest on."""
    return BASES.get(settings.flow, "evidence")


def rounds_of(settings: LoopSettings) -> int:
    """How many rounds a flow runs at most."""
    if basis_of(settings) in ("memory", "memory_steps"):
        return 0
    return 1 if settings.flow == "single" else settings.rounds


def reasoner_of(settings: LoopSettings, reasoner: Reasoner) -> Reasoner:
    """The reasoner as a flow uses it.

    Raises BadInput where the flow needs a language model and this is none: quotes have no memory and write no
    answer from answers.
    """
    if settings.flow in BASES and reasoner.name == "extractive":
        raise BadInput(
            f"loop.flow is {settings.flow}, which needs a language model: name one in the settings (reasoner.kind: "
            "llm); the extractive reasoner only quotes documents."
        )
    return Undivided(reasoner) if settings.flow == "single" else reasoner


class Undivided:
    """A reasoner that asks the question itself and answers it in one step: no sub-questions, no sub-answers."""

    def __init__(self, reasoner: Reasoner) -> None:
        self._reasoner = reasoner

    @property
    def name(self) -> str:
        return self._reasoner.name

    async def decompose(self, state: LoopState, limit: int) -> Decomposition:
        asked = () if state.rounds else (SubQuestion(text=state.question.text, reason="question"),)
        return Decomposition(sub_questions=asked)

    async def answer(self, state: LoopState, sub_question: SubQuestion, retrieval: Retrieval) -> Findings:
        return Findings()

    async def conclude(self, state: LoopState) -> Conclusion:
        return await self._reasoner.conclude(state)

    async def concluding(self, state: LoopState) -> AsyncGenerator[str | Conclusion, None]:
        """Piece by piece where the reasoner writes so."""
        if not isinstance(self._reasoner, StreamingReasoner):
            yield await self._reasoner.conclude(state)
            return
        async with aclosing(self._reasoner.concluding(state)) as pieces:
            async for piece in pieces:
                yield piece
