"""What a language model is asked about a passage.

The instructions and the one-shot example come first and are the same in every call; the passage is
fenced, and nothing in it can close the fence or begin a turn of the chat.
"""

from __future__ import annotations

import hashlib
import re
from importlib import resources
from pathlib import Path
from typing import Any, Literal

import yaml
from pydantic import ValidationError

from hybrid_ir.errors import BadInput
from hybrid_ir.extraction.llm_reply import dumped
from hybrid_ir.llm.records import Message, Prompt
from hybrid_ir.reasoning.fence import clean
from hybrid_ir.records import Chunk, Record

MOST_ENTITIES = 100
MOST_TRIPLES = 100
"""Where the backend keeps to a schema, a model that repeats itself ends here and not at ``max_tokens``."""

_NAMES = {"type": "array", "items": {"type": "string"}, "maxItems": MOST_ENTITIES}
_TRIPLE = {"type": "array", "items": {"type": "string"}, "minItems": 3, "maxItems": 3}
_TRIPLES = {"type": "array", "items": _TRIPLE, "maxItems": MOST_TRIPLES}

Step = Literal["entities", "triples", "both"]


def _object(**properties: Any) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }


SCHEMAS: dict[Step, dict[str, Any]] = {
    "entities": _object(entities=_NAMES),
    "triples": _object(triples=_TRIPLES),
    "both": _object(entities=_NAMES, triples=_TRIPLES),
}

_BORDER = re.compile(r"<(?=\s*/?\s*passage\b)", re.IGNORECASE)


class _Passage(Record):
    title: str = ""
    text: str


class _Turn(Record):
    ask: str
    reply: str
    """The example's, which shows the form."""


class PromptFile(Record):
    """``prompts/*.yaml``; either ``entities`` and ``triples``, or ``both``."""

    version: str
    system: str
    example: _Passage
    entities: _Turn | None = None
    triples: _Turn | None = None
    both: _Turn | None = None


class Prompts:
    """The calls about a passage, for one setting of ``calls``."""

    def __init__(self, calls: Literal["two", "one"], replaced: dict[str, str] | None = None) -> None:
        """``replaced``: name of a prompt of ours -> a file in its place.  Raises BadInput, naming the file."""
        name = f"openie_{calls}"
        unknown = sorted(set(replaced or {}) - {"openie_two", "openie_one"})
        if unknown:
            raise BadInput(
                f"build.extractor.prompts: {unknown[0]!r} is none of ours; ours are openie_two and openie_one."
            )
        self.first: Step = "entities" if calls == "two" else "both"
        text, where = _read(name, (replaced or {}).get(name))
        self._file = _parse(text, where, calls)
        self.fingerprint = {
            "prompt": f"{name} {self._file.version} {hashlib.sha256(text.encode()).hexdigest()[:16]}",
            "schema": hashlib.sha256(dumped(SCHEMAS).encode()).hexdigest()[:16],
        }
        self._prefix = self._shown()

    def ask(self, chunk: Chunk) -> Prompt:
        """The first call, or the only one."""
        return self._prompt(self.first, self._user(self._turn(self.first).ask, chunk))

    def ask_triples(self, chunk: Chunk, names: tuple[str, ...]) -> Prompt:
        """The second call: the first one, the entities as the model's reply, and what comes next."""
        first = self._user(self._turn("entities").ask, chunk)
        said = Message(role="assistant", content=dumped({"entities": list(names)}))
        return self._prompt("triples", first, said, Message(role="user", content=self._turn("triples").ask))

    def _prompt(self, step: Step, *turns: Message) -> Prompt:
        return Prompt(messages=(*self._prefix, *turns), json_schema=SCHEMAS[step])

    def _shown(self) -> tuple[Message, ...]:
        file, turns = self._file, [self._turn(self.first)]
        if self.first == "entities":
            turns.append(self._turn("triples"))
        messages = [Message(role="system", content=file.system)]
        for number, turn in enumerate(turns):
            asked = f"{_fenced(file.example.title, file.example.text)}\n\n{turn.ask}" if number == 0 else turn.ask
            messages += [Message(role="user", content=asked), Message(role="assistant", content=turn.reply)]
        return tuple(messages)

    def _turn(self, step: Step) -> _Turn:
        turn: _Turn = getattr(self._file, step)
        return turn

    @staticmethod
    def _user(ask: str, chunk: Chunk) -> Message:
        title = " - ".join(part for part in (chunk.title, chunk.section) if part)
        return Message(role="user", content=f"{_fenced(title, chunk.text)}\n\n{ask}")


def again(prompt: Prompt, reason: str, attempt: int, seed: int | None) -> Prompt:
    """The same call once more: another seed, and at the end of it why the reply was of no use.

    Without sampling (temperature 0) a seed alone would bring the same reply.
    """
    last = prompt.messages[-1]
    reminder = f"{last.content}\n\nA reply of yours could not be used: {reason} Reply with the JSON object alone."
    messages = (*prompt.messages[:-1], last.model_copy(update={"content": reminder}))
    return prompt.model_copy(update={"messages": messages, "seed": (seed or 0) + attempt})


def _fenced(title: str, text: str) -> str:
    inside = _BORDER.sub("< ", clean(f"{title}\n{text}" if title else text))
    return f"<passage>\n{inside}\n</passage>"


def _read(name: str, path: str | None) -> tuple[str, str]:
    """(text, where it stands)."""
    try:
        if path is not None:
            return Path(path).read_text(encoding="utf-8"), path
        file = resources.files("hybrid_ir.extraction") / "prompts" / f"{name}.yaml"
        return file.read_text(encoding="utf-8"), f"prompts/{name}.yaml"
    except (OSError, UnicodeDecodeError) as error:
        raise BadInput(f"build.extractor.prompts.{name}: {path or name} is not readable ({error}).") from error


def _parse(text: str, where: str, calls: str) -> PromptFile:
    try:
        file = PromptFile.model_validate(yaml.safe_load(text))
    except yaml.YAMLError as error:
        raise BadInput(f"{where}: not a readable YAML file ({error}).") from error
    except ValidationError as error:
        first = error.errors()[0]
        raise BadInput(f"{where}: {'.'.join(map(str, first['loc'])) or 'the file'}: {first['msg']}.") from error
    needed: tuple[Step, ...] = ("entities", "triples") if calls == "two" else ("both",)
    for step in needed:
        if getattr(file, step) is None:
            raise BadInput(f"{where}: {step} is missing; a prompt for `calls: {calls}` needs {' and '.join(needed)}.")
    return file
