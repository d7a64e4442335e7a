"""MedHopQA (BioCreative IX): questions in, predictions out, as CSV files with the columns that its participants use.

The test questions come without answers; where a column ``Short Answer`` stands beside them, it is the right one.
"""

from __future__ import annotations

import csv
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from hybrid_ir.errors import BadInput, NotFound
from hybrid_ir.evaluation.sets.datasets import AnswerSet, nothing_usable
from hybrid_ir.evaluation.sets.questions import GoldQuestion

NAME, FILE = "medhopqa", "medhopqa/MedHopQA_Test_Dataset.csv"
ID, QUESTION, SHORT, LONG = COLUMNS = ("QIDX", "Question", "Short Answer", "Long Answer")


def is_one(dataset: str) -> bool:
    """Whether a grid's dataset is of this form."""
    return dataset == NAME or dataset.endswith(".csv")


def read(path: Path, name: str, *, strict: bool = False) -> AnswerSet:
    """The questions of a file.  Raises NotFound and BadInput with a sentence, with ``strict`` for the first bad row."""
    questions: dict[str, GoldQuestion] = {}
    problems: list[str] = []
    for number, row in _rows(path):
        identity, text = (row.get(ID) or "").strip(), (row.get(QUESTION) or "").strip()
        problem = (
            f"the column {ID} is empty"
            if not identity
            else "the question is empty"
            if not text
            else f"{ID} {identity} was given before"
            if identity in questions
            else ""
        )
        if problem:
            problems.append(f"{path}, row {number}: {problem}.")
            if strict:
                raise BadInput(problems[-1])
            continue
        questions[identity] = GoldQuestion(id=identity, question=text, answer=(row.get(SHORT) or "").strip(), hops=2)
    if not questions:
        raise nothing_usable(path, problems)
    return AnswerSet(name, tuple(questions.values()), problems=tuple(problems))


def write(path: Path, questions: Sequence[GoldQuestion], said: Mapping[str, tuple[str, str]]) -> None:
    """Predictions for submission, in the order of the questions.  ``said``: id -> (short, long); empty where none."""
    with path.open("w", encoding="utf-8", newline="") as stream:
        writer = csv.writer(stream)
        writer.writerow(COLUMNS)
        for question in questions:
            writer.writerow((question.id, question.question, *said.get(question.id, ("", ""))))


def _rows(path: Path) -> Iterator[tuple[int, dict[str, str | None]]]:
    """With the number of each row, from 1 below the header."""
    try:
        with path.open(encoding="utf-8-sig", newline="") as stream:
            reader = csv.DictReader(stream)
            missing = [column for column in (ID, QUESTION) if column not in (reader.fieldnames or ())]
            if missing:
                raise BadInput(f"{path}: no column {' and no column '.join(missing)} in its first line.")
            yield from enumerate(reader, start=1)
    except FileNotFoundError:
        raise NotFound(f"{path}: no such file.") from None
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise BadInput(f"{path}: cannot be read as CSV ({error}).") from error
