"""One question by one cell of a grid: what came of it, as a row."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import pyarrow as pa
from pydantic import Field

from hybrid_ir.errors import HybridIRError
from hybrid_ir.evaluation.answers import Said, exact_match, is_right, token_f1
from hybrid_ir.evaluation.metrics import documents, interleaved, loop_ranking, measure, recall_at
from hybrid_ir.evaluation.run.grid import Cell
from hybrid_ir.evaluation.sets.questions import GoldQuestion
from hybrid_ir.reasoning.parsing import mirage_choice
from hybrid_ir.reasoning.verdicts import wanted_of
from hybrid_ir.records import Answer, ModelCall, Record, Retrieval


class Asked(Record):
    """A sub-question, for whoever reads the report."""

    text: str
    evidence: tuple[str, ...]
    """Chunk ids, best first."""
    statements: tuple[str, ...]


class RoundOfRow(Record):
    """What one round did."""

    missing: str
    asked: tuple[Asked, ...]
    documents: tuple[str, ...]
    """Of the evidence."""
    chunks: tuple[str, ...]
    gold_recall: float | None
    """The share of the gold documents found up to the end of this round; None where none are known."""


class Row(Record):
    """One question by one cell.  An error is a row too."""

    cell: str
    """The cell's key."""
    id: str
    prediction: str = ""
    """The model's last reply; of the extractive reasoner, which writes none, its short answer."""
    choice: str | None = None
    """The option's letter that was read; None in an open question, or where none could be read."""
    short: str = ""
    long: str = ""
    """The statements of the answer."""
    judged: bool = True
    """False: no right answer is known, or nothing was answered on purpose."""
    strict: bool = False
    """Right; what cannot be read is wrong."""
    compatible: bool = False
    """Right as MIRAGE counts: its own reading of the reply, and the gold letter alone."""
    same: bool | None = None
    exact: bool | None = None
    f1: float | None = None
    """Of open answers: the very text, exact match and token F1 of the normalised texts."""
    enough_evidence: bool = False
    ranked: tuple[str, ...] = ()
    """Documents that were found, best first; at most 20.  Of a loop: what its answer cites, then round after round."""
    measures: dict[str, float] = Field(default_factory=dict)
    """Of the ranking; empty where no gold documents are known."""
    cited: tuple[str, ...] = ()
    """Chunk ids."""
    rounds: tuple[RoundOfRow, ...] = ()
    calls: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0
    unread: int = 0
    """Replies that could not be read."""
    seconds: float = 0.0
    tries: int = 1
    stopped: str = ""
    degraded: tuple[str, ...] = ()
    error: str = ""
    kind: str = ""
    """Of the error: the class of the library's error, ``Died`` for a worker that died, else the exception's name."""

    @property
    def unanswered(self) -> bool:
        """No error, but no answer either."""
        return not self.error and self.choice is None and not self.short

    @property
    def tokens(self) -> int:
        return self.prompt_tokens + self.completion_tokens


KEPT = 20
"""Ranked documents that a row keeps."""
MEASURES = ("recall@5", "all_gold@5", "hit@1", "ndcg@10", "mrr")
"""Of the ranked documents, where the gold ones are known."""


def row_of(cell: Cell, question: GoldQuestion, answer: Answer, calls: Sequence[ModelCall]) -> Row:
    """A row from an answer.  ``calls``: the language model's, in order; empty for the extractive reasoner."""
    said = Said(choice=answer.choice, short="" if question.options else answer.short)
    ranked = tuple(loop_ranking(answer)[:KEPT])
    accepted = (question.answer, *question.aliases)
    open_ = bool(question.answer) and not question.options
    return Row(
        cell=cell.key,
        id=question.id,
        prediction=calls[-1].reply if calls else answer.choice or answer.short,
        choice=answer.choice,
        short=answer.short,
        long=" ".join(statement.text for statement in answer.statements),
        judged=bool(question.answer),
        strict=is_right(question, said),
        compatible=_compatible(question, answer, calls) if question.options else is_right(question, said),
        same=answer.short.strip() in accepted if open_ else None,
        exact=exact_match(answer.short, accepted) if open_ else None,
        f1=round(token_f1(answer.short, accepted), 6) if open_ else None,
        enough_evidence=answer.enough_evidence,
        ranked=ranked,
        measures=_measures(question, ranked),
        cited=tuple(chunk.id for chunk in answer.citations),
        rounds=_rounds(question, answer),
        calls=len(calls),
        prompt_tokens=sum(call.prompt_tokens for call in calls),
        completion_tokens=sum(call.completion_tokens for call in calls),
        unread=sum(not call.read for call in calls),
        seconds=round(answer.seconds, 6),
        stopped=answer.stopped,
        degraded=answer.degraded,
    )


def row_retrieved(cell: Cell, question: GoldQuestion, found: Sequence[Retrieval], seconds: float) -> Row:
    """A row of retrieval alone: the question's, or those of its own sub-questions in turn."""
    ranked = tuple(interleaved([documents(one.evidence) for one in found])[:KEPT])
    recall = recall_at(len(ranked), ranked, question.gold) if question.gold else None
    asked = tuple(
        Asked(text=one.query, evidence=tuple(item.chunk.id for item in one.evidence[:KEPT]), statements=())
        for one in found
    )
    chunks = tuple(dict.fromkeys(identity for one in asked for identity in one.evidence))
    return Row(
        cell=cell.key,
        id=question.id,
        judged=False,
        ranked=ranked,
        measures=_measures(question, ranked),
        rounds=(RoundOfRow(missing="", asked=asked, documents=ranked, chunks=chunks, gold_recall=recall),),
        seconds=round(seconds, 6),
        degraded=tuple(dict.fromkeys(name for one in found for name in one.degraded)),
    )


def error_row(cell: Cell, question: GoldQuestion, error: BaseException, seconds: float, tries: int) -> Row:
    """In the place of an answer; the sentence of the library's errors, of others also their name."""
    kind = type(error).__name__
    told = str(error) if isinstance(error, HybridIRError) else f"{kind}: {error}"
    return Row(
        cell=cell.key,
        id=question.id,
        judged=bool(question.answer),
        error=told[:2000] or kind,
        kind=kind,
        seconds=round(seconds, 6),
        tries=tries,
    )


def _compatible(question: GoldQuestion, answer: Answer, calls: Sequence[ModelCall]) -> bool:
    """By MIRAGE's reading where a reply with a letter was asked for; a reply in words (yes, no) has no such reading.

    Without any reply the answer's own letter stands, and none is wrong.
    """
    if not calls:
        return answer.choice == question.answer
    if wanted_of(question.asked()).name == "final_polar":
        return (answer.choice or "A") == question.answer
    return mirage_choice(calls[-1].reply) == question.answer


def _measures(question: GoldQuestion, ranked: Sequence[str]) -> dict[str, float]:
    return {name: round(measure(name, ranked, question.gold), 6) for name in MEASURES} if question.gold else {}


def _rounds(question: GoldQuestion, answer: Answer) -> tuple[RoundOfRow, ...]:
    made: list[RoundOfRow] = []
    found: list[str] = []
    for round_ in answer.rounds:
        evidence = [item for sub in round_.sub_answers for item in sub.retrieval.evidence]
        found += documents(evidence)
        asked = tuple(
            Asked(
                text=sub.sub_question.text,
                evidence=tuple(item.chunk.id for item in sub.retrieval.evidence),
                statements=tuple(statement.text for statement in sub.statements),
            )
            for sub in round_.sub_answers
        )
        recall = recall_at(len(found), found, question.gold) if question.gold else None
        made.append(
            RoundOfRow(
                missing=round_.missing,
                asked=asked,
                documents=tuple(documents(evidence)),
                chunks=tuple(dict.fromkeys(item.chunk.id for item in evidence)),
                gold_recall=recall,
            )
        )
    return tuple(made)


def table(rows: Sequence[Row]) -> pa.Table:
    """For Parquet: the fields as columns, per-round lists as lists of lists, the sub-questions as JSON."""

    def column(name: str, kind: pa.DataType) -> pa.Array:
        return pa.array([_plain(getattr(row, name)) for row in rows], kind)

    texts, ids = pa.string(), pa.list_(pa.string())
    kinds: dict[str, pa.DataType] = {
        **dict.fromkeys(("cell", "id", "prediction", "choice", "short", "long"), texts),
        **dict.fromkeys(("judged", "strict", "compatible", "same", "exact", "enough_evidence"), pa.bool_()),
        **dict.fromkeys(("ranked", "cited", "degraded"), ids),
        **dict.fromkeys(("calls", "prompt_tokens", "completion_tokens", "unread", "tries"), pa.int64()),
        **dict.fromkeys(("f1", "seconds"), pa.float64()),
        **dict.fromkeys(("stopped", "error", "kind"), texts),
    }
    columns = {name: column(name, kind) for name, kind in kinds.items()}
    for name in MEASURES:
        columns[name] = pa.array([row.measures.get(name) for row in rows], pa.float64())
    columns["round_documents"] = pa.array([[list(r.documents) for r in row.rounds] for row in rows], pa.list_(ids))
    columns["round_chunks"] = pa.array([[list(r.chunks) for r in row.rounds] for row in rows], pa.list_(ids))
    recalls = [[r.gold_recall for r in row.rounds] for row in rows]
    columns["gold_recall"] = pa.array(recalls, pa.list_(pa.float64()))
    asked = [json.dumps([r.model_dump(include={"missing", "asked"}) for r in row.rounds]) for row in rows]
    columns["sub_questions"] = pa.array(asked, texts)
    return pa.table(columns)


def _plain(value: Any) -> Any:
    return list(value) if isinstance(value, tuple) else value
