"""How much time the loop adds to its language model: a fake one that takes half a second a call.

    python benchmarks/loop_latency.py --root ROOT

T = m = 3.  With entities emitted by the sub-questions' call a question is 7 calls deep, (decompose + answer) x 3 +
final; one after the other, with the paper's separate call for entities, there are 22.  Sub-questions are beginnings
of the index's own chunks, entities are names of its graph.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import random
import statistics
import sys
import time
from collections.abc import AsyncGenerator, Sequence
from pathlib import Path

from machine import describe

import hybrid_ir
from hybrid_ir.api import HybridIR
from hybrid_ir.llm.records import Message, Prompt, Reply
from hybrid_ir.opened import Index
from hybrid_ir.reasoning.llm_reasoner import LLMReasoner
from hybrid_ir.reasoning.loop import answer
from hybrid_ir.records import Answer, PathName, Question, Retrieval
from hybrid_ir.roles import LLM, Query, Retriever
from hybrid_ir.settings import LoopSettings

sys.path.insert(0, str(Path(__file__).parent.parent / "tests"))
from fake_llm import ScriptedLLM

ROUNDS = SUB_QUESTIONS = 3
DEPTH = 2 * ROUNDS + 1
LOOP = LoopSettings(rounds=ROUNDS, sub_questions=SUB_QUESTIONS, stop_early=False)


class Planner:
    """Says what a model would: new sub-questions with entities, a statement on the first passage, an answer."""

    def __init__(self, texts: Sequence[str], names: Sequence[str]) -> None:
        self._texts, self._names = iter(texts), iter(names)

    def __call__(self, prompt: Prompt) -> str:
        fields = (prompt.json_schema or {})["properties"]
        if "sub_questions" in fields:
            asked = [{"question": next(self._texts), "entities": self._entities()} for _ in range(SUB_QUESTIONS)]
            return json.dumps({"missing": "more", "sub_questions": asked})
        if "entities" in fields:
            return json.dumps({"entities": self._entities()})
        statement = {"text": "The passage says what was asked.", "citations": ["E1"]}
        return json.dumps({"statements": [statement], "enough_evidence": True, "short": "it"})

    def _entities(self) -> list[str]:
        return [next(self._names), next(self._names)]


def planner(index: Index, seed: int) -> Planner:
    """Drawn before the clock runs."""
    draw = random.Random(seed)  # noqa: S311 -- a sample, no secret
    chunks = [index.chunks.by_number(draw.randrange(len(index.chunks))) for _ in range(2 * ROUNDS * SUB_QUESTIONS)]
    names = index.graph.entity_names
    drawn = [str(names[draw.randrange(len(names))]) for _ in range(6 * ROUNDS * SUB_QUESTIONS)]
    return Planner([" ".join(chunk.text.split()[:12]) for chunk in chunks], drawn)


class OneByOne:
    """A language model that takes one call at a time."""

    def __init__(self, llm: LLM) -> None:
        self._llm, self._turn = llm, asyncio.Lock()
        self.name = llm.name

    async def complete(self, prompt: Prompt) -> Reply:
        async with self._turn:
            return await self._llm.complete(prompt)

    async def stream(self, prompt: Prompt) -> AsyncGenerator[str | Reply, None]:
        yield await self.complete(prompt)

    async def count(self, messages: Sequence[Message]) -> int:
        return await self._llm.count(messages)

    async def window(self) -> int:
        return await self._llm.window()

    async def close(self) -> None:
        await self._llm.close()


class Timed:
    """A retriever whose time on the critical path is kept: of each round, its slowest sub-question."""

    def __init__(self, retriever: Retriever) -> None:
        self._retriever = retriever
        self.spans: list[tuple[float, float]] = []

    async def retrieve(
        self, query: Query, k: int, paths: Sequence[PathName] | None = None, timeout_s: float | None = None
    ) -> Retrieval:
        start = time.perf_counter()
        found = await self._retriever.retrieve(query, k, paths, timeout_s)
        self.spans.append((start, time.perf_counter()))
        return found

    def seconds(self) -> float:
        """The time in which at least one retrieval ran."""
        total, until = 0.0, 0.0
        for start, end in sorted(self.spans):
            total += max(0.0, end - max(start, until))
            until = max(until, end)
        return total


async def one(ir: HybridIR, seed: int, seconds: float, serial: bool) -> tuple[Answer, int, float]:
    """(answer, calls, seconds of retrieval)"""
    llm = ScriptedLLM(planner(ir.index, seed), seconds, window=1_000_000)
    reasoner = LLMReasoner(
        OneByOne(llm) if serial else llm,
        entities="separate" if serial else "with_sub_questions",
        encoder=ir.index.chunk_encoder,
    )
    retriever = Timed(ir.retriever)
    made = await answer(Question(text=f"Question {seed}?"), retriever, reasoner, LOOP, build_id=ir.index.build_id)
    if len(made.rounds) != ROUNDS or made.unread_replies:
        raise RuntimeError(f"{len(made.rounds)} rounds, stopped by {made.stopped}: this is not what is to be measured")
    return made, len(llm.log), retriever.seconds()


async def measure(ir: HybridIR, seconds: float, questions: int) -> None:
    path = DEPTH * seconds
    await one(ir, 0, 0.0, serial=False)  # models and index load here
    await one(ir, 200, 0.0, serial=True)  # and what only some queries need

    def say(name: str, done: list[tuple[Answer, int, float]]) -> None:
        walls = sorted(made.seconds for made, _, _ in done)
        share = statistics.mean(retrieval / made.seconds for made, _, retrieval in done)
        calls = {calls for _, calls, _ in done}
        print(
            f"{name:<32} median {statistics.median(walls):6.2f} s  worst {walls[-1]:6.2f} s  "
            f"{statistics.median(walls) / path:5.2f} x {path:.1f} s  calls {sorted(calls)}  retrieval {share:.1%}"
        )

    say("one at a time", [await one(ir, seed, seconds, serial=False) for seed in range(1, questions + 1)])
    together = await asyncio.gather(*(one(ir, 100 + seed, seconds, serial=False) for seed in range(questions)))
    say(f"{questions} at once", list(together))
    say("serial, separate entities", [await one(ir, 200, seconds, serial=True)])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--root", required=True)
    parser.add_argument("--seconds", type=float, default=0.5, help="of one call")
    parser.add_argument("--questions", type=int, default=8)
    given = parser.parse_args()
    ir = hybrid_ir.open(given.root)
    print(describe())
    print(f"{len(ir.index.chunks)} chunks, {len(ir.index.graph.entity_names)} entities")
    asyncio.run(measure(ir, given.seconds, given.questions))


if __name__ == "__main__":
    main()
