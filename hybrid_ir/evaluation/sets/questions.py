"""Questions whose gold documents and answers are known."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from pydantic import Field, ValidationError

from hybrid_ir.errors import BadInput
from hybrid_ir.evaluation import json_lines
from hybrid_ir.records import Question, Record


class GoldQuestion(Record):
    """One line of a question file."""

    id: str
    question: str
    type: Literal["open", "choice", "yesno"] = "open"
    options: dict[str, str] = Field(default_factory=dict)
    answer: str
    """A letter where there are options, else a short text; empty: not known."""
    aliases: tuple[str, ...] = ()
    gold: tuple[str, ...] = ()
    """Ids of the documents that hold the facts needed."""
    hops: int = 1
    subject: str = ""
    """What a set sorts its questions by, where it does: a subject, a step of an examination."""
    steps: tuple[str, ...] = ()
    """Its own sub-questions, earlier answers filled in, where a set has them: a ceiling for any decomposition."""

    def asked(self) -> Question:
        return Question(text=self.question, options=self.options)


def read_questions(path: str | Path) -> list[GoldQuestion]:
    """A JSON Lines file; errors name the file and the line."""
    questions = []
    for number, row in json_lines.read(path):
        if isinstance(row, ValueError):
            raise BadInput(f"{path}, line {number}: {row}.")
        try:
            questions.append(GoldQuestion.model_validate(row))
        except ValidationError as error:
            first = error.errors()[0]
            raise BadInput(f"{path}, line {number}: {'.'.join(map(str, first['loc']))}: {first['msg']}.") from error
    return questions
