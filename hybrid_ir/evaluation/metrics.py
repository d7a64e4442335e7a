"""Measures of retrieval and of answers."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence

from hybrid_ir.errors import BadInput
from hybrid_ir.evaluation.sets.questions import GoldQuestion
from hybrid_ir.records import Answer, Evidence


def recall_at(k: int, ranked: Sequence[str], gold: Sequence[str]) -> float:
    """The share of the gold documents among the first k distinct ones; 1 where there is no gold."""
    first = set(list(dict.fromkeys(ranked))[:k])
    return sum(document in first for document in gold) / len(gold) if gold else 1.0


def all_gold_at(k: int, ranked: Sequence[str], gold: Sequence[str]) -> bool:
    """Are all gold documents among the first k distinct ones?"""
    return recall_at(k, ranked, gold) == 1.0


def hit_at(k: int, ranked: Sequence[str], gold: Sequence[str]) -> bool:
    """Is any gold document among the first k distinct ones?"""
    return not set(list(dict.fromkeys(ranked))[:k]).isdisjoint(gold)


def reciprocal_rank(ranked: Sequence[str], gold: Sequence[str]) -> float:
    """1 / the rank of the first gold document (its mean over questions is MRR); 0 where there is none."""
    places = (place for place, document in enumerate(dict.fromkeys(ranked), start=1) if document in gold)
    return 1.0 / next(places, math.inf)


def ndcg_at(k: int, ranked: Sequence[str], gold: Sequence[str]) -> float:
    """DCG over that of the best order, gain 1, discount log2(1 + rank) (Järvelin & Kekäläinen 2002); 1 without gold."""
    first = list(dict.fromkeys(ranked))[:k]
    gain = sum(1.0 / math.log2(1 + rank) for rank, document in enumerate(first, start=1) if document in gold)
    best = sum(1.0 / math.log2(1 + rank) for rank in range(1, min(k, len(set(gold))) + 1))
    return gain / best if best else 1.0


AT: dict[str, Callable[[int, Sequence[str], Sequence[str]], float]] = {
    "recall": recall_at,
    "all_gold": all_gold_at,
    "hit": hit_at,
    "ndcg": ndcg_at,
}


def measure(name: str, ranked: Sequence[str], gold: Sequence[str]) -> float:
    """``recall@5``, ``all_gold@5``, ``hit@1``, ``ndcg@10`` or ``mrr`` of one ranking of document ids."""
    if name == "mrr":
        return reciprocal_rank(ranked, gold)
    match = re.fullmatch(r"(\w+)@(\d+)", name)
    if not match or match.group(1) not in AT:
        raise BadInput(f"There is no measure {name!r}; there are mrr and {', '.join(f'{m}@k' for m in AT)}.")
    return float(AT[match.group(1)](int(match.group(2)), ranked, gold))


def documents(evidence: Sequence[Evidence]) -> list[str]:
    """The documents of evidence, best first, each once."""
    return list(dict.fromkeys(item.chunk.document_id for item in evidence))


def loop_ranking(answer: Answer) -> list[str]:
    """The documents that a loop found: what its answer cites, then round after round.

    Within a round first every sub-question's best document in the order asked, then every
    second-best, and so on: lists of different questions are not votes on the same thing, so they
    are not fused.  An early round stands before a later one, which asks for less of the question.
    """
    cited = [chunk.document_id for chunk in answer.citations]
    rounds = [interleaved([documents(s.retrieval.evidence) for s in round_.sub_answers]) for round_ in answer.rounds]
    return list(dict.fromkeys((*cited, *(document for found in rounds for document in found))))


def interleaved(lists: Sequence[Sequence[str]]) -> list[str]:
    """The first of each list, then the second of each, and so on; each document once."""
    longest = max(map(len, lists), default=0)
    return list(dict.fromkeys(list_[place] for place in range(longest) for list_ in lists if place < len(list_)))


def correct(question: GoldQuestion, answer: Answer) -> bool:
    """The right letter; for an open question, an accepted text within the short answer, case ignored."""
    if question.options:
        return answer.choice == question.answer
    short = answer.short.casefold()
    return any(text.casefold() in short for text in (question.answer, *question.aliases) if text)
