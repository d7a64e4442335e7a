"""Measures of retrieval and of answers."""

from __future__ import annotations

from collections.abc import Sequence

from hybrid_ir.evaluation.questions import GoldQuestion
from hybrid_ir.records import Answer, Evidence


def recall_at(k: int, ranked: Sequence[str], gold: Sequence[str]) -> float:
    """The share of the gold documents among the first k distinct ones; 1 where there is no gold."""
    first = set(list(dict.fromkeys(ranked))[:k])
    return sum(document in first for document in gold) / len(gold) if gold else 1.0


def all_gold_at(k: int, ranked: Sequence[str], gold: Sequence[str]) -> bool:
    """Are all gold documents among the first k distinct ones?"""
    return recall_at(k, ranked, gold) == 1.0


def documents(evidence: Sequence[Evidence]) -> list[str]:
    """The documents of evidence, best first, each once."""
    return list(dict.fromkeys(item.chunk.document_id for item in evidence))


def loop_ranking(answer: Answer) -> list[str]:
    """The documents of all sub-questions, each with an equal say.

    First every sub-question's best document in the order asked, then every second-best, and so
    on: lists of different questions are not votes on the same thing, so they are not fused.
    """
    lists = [documents(sub.retrieval.evidence) for round_ in answer.rounds for sub in round_.sub_answers]
    longest = max(map(len, lists), default=0)
    return list(dict.fromkeys(list_[place] for place in range(longest) for list_ in lists if place < len(list_)))


def correct(question: GoldQuestion, answer: Answer) -> bool:
    """The right letter; for an open question, an accepted text within the short answer, case ignored."""
    if question.options:
        return answer.choice == question.answer
    short = answer.short.casefold()
    return any(text.casefold() in short for text in (question.answer, *question.aliases) if text)
