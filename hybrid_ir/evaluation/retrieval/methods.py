"""Methods of retrieval are settings of one retriever and one loop, so that all see the same index and models."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from hybrid_ir.api import HybridIR
from hybrid_ir.evaluation.metrics import documents, interleaved, loop_ranking, measure
from hybrid_ir.evaluation.sets.questions import GoldQuestion
from hybrid_ir.evaluation.sets.retrieval_sets import RetrievalSet
from hybrid_ir.reasoning import loop
from hybrid_ir.reasoning.citations import checked, cited_chunks
from hybrid_ir.records import Answer, LoopState, PathName, Record
from hybrid_ir.retrieval.retriever import FusedRetriever
from hybrid_ir.roles import PathRanking, Query, RetrievalPath
from hybrid_ir.settings import FusionSettings

KEPT = 20
"""Documents of a ranking that are measured and stored."""
DEPTH = 50
"""Chunks asked for, so that ``KEPT`` distinct documents are found where documents have several chunks."""
PLAIN_RRF = FusionSettings(eta=60, weights={}, peaks={})
"""The paper's Eq. 5 with the constant of Cormack et al. (2009)."""


@dataclass(frozen=True)
class Method:
    """One row of the table."""

    name: str
    paths: tuple[PathName, ...]
    rounds: int = 0
    """Of the loop; 0: the question itself, once."""
    fusion: FusionSettings | None = None
    """None: the settings of the index."""
    gold_steps: bool = False
    """The set's own sub-questions in the place of a decomposition."""


class Row(Record):
    """One question by one method."""

    question_id: str
    method: str
    ranked: tuple[str, ...]
    gold: tuple[str, ...]
    measures: dict[str, float]
    seconds: float


def methods_for(paths: Sequence[PathName], default: Sequence[PathName], steps: bool, rounds: int) -> list[Method]:
    """Each path alone, their fusions, the loop, and the gold decomposition where a set has one.

    ``default``: the paths that a query without any is given.  No rounds: no loop.
    """
    found = [Method(path, (path,)) for path in paths]
    for chosen in dict.fromkeys((tuple(default), tuple(paths))):
        if len(chosen) > 1:
            name = " + ".join(chosen)
            found.append(Method(f"{name}, plain RRF", chosen, fusion=PLAIN_RRF))
            found.append(Method(name, chosen))
    for number in sorted({min(1, rounds), rounds} - {0}):
        found.append(Method(f"loop, {_rounds(number)}", tuple(default), rounds=number))
    text = tuple(path for path in paths if path != "graph")
    if rounds and text and set(text) != set(default):
        found.append(Method(f"loop over {' + '.join(text)}, {_rounds(rounds)}", text, rounds=rounds))
    if steps:
        found.append(Method("gold sub-questions", tuple(default), gold_steps=True))
    return found


def _rounds(number: int) -> str:
    return "1 round" if number == 1 else f"{number} rounds"


class Remembered:
    """A path that ranks for each query once, however many methods ask."""

    def __init__(self, path: RetrievalPath) -> None:
        self._path = path
        self._held: dict[tuple[str, int], PathRanking] = {}

    async def rank(self, query: Query, k: int) -> PathRanking:
        key = query.model_dump_json(), k
        if key not in self._held:
            self._held[key] = await self._path.rank(query, k)
        return self._held[key]


class Bench:
    """One open index, asked by every method."""

    def __init__(self, ir: HybridIR) -> None:
        self._ir = ir
        self._paths: Mapping[PathName, RetrievalPath] = {n: Remembered(p) for n, p in ir.index.paths.items()}
        self._answers: dict[tuple[str, tuple[PathName, ...], int], tuple[Answer, float]] = {}

    @property
    def paths(self) -> tuple[PathName, ...]:
        return tuple(self._paths)

    @property
    def default_paths(self) -> tuple[PathName, ...]:
        return self._ir.retriever.default_paths

    async def rows(self, chosen: RetrievalSet, question: GoldQuestion, methods: Sequence[Method]) -> list[Row]:
        """One question by all methods."""
        deepest = max((method.rounds for method in methods), default=0)
        rows = []
        for method in methods:
            start = time.monotonic()
            ranked = await self._ranked(question, method, chosen.steps.get(question.id, ()), deepest)
            rows.append(_row(question, method, ranked[:KEPT], chosen.measures, time.monotonic() - start))
        return rows

    async def _ranked(self, question: GoldQuestion, method: Method, steps: Sequence[str], deepest: int) -> list[str]:
        retriever = FusedRetriever(self._paths, self._ir.index.chunks, method.fusion or self._ir.index.settings.fusion)
        if method.rounds:
            answer = await self._answer(question, method, retriever, deepest)
            return loop_ranking(answer if method.rounds == deepest else await self._after(answer, method.rounds))
        if method.gold_steps:
            found = [await retriever.retrieve(Query(text=step), DEPTH, method.paths) for step in steps]
            return interleaved([documents(one.evidence) for one in found])
        one = await retriever.retrieve(Query(text=question.question), DEPTH, method.paths)
        return documents(one.evidence)

    async def _answer(self, question: GoldQuestion, method: Method, retriever: FusedRetriever, deepest: int) -> Answer:
        """The first rounds of a longer loop are a shorter loop: it runs once."""
        key = question.id, method.paths, deepest
        if key not in self._answers:
            settings = self._ir.index.settings.loop.changed(rounds=deepest, deadline_s=3600.0)
            answer = await loop.answer(
                question.asked(),
                retriever,
                self._ir.index.reasoner,
                settings,
                build_id=self._ir.index.build_id,
                paths=method.paths,
            )
            self._answers = {key: (answer, answer.seconds)}
        return self._answers[key][0]

    async def _after(self, answer: Answer, rounds: int) -> Answer:
        """What a loop of fewer rounds would have answered: the same rounds, concluded earlier."""
        state = LoopState(question=answer.question, rounds=answer.rounds[:rounds])
        conclusion = await self._ir.index.reasoner.conclude(state)
        cited = cited_chunks(checked(conclusion.statements, state.evidence())[0], state.evidence())
        return answer.model_copy(update={"rounds": state.rounds, "citations": cited})


def _row(question: GoldQuestion, method: Method, ranked: Sequence[str], measures: Sequence[str], seconds: float) -> Row:
    return Row(
        question_id=question.id,
        method=method.name,
        ranked=tuple(ranked),
        gold=question.gold,
        measures={name: measure(name, ranked, question.gold) for name in measures},
        seconds=round(seconds, 6),
    )
