"""The prompts of the LLM reasoner: a file each, ours or the user's in its place.

A file has front matter, which is not sent (``version``, ``yields``), and two parts, each under a line of its own,
``# system`` and ``# user``.  ``{{name}}`` marks where a value goes.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from importlib.resources import files
from pathlib import Path

import yaml

from hybrid_ir.errors import BadInput
from hybrid_ir.llm.records import Message

NAMES = (
    "decompose",
    "gaps",
    "entities",
    "sub_answer",
    "final_options",
    "final_polar",
    "final_open",
    "recall",
    "recall_steps",
)

_MARKER = re.compile(r"\{\{([a-z_]+)\}\}")
_SPACED = re.compile(rf"((?:\n\n)?){_MARKER.pattern}")
_FRONT_MATTER = re.compile(r"\A---[ \t]*\n(.*?)^---[ \t]*\n", re.DOTALL | re.MULTILINE)
_PARTS = re.compile(r"^# (system|user)[ \t]*$", re.MULTILINE)


@dataclass(frozen=True)
class PromptFile:
    """One prompt."""

    name: str
    version: str
    system: str
    user: str

    @property
    def markers(self) -> frozenset[str]:
        """The values that it takes."""
        return frozenset(_MARKER.findall(self.system + self.user))

    @property
    def label(self) -> str:
        """Name and version, for traces; a file of the user's shows a hash as well."""
        return f"{self.name} {self.version}"

    @property
    def hash(self) -> str:
        return hashlib.sha256(f"{self.system}\0{self.user}".encode()).hexdigest()[:16]

    def fill(self, values: Mapping[str, str]) -> tuple[Message, Message]:
        """The messages.  One pass: a value that holds a marker does not become one.  An empty value takes the blank
        line before it along."""

        def value(match: re.Match[str]) -> str:
            return match[1] + values[match[2]] if values[match[2]] else ""

        return (
            Message(role="system", content=_SPACED.sub(value, self.system)),
            Message(role="user", content=_SPACED.sub(value, self.user)),
        )


def load_prompts(overrides: Mapping[str, str] | None = None) -> dict[str, PromptFile]:
    """All prompts by name; ``overrides`` maps names to files of the user's.

    Raises :class:`BadInput` for a name that is none of ours, a file that cannot be read, and one whose markers are
    not those of ours.
    """
    prompts = {name: _ours(name) for name in NAMES}
    for name, path in (overrides or {}).items():
        if name not in prompts:
            raise BadInput(f"reasoner.prompts: there is no prompt {name!r}; its names are {', '.join(NAMES)}.")
        try:
            text = Path(path).expanduser().read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise BadInput(f"reasoner.prompts.{name}: {path} cannot be read ({error}).") from error
        given = parse_prompt(name, text, path)
        for missing in sorted(prompts[name].markers - given.markers):
            raise BadInput(
                f"reasoner.prompts.{name}: {path} has no {{{{{missing}}}}}, and the model would not see that part."
            )
        for unknown in sorted(given.markers - prompts[name].markers):
            raise BadInput(
                f"reasoner.prompts.{name}: {path} has {{{{{unknown}}}}}, which nothing fills; this prompt takes "
                f"{', '.join(sorted(prompts[name].markers))}."
            )
        prompts[name] = PromptFile(name, f"{given.version} ({given.hash})", given.system, given.user)
    return prompts


def parse_prompt(name: str, text: str, path: str) -> PromptFile:
    """Take a file apart; ``path`` is for errors."""
    text = text.replace("\r\n", "\n").removeprefix("\ufeff")
    front = _FRONT_MATTER.match(text)
    try:
        facts = yaml.safe_load(front[1]) if front else None
    except yaml.YAMLError as error:
        raise BadInput(f"{path}: what stands between the lines --- is not YAML ({error}).") from error
    if facts is not None and not isinstance(facts, dict):
        raise BadInput(f"{path}: between the lines --- stands no list of name: value.")
    body = text[front.end() :] if front else text
    pieces = _PARTS.split(body)
    if [pieces[0].strip(), *pieces[1::2]] != ["", "system", "user"]:
        raise BadInput(f"{path}: a prompt has a line '# system' and, after it, a line '# user', each once.")
    return PromptFile(name, str((facts or {}).get("version", "0")), pieces[2].strip(), pieces[4].strip())


@lru_cache(maxsize=len(NAMES))
def _ours(name: str) -> PromptFile:
    text = (files("hybrid_ir.reasoning") / "prompts" / f"{name}.md").read_text(encoding="utf-8")
    return parse_prompt(name, text, f"{name}.md")
