"""What the prompts ask a model to write, as JSON schemas, and how what it wrote is read.

Each ``read_`` returns None where the reply cannot be read: it is then asked for once more.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from hybrid_ir.reasoning.json_object import json_object
from hybrid_ir.reasoning.parsing import read_choice
from hybrid_ir.records import Statement, SubQuestion
from hybrid_ir.text import sentence_spans

VERDICTS = {"Y": "yes", "N": "no", "M": "maybe"}
MAX_ENTITIES = 8
"""Of one sub-question."""
MAX_CHARS = 1000
"""A longer sub-question, name or short answer is a model that ran away."""

_STRING: dict[str, Any] = {"type": "string"}
_STRINGS: dict[str, Any] = {"type": "array", "items": _STRING, "maxItems": MAX_ENTITIES}
_BOOLEAN: dict[str, Any] = {"type": "boolean"}
_LISTED = re.compile(r"\s*(?:[-*•]|\(?\d{1,2}[.):])\s*(.+\?)[\s*]*")
_MARKS = re.compile(r"\s*[\[(]((?:E\d{1,3})(?:\s*[,;]\s*E\d{1,3})*)[\])]")


def object_of(**properties: dict[str, Any]) -> dict[str, Any]:
    """The schema of an object that has all of these and nothing else."""
    return {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }


def sub_questions_schema(limit: int, later: bool, entities: bool) -> dict[str, Any]:
    """``later``: with what is missing; ``entities``: with those of each sub-question."""
    item = object_of(question=_STRING, **({"entities": _STRINGS} if entities else {}))
    listed = {"type": "array", "items": item, "maxItems": limit}
    return object_of(**({"missing": _STRING} if later else {}), sub_questions=listed)


ENTITIES_SCHEMA = object_of(entities=_STRINGS)


def statements_schema(labels: Sequence[str], most: int, **verdict: dict[str, Any]) -> dict[str, Any]:
    """Statements that cite ``labels``, whether they suffice, and the verdict's field, last."""
    label = {"type": "string", "enum": list(labels)} if labels else _STRING
    statement = object_of(text=_STRING, citations={"type": "array", "items": label, "maxItems": max(1, len(labels))})
    listed = {"type": "array", "items": statement, "maxItems": most}
    return object_of(statements=listed, enough_evidence=_BOOLEAN, **verdict)


def words_schema(words: Sequence[str]) -> dict[str, Any]:
    return {"type": "string", "enum": list(words)}


SHORT_SCHEMA = _STRING


@dataclass(frozen=True)
class Wanted:
    """Sub-questions, and what they are to bring."""

    sub_questions: tuple[SubQuestion, ...]
    missing: str


@dataclass(frozen=True)
class Said:
    """Statements with the labels that they cite, and the verdict where there is one."""

    statements: tuple[Statement, ...]
    enough: bool
    choice: str | None = None
    short: str = ""


def read_sub_questions(reply: str, limit: int) -> Wanted | None:
    """A list of questions outside of JSON is read too."""
    found = json_object(reply, {"sub_questions", "missing"})
    if found is None:
        listed = [match[1].strip(" *") for line in reply.splitlines() if (match := _LISTED.fullmatch(line))]
        questions = [SubQuestion(text=text) for text in listed if len(text) <= MAX_CHARS]
        return Wanted(tuple(questions[:limit]), "") if questions else None
    items = found.get("sub_questions")
    if not isinstance(items, list):
        return None
    questions = []
    for item in items:
        text, names = (item, []) if not isinstance(item, dict) else (item.get("question"), item.get("entities"))
        text = _line(text)
        if text:
            questions.append(SubQuestion(text=text, entities=_names(names)))
    missing = _line(found.get("missing"))
    if items and not questions:
        return None
    return Wanted(tuple(questions[:limit]), missing)


def read_entities(reply: str) -> tuple[str, ...] | None:
    found = json_object(reply, {"entities"})
    names = found.get("entities") if found else None
    return _names(names) if isinstance(names, list) else None


def read_statements(reply: str) -> Said | None:
    """Of a reply outside of JSON the sentences that cite a label (``[E1]``) are read."""
    found = json_object(reply, {"statements"})
    if found is not None and isinstance(found.get("statements"), list):
        return _said(found)
    statements = _cited_sentences(reply)
    return Said(statements, enough=True) if statements else None


def read_option(reply: str, options: Mapping[str, str]) -> Said | None:
    """The letter, with the statements where the reply has them; a letter alone is a reply."""
    found = json_object(reply, {"answer_choice", "answer"})
    said = _said(found) if found else Said(_cited_sentences(reply), enough=True)
    verdict = found.get("answer_choice", found.get("answer")) if found else None
    letter = read_choice(verdict if isinstance(verdict, str) else reply, options)
    if letter is None:
        return None
    return Said(said.statements, said.enough and bool(said.statements), letter, options[letter])


def read_open(reply: str) -> Said | None:
    found = json_object(reply, {"statements", "short"})
    if found is not None and (isinstance(found.get("statements"), list) or _line(found.get("short"))):
        said = _said(found)
        return Said(said.statements, said.enough, short=_line(found.get("short")))
    statements = _cited_sentences(reply)
    return Said(statements, enough=True, short=statements[0].text) if statements else None


def _said(found: Mapping[str, Any]) -> Said:
    items = found.get("statements")
    statements: list[Statement] = []
    for item in items if isinstance(items, list) else []:
        if not isinstance(item, dict) or not isinstance(item.get("text"), str):
            continue
        cited = item.get("citations")
        cited = [cited] if isinstance(cited, str) else cited if isinstance(cited, list) else []
        labels = tuple(dict.fromkeys(str(one).strip("[]() ") for one in cited if isinstance(one, str | int)))
        text = _MARKS.sub("", item["text"]).strip()
        # Each sentence stands, and is checked, for itself; one that was said already is a model that repeats itself.
        for start, end in sentence_spans(text):
            made = Statement(text=text[start:end], citations=labels)
            if made not in statements:
                statements.append(made)
    enough = found.get("enough_evidence", bool(statements))
    return Said(tuple(statements), enough is True or (isinstance(enough, str) and enough.casefold() == "true"))


def _cited_sentences(reply: str) -> tuple[Statement, ...]:
    statements: list[Statement] = []
    text = re.sub(r"([.?!])(\s*[\[(]E\d[^\])]*[\])])", r"\2\1", reply)  # "… CYP2C9. [E1]" -> "… CYP2C9 [E1]."
    for start, end in sentence_spans(text):
        sentence = text[start:end]
        labels = tuple(dict.fromkeys(label for match in _MARKS.finditer(sentence) for label in _split(match[1])))
        plain = " ".join(_MARKS.sub("", sentence).split())
        if labels and plain:
            statements.append(Statement(text=plain, citations=labels))
    return tuple(dict.fromkeys(statements))


def _split(labels: str) -> list[str]:
    return [label.strip() for label in re.split(r"[,;]", labels)]


def _line(value: object) -> str:
    """A string on one line; empty where it is none, or far too long."""
    text = " ".join(value.split()) if isinstance(value, str) else ""
    return text if len(text) <= MAX_CHARS else ""


def _names(value: object) -> tuple[str, ...]:
    names = [_line(name) for name in value] if isinstance(value, list) else []
    return tuple(dict.fromkeys(name for name in names if name))[:MAX_ENTITIES]
