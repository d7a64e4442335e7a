"""Questions whose gold documents and answers are known."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Literal

from pydantic import Field, ValidationError

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


def read_questions(path: str | Path) -> tuple[list[GoldQuestion], list[str]]:
    """(The questions of a JSON Lines file, what could not be used: each a sentence with file and line).

    Raises what cannot be read at all: NotFound, BadInput.
    """
    questions: dict[str, GoldQuestion] = {}
    problems: list[str] = []
    for number, row in json_lines.read(path):
        found = _question(row)
        if isinstance(found, GoldQuestion) and found.id in questions:
            found = f"id {found.id!r} was given before"
        if isinstance(found, GoldQuestion):
            questions[found.id] = found
        else:
            problems.append(f"{path}, line {number}: {found}.")
    return list(questions.values()), problems


def _question(row: Any) -> GoldQuestion | str:
    """Or what is wrong with the line."""
    if isinstance(row, ValueError):
        return str(row)
    if not isinstance(row, dict):
        return f"a JSON object is wanted, this is a {type(row).__name__}"
    try:
        question = GoldQuestion.model_validate(row)
    except ValidationError as error:
        first = error.errors()[0]
        field = ".".join(map(str, first["loc"]))
        if first["type"] == "missing":
            return f"the field {field!r} is missing"
        return f"the field {field!r} cannot be used ({first['msg'][:1].lower()}{first['msg'][1:]})"
    if not question.question.strip():
        return "the question is empty"
    if question.options and question.answer and question.answer not in question.options:
        return f"the answer {question.answer!r} is not among the options {', '.join(question.options)}"
    return question
