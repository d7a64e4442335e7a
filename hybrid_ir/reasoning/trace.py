"""A question's trace: a file of JSON lines, a head and then the loop's events.

Ids, hashes, numbers and the model's replies always stand in it.  Texts (of question, options, evidence, sub-questions
and answer) stand there where ``loop.trace_texts`` says so; else each is ``sha256:`` and its hash.  A reply may
repeat words of the question or the evidence.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, Literal, TypeVar

from pydantic import Field, ValidationError

from hybrid_ir.errors import BadInput
from hybrid_ir.reasoning.events import EVENT, Event, Finished, Wrote
from hybrid_ir.records import Filter, PathName, Question, Record
from hybrid_ir.settings import LoopSettings

HASHED = "sha256:"

_TEXTS = frozenset({"text", "title", "section", "query", "missing", "short", "mention", "entity", "source", "locator"})
"""Fields that hold what someone wrote, or where it lay."""

R = TypeVar("R", bound=Record)


class LLMSetup(Record):
    """What a language model's prompts depend on besides the state."""

    prompts: dict[str, str]
    """Name -> hash."""
    entities: Literal["with_sub_questions", "separate"]
    max_tokens: int


class TraceHead(Record):
    """The first line."""

    kind: Literal["trace"] = "trace"
    format: Literal[1] = 1
    version: str
    """Of Hybrid-IR."""
    started: str
    """Date and time, UTC."""
    build_id: str
    reasoner: str
    llm: LLMSetup | None = None
    """``None``: the extractive reasoner."""
    loop: LoopSettings
    paths: tuple[PathName, ...] | None = None
    filter: Filter | None = None
    texts: bool
    question: Question


class Trace(Record):
    """A trace that was read."""

    head: TraceHead
    events: tuple[Event, ...] = Field(default=())

    @property
    def finished(self) -> Finished | None:
        """The answer; None where the question ended without one."""
        return self.events[-1] if self.events and isinstance(self.events[-1], Finished) else None


def head_of(
    question: Question,
    build_id: str,
    reasoner: str,
    loop: LoopSettings,
    llm: LLMSetup | None = None,
    paths: tuple[PathName, ...] | None = None,
    filter: Filter | None = None,
) -> TraceHead:
    try:
        ours = version("hybrid-ir")
    except PackageNotFoundError:
        ours = "unknown"
    return TraceHead(
        version=ours,
        started=datetime.now(UTC).isoformat(timespec="seconds"),
        build_id=build_id,
        reasoner=reasoner,
        llm=llm,
        loop=loop,
        paths=paths,
        filter=filter,
        texts=loop.trace_texts,
        question=question if loop.trace_texts else without_texts(question),
    )


class TraceWriter:
    """Writes each event as it comes: a question that dies leaves what it had."""

    def __init__(self, head: TraceHead, path: Path) -> None:
        self._texts = head.texts
        self._file = path.open("w", encoding="utf-8")
        self._line(head)

    def add(self, event: Event) -> None:
        """All but the pieces of the answer: the reply has them."""
        if isinstance(event, Wrote):
            return
        self._line(event if self._texts else without_texts(event))

    def close(self) -> None:
        self._file.close()

    def _line(self, record: Record) -> None:
        self._file.write(record.model_dump_json() + "\n")
        self._file.flush()


@contextmanager
def written(head: TraceHead, path: str | Path) -> Iterator[TraceWriter]:
    """A writer that is closed at the end.  Raises BadInput where the file cannot be written."""
    try:
        writer = TraceWriter(head, Path(path))
    except OSError as error:
        raise BadInput(f"{path}: the trace cannot be written ({error.strerror or error}).") from error
    try:
        yield writer
    finally:
        writer.close()


def read_trace(path: str | Path) -> Trace:
    """Read a trace back.  Raises BadInput that names the line at fault."""
    try:
        # Not splitlines(): a reply may hold other separators, which JSON writes as they are.
        lines = [line for line in Path(path).read_text(encoding="utf-8").split("\n") if line]
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or error
        raise BadInput(f"{path}: cannot be read as a trace ({reason}).") from error
    if not lines:
        raise BadInput(f"{path}: is empty; a trace is written by hybrid-ir ask --trace FILE.")
    number = 1
    try:
        head = TraceHead.model_validate_json(lines[0])
        events = []
        for number, line in enumerate(lines[1:], start=2):  # noqa: B007 -- the error names it
            events.append(EVENT.validate_json(line))
    except ValidationError as error:
        first = error.errors()[0]
        said = ": ".join(filter(None, (".".join(map(str, first["loc"])), first["msg"])))
        raise BadInput(f"{path}: line {number} is no line of a trace ({said}).") from error
    return Trace(head=head, events=tuple(events))


def text_hash(text: str) -> str:
    """What stands in the place of a text; of one that is empty, or a hash already, itself."""
    if not text or text.startswith(HASHED):
        return text
    return HASHED + hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:32]


def without_texts(record: R) -> R:
    """The same record with a hash in the place of each text; doing it twice changes nothing."""
    return type(record).model_validate(_hidden(record.model_dump()))


def _hidden(value: Any, key: str = "", beside: Any = ()) -> Any:
    if isinstance(value, dict):
        inside = "options" if key == "options" else ""
        return {name: _hidden(item, inside or name, value) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [_hidden(item, key, beside) for item in value]
    told = key in _TEXTS or key in ("options", "entities") or (key == "reason" and "entities" in beside)
    return text_hash(value) if told and isinstance(value, str) else value
