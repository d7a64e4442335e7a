"""What the extractive reasoner answers, on its own and over an index.

    python benchmarks/extractive_answers.py pubmedqa-given --data FOLDER [--split test]
    python benchmarks/extractive_answers.py pubmedqa --data FOLDER --root ROOT [--rounds 3]
    python benchmarks/extractive_answers.py sample --root ROOT
    python benchmarks/extractive_answers.py medqa|medmcqa|mmlu --data FOLDER --root ROOT [--limit 200]

``pubmedqa-given`` hands each question its own abstract; ``pubmedqa`` searches ROOT, an index of the
abstracts (``hybrid-ir benchmark retrieval --set pubmedqa --out FOLDER`` builds it).  The others search ROOT, an
index of examples/corpus, which holds next to nothing of what medqa, medmcqa and mmlu ask.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import time
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

import hybrid_ir
from hybrid_ir import encoders
from hybrid_ir.corpus.chunker import chunk
from hybrid_ir.evaluation.answers import Said, Score, confusion, is_right, score
from hybrid_ir.evaluation.sets.datasets import load, pubmedqa_pairs
from hybrid_ir.evaluation.sets.questions import GoldQuestion, read_questions
from hybrid_ir.extraction.load import load as load_extractor
from hybrid_ir.reasoning.extractive import ExtractiveReasoner
from hybrid_ir.records import (
    Document,
    Evidence,
    LoopState,
    PathHit,
    Question,
    Retrieval,
    Round,
    Section,
    SubAnswer,
    SubQuestion,
)
from hybrid_ir.settings import Settings

PATIENT = 3600.0
"""Seconds for a question: what is measured must not depend on what else the machine does."""
SAMPLE = Path(__file__).parent.parent / "examples" / "questions.jsonl"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("set", choices=["pubmedqa-given", "pubmedqa", "sample", "medqa", "medmcqa", "mmlu"])
    parser.add_argument("--data", default=os.environ.get("HYBRID_IR_DATA", ""))
    parser.add_argument("--root", default="")
    parser.add_argument("--split", default="test", choices=["test", "cv"], help="cv: PubMedQA's training half")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--limit", type=int)
    parser.add_argument("--type", choices=["choice", "yesno", "open"], help="of the sample questions, these alone")
    parser.add_argument("--misses", action="store_true", help="print each question that is answered wrongly")
    given = parser.parse_args()
    start = time.monotonic()
    answered: dict[str, list[tuple[GoldQuestion, Said]]] = defaultdict(list)
    try:
        for question, said in answers(given):
            answered[question.type].append((question, said))
            if given.misses and not is_right(question, said):
                right = question.options.get(question.answer, question.answer)
                print(f"{question.id} {question.question}\n   wanted {right!r}, got {said.short!r}")
    except KeyboardInterrupt:
        print("Interrupted; what was asked until then:")
    for kind, pairs in answered.items():
        questions, said_all = [q for q, _ in pairs], [s for _, s in pairs]
        print(f"{given.set}, {kind}: {told(score(questions, said_all))}")
        if kind == "yesno":
            table = confusion([q.options[q.answer] for q in questions], [s.short or None for s in said_all])
            print("   " + ", ".join(f"{gold} as {said} {n}" for (gold, said), n in sorted(table.items(), key=str)))
    asked = sum(map(len, answered.values()))
    print(f"{(time.monotonic() - start) / max(asked, 1):.2f} s a question")


def told(found: Score) -> str:
    parts = [
        f"{found.asked} asked, {found.unanswered} without an answer",
        f"accuracy {found.accuracy.mean:.3f} [{found.accuracy.low:.3f}, {found.accuracy.high:.3f}]",
        f"by letter {found.by_letter:.3f}",
        f"macro-F1 {found.macro_f1:.3f}",
        f"exact {found.exact:.3f}",
        f"F1 {found.f1:.3f}",
    ]
    return ", ".join(part for part in parts if not part.endswith("nan"))


def answers(given: argparse.Namespace) -> Iterator[tuple[GoldQuestion, Said]]:
    if given.set == "pubmedqa-given":
        settings = Settings()
        reasoner = ExtractiveReasoner(
            encoders.load(settings.build.chunk_encoder), load_extractor(settings.build.extractor)
        )
        for question, abstract in list(pubmedqa_pairs(given.data, given.split))[: given.limit]:
            conclusion = asyncio.run(reasoner.conclude(brought(question, abstract, settings)))
            yield question, Said(conclusion.choice, conclusion.short)
        return
    if given.set == "sample":
        questions = [q for q in read_questions(SAMPLE)[0] if given.type in (None, q.type)]
    elif given.set == "pubmedqa":
        questions = [question for question, _ in pubmedqa_pairs(given.data, given.split)][: given.limit]
    else:
        chosen = load(given.set, given.data)
        print(chosen.summary())
        questions = list(chosen.distinct().limited(given.limit).questions)
    ir = hybrid_ir.open(given.root)
    for question in questions:
        answer = ir.ask(question.question, question.options, rounds=given.rounds, deadline_s=PATIENT)
        yield question, Said(answer.choice, answer.short)


def brought(question: GoldQuestion, text: str, settings: Settings) -> LoopState:
    """The state as if retrieval had brought one document and nothing else, cut as the index cuts it."""
    document = Document(
        id=question.id, text=text, sections=(Section(start=0, end=len(text)),), source="given with the question"
    )
    evidence = tuple(
        Evidence(chunk=piece, score=1.0 / rank, paths={"dense": PathHit(rank=rank, score=1.0 / rank)})
        for rank, piece in enumerate(chunk(document, settings.build.chunker), start=1)
    )
    asked = SubQuestion(text=question.question, reason="question")
    sub = SubAnswer(sub_question=asked, retrieval=Retrieval(query=question.question, evidence=evidence), statements=())
    return LoopState(
        question=Question(text=question.question, options=question.options),
        rounds=(Round(number=1, sub_answers=(sub,)),),
    )


if __name__ == "__main__":
    main()
