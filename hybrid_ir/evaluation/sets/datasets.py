"""Public sets of questions with known answers, in MIRAGE's form: plain functions from a data folder.

Every loader takes the folder that ``HYBRID_IR_DATA`` names.  A file has one question a line:
``id``, ``question``, ``options`` (letter -> text), ``answer`` (a letter), and where the source
has them ``PMID`` (gold documents), ``subject`` or ``step``.
"""

from __future__ import annotations

import json
from collections.abc import Container, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from hybrid_ir.errors import BadInput, NotFound
from hybrid_ir.evaluation import json_lines
from hybrid_ir.evaluation.answers import folded
from hybrid_ir.evaluation.sets.questions import GoldQuestion

POLAR = {"A": "yes", "B": "no", "C": "maybe"}
FILES = {
    "medqa": "mirage/medqa.jsonl",
    "medmcqa": "mirage/medmcqa.jsonl",
    "mmlu": "mirage/mmlu.jsonl",
    "pubmedqa": "mirage/pubmedqa.jsonl",
    "bioasq": "mirage/bioasq.jsonl",
}
"""MedQA-US, MedMCQA, MMLU-Med, PubMedQA* (the test half, no abstract given) and BioASQ-Y/N."""


@dataclass(frozen=True)
class AnswerSet:
    """Questions, and what a reader of scores must know of them."""

    name: str
    questions: tuple[GoldQuestion, ...]
    repeats: tuple[tuple[str, str], ...] = ()
    """(id of a question that repeats an earlier one word by word, id of that one): MMLU-Med has 78.

    Kept for comparison with MIRAGE, which counts them; left out by :meth:`distinct`, for statistics.
    """
    equal_options: tuple[str, ...] = ()
    """Ids of questions with two options of the same text: MedMCQA has 21.  See ``answers.right_choice``."""
    problems: tuple[str, ...] = ()
    """Lines that could not be used, each a sentence; their questions are not among ``questions``."""

    def distinct(self) -> AnswerSet:
        """Without the repeats."""
        gone = {repeat for repeat, _ in self.repeats}
        return replace(self, questions=tuple(q for q in self.questions if q.id not in gone), repeats=())

    def with_options(self) -> AnswerSet:
        """Without open questions, which a letter cannot answer; BadInput where nothing is left."""
        chosen = tuple(q for q in self.questions if q.options)
        if not chosen:
            raise BadInput(f"{self.name} has open questions alone; only answers to questions with options are scored.")
        if len(chosen) == len(self.questions):
            return self
        said = f"Left out: questions without options ({len(self.questions) - len(chosen)})."
        return replace(self, questions=chosen, problems=(*self.problems, said))

    def limited(self, questions: int | None) -> AnswerSet:
        """``questions`` of them, evenly spread over the set, so that a part has every subject."""
        if questions is None or questions >= len(self.questions):
            return self
        places = [number * len(self.questions) // questions for number in range(questions)]
        return replace(self, questions=tuple(self.questions[place] for place in places))

    def summary(self) -> str:
        """A line on what is unusual."""
        said = [f"{len(self.questions)} questions"]
        for count, what in (
            (len(self.repeats), "repeat an earlier one word by word"),
            (len(self.equal_options), "have two equal options"),
            (len(self.problems), "lines could not be used"),
        ):
            if count:
                said.append(f"{count} {what}")
        return f"{self.name}: {', '.join(said)}."


def load(name: str, data: str | Path, *, strict: bool = False) -> AnswerSet:
    """A set by its name, or a file of the same form by its path.

    Raises NotFound where the file is not there, BadInput for an unknown name and an empty file;
    with ``strict`` for the first line that cannot be used, which otherwise stands in ``problems``.
    """
    path = Path(data) / FILES[name] if name in FILES else Path(name)
    if name not in FILES and path.suffix != ".jsonl":
        raise BadInput(
            f"There is no set {name!r}; the sets are {', '.join(FILES)}, or name a file that ends in .jsonl."
        )
    return read(path, name if name in FILES else path.stem, strict=strict)


def read(path: Path, name: str, *, strict: bool = False) -> AnswerSet:
    """One file of JSON Lines; see :func:`load`."""
    return _read(((f"{path}, line {number}", row) for number, row in json_lines.read(path)), path, name, strict)


def read_benchmark(path: Path, name: str, *, strict: bool = False) -> AnswerSet:
    """A set out of MIRAGE's ``benchmark.json``: name -> id -> question, options, answer, perhaps PMID."""
    try:
        held = json.loads(path.read_text(encoding="utf-8-sig"))
    except FileNotFoundError:
        raise NotFound(f"{path}: no such file.") from None
    except (OSError, ValueError, RecursionError) as error:
        raise BadInput(f"{path}: cannot be read as JSON ({error}).") from error
    if not isinstance(held, dict) or not all(isinstance(one, dict) for one in held.values()):
        raise BadInput(f"{path}: expected MIRAGE's form, an object of sets, each with its questions by id.")
    if name not in held:
        raise BadInput(f"{path} has no set {name!r}; it has {', '.join(held) or 'none'}: name one behind a #.")
    rows = (
        (f"{path}, {name}, question {i}", {"id": i, **row} if isinstance(row, dict) else row)
        for i, row in held[name].items()
    )
    return _read(rows, path, name, strict)


def _read(rows: Iterable[tuple[str, Any]], path: Path, name: str, strict: bool) -> AnswerSet:
    """From (where it stands, the row)."""
    questions: dict[str, GoldQuestion] = {}
    first: dict[tuple[str, ...], str] = {}
    repeats: list[tuple[str, str]] = []
    equal: list[str] = []
    problems: list[str] = []
    for where, row in rows:
        problem = _problem(row, questions)
        if problem:
            problems.append(f"{where}: {problem}.")
            if strict:
                raise BadInput(problems[-1])
            continue
        question = _question(row)
        questions[question.id] = question
        key = (folded(question.question), *(folded(text) for text in question.options.values()), question.answer)
        if first.setdefault(key, question.id) != question.id:
            repeats.append((question.id, first[key]))
        if len({folded(text) for text in question.options.values()}) < len(question.options):
            equal.append(question.id)
    if not questions:
        raise nothing_usable(path, problems)
    return AnswerSet(name, tuple(questions.values()), tuple(repeats), tuple(equal), tuple(problems))


def pubmedqa_pairs(data: str | Path, split: str) -> Iterator[tuple[GoldQuestion, str]]:
    """PubMedQA's questions with their own abstracts, which lack the conclusion (``pubmedqa/``).

    ``split``: ``test``, the official 500, or ``cv``, the other 500, for whatever is fitted.
    """
    folder = Path(data) / "pubmedqa"
    texts = {row["id"]: row["text"] for _, row in json_lines.read(folder / "corpus.jsonl")}
    letters = {text: letter for letter, text in POLAR.items()}
    for number, row in json_lines.read(folder / "questions.jsonl"):
        try:
            if row["split"] == split:
                question = GoldQuestion(
                    id=row["id"],
                    question=row["question"],
                    type="yesno",
                    options=POLAR,
                    answer=letters[row["answer"]],
                    gold=(row["id"],),
                )
                yield question, texts[row["id"]]
        except (KeyError, TypeError, ValueError) as error:
            raise BadInput(f"{folder}/questions.jsonl, line {number}: not in its usual form ({error!r}).") from error


def nothing_usable(path: str | Path, problems: Sequence[str]) -> BadInput:
    """For a file without a single question; the first problem says why."""
    why = f" ({problems[0].rstrip('.')})" if problems else ""
    return BadInput(f"{path}: no question that can be used{why}.")


def _problem(row: Any, before: Container[str]) -> str:
    """What is wrong with a line; empty where nothing is.  ``before``: the ids of the lines above."""
    if isinstance(row, ValueError):
        return str(row)
    if not isinstance(row, dict):
        return f"a JSON object is wanted, this is a {type(row).__name__}"
    for field, kind in (("id", (str, int)), ("question", str), ("options", dict), ("answer", str)):
        if field not in row:
            return f"the field {field!r} is missing"
        if not isinstance(row[field], kind):
            return f"{field!r} is a {type(row[field]).__name__}"
    if not row["question"].strip():
        return "the question is empty"
    if len(row["options"]) < 2 or not all(isinstance(text, str) for text in row["options"].values()):
        return "'options' must hold two texts or more, each by its letter"
    if row["answer"] not in row["options"]:
        return f"the answer {row['answer']!r} is not among the options {', '.join(row['options'])}"
    return f"id {str(row['id'])!r} was given before" if str(row["id"]) in before else ""


def _question(row: dict[str, Any]) -> GoldQuestion:
    polar = {folded(text) for text in row["options"].values()} <= {"yes", "no", "maybe"}
    documents = row.get("PMID", ())
    return GoldQuestion(
        id=str(row["id"]),
        question=row["question"],
        type="yesno" if polar else "choice",
        options=row["options"],
        answer=row["answer"],
        gold=tuple(str(pmid) for pmid in (documents if isinstance(documents, list | tuple) else [documents])),
        subject=str(row.get("subject") or row.get("step") or ""),
    )
