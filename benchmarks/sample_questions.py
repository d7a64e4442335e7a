"""Recall and answers on the project's own sample questions: a regression check, not a benchmark of quality.

    python benchmarks/sample_questions.py --root ROOT [--rounds 3] [--misses]

ROOT is an index of examples/corpus.
"""

from __future__ import annotations

import argparse
from collections import defaultdict
from pathlib import Path

import hybrid_ir
from hybrid_ir.evaluation.metrics import correct, documents, loop_ranking, recall_at
from hybrid_ir.evaluation.sets.questions import read_questions

QUESTIONS = Path(__file__).parent.parent / "examples" / "questions.jsonl"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--root", required=True)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--misses", action="store_true", help="print each question that is answered wrongly")
    given = parser.parse_args()
    ir = hybrid_ir.open(given.root)
    recall: dict[str, list[float]] = defaultdict(list)
    right: dict[str, list[bool]] = defaultdict(list)
    gathered: list[int] = []
    for question in read_questions(QUESTIONS)[0]:
        for name, paths in (("graph", ["graph"]), ("dense", ["dense"]), ("fused", None)):
            found = documents(ir.retrieve(question.question, 10, paths).evidence)
            recall[name].append(recall_at(5, found, question.gold))
        for rounds in sorted({1, given.rounds}):
            answer = ir.ask(question.question, question.options, rounds=rounds)
            ranked = loop_ranking(answer)
            recall[f"loop, {rounds} rounds, @5"].append(recall_at(5, ranked, question.gold))
            recall[f"loop, {rounds} rounds, all evidence"].append(recall_at(len(ranked), ranked, question.gold))
            right[f"{question.type}, {rounds} rounds"].append(correct(question, answer))
        gathered.append(len(ranked))
        if given.misses and not correct(question, answer):
            missing = [gold for gold in question.gold if gold not in ranked]
            print(f"{question.id} ({question.hops} hops) {question.question}")
            print(f"   wanted {question.answer!r}, got {answer.choice or answer.short!r}; gold not found: {missing}")
    print(f"{len(gathered)} questions; {sum(gathered) / len(gathered):.1f} documents gathered by the loop on average")
    for name, values in recall.items():
        print(f"  recall  {name:<36} {sum(values) / len(values):.3f}")
    for kind, flags in sorted(right.items()):
        print(f"  correct {kind:<36} {sum(flags)}/{len(flags)}")


if __name__ == "__main__":
    main()
