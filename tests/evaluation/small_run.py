"""A run of four questions by two cells, and what asks them without an index."""

from __future__ import annotations

from pathlib import Path

from hybrid_ir.evaluation.metrics import measure
from hybrid_ir.evaluation.run import run as runs
from hybrid_ir.evaluation.run.grid import Cell, Grid, Planned
from hybrid_ir.evaluation.run.rows import MEASURES, Asked, RoundOfRow, Row
from hybrid_ir.evaluation.run.run import Run
from hybrid_ir.evaluation.sets import question_sets
from hybrid_ir.evaluation.sets.datasets import AnswerSet
from hybrid_ir.evaluation.sets.questions import GoldQuestion
from hybrid_ir.settings import Settings

EVIL = '<script>alert(1)</script> "quoted" & `code` | pipe'
XY = {"A": "x", "B": "y"}
QUESTIONS = (
    GoldQuestion(
        id="q1",
        question=f"What is {EVIL}?",
        type="choice",
        options={"A": "x", "B": EVIL},
        answer="B",
        gold=("d1", "d2"),
        subject="anatomy",
    ),
    GoldQuestion(id="q2", question="What is two?", type="choice", options=XY, answer="A", gold=("d3",), subject="eyes"),
    GoldQuestion(id="q3", question="What is three?", type="open", answer="nerve", gold=("d4",)),
    GoldQuestion(id="q4", question="What is four?", type="choice", options=XY, answer="A"),
)


def small_run(methods=("hybrid_ir", "medrag"), url="", **grid) -> Run:
    """Of ``QUESTIONS``, by each method once."""
    planned = [Planned(cell=Cell(method=m, model="default", dataset="small"), settings=Settings()) for m in methods]
    found = AnswerSet("small", QUESTIONS)
    return Run(
        started=runs.now(),
        grid=Grid(name="small", methods=methods, datasets=["small"], **grid),
        planned=tuple(planned),
        url=url,
        build_id="b1",
        fingerprints={},
        beside=str(Path.cwd()),
        datasets={"small": question_sets.record("small", found)},
        versions=runs.versions(),
        questions={"small": found.questions},
    )


def row(planned: Planned, question: GoldQuestion, right: bool = True, documents=(), **more) -> Row:
    """As if the loop had said it, after one round that found ``documents``."""
    wrong = next((letter for letter in question.options if letter != question.answer), None)
    choice = (question.answer if right else wrong) if question.options else None
    recall = len(set(documents) & set(question.gold)) / len(question.gold) if question.gold else None
    ranked = tuple(documents)
    made = {
        "measures": {name: measure(name, ranked, question.gold) for name in MEASURES} if question.gold else {},
        "choice": choice,
        "short": "" if question.options else question.answer if right else "bone",
        "strict": right,
        "compatible": right,
        "ranked": ranked,
        "rounds": (
            RoundOfRow(
                missing="",
                asked=(Asked(text=question.question, evidence=(), statements=(EVIL,)),),
                documents=tuple(documents),
                chunks=(),
                gold_recall=recall,
            ),
        ),
        "calls": 2,
        "prompt_tokens": 90,
        "completion_tokens": 10,
        "seconds": 0.5,
        "stopped": "rounds",
    }
    return Row(cell=planned.cell.key, id=question.id, **{**made, **more})
