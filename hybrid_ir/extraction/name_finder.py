"""Which entities of a graph a text names: its longest spans that are names of the graph."""

from __future__ import annotations

import re
from collections.abc import Sequence

import pyarrow as pa
import pyarrow.compute as pc

from hybrid_ir.extraction.names import canonical
from hybrid_ir.extraction.words import GENERIC, NOT_IN_QUESTIONS

MAX_WORDS = 10
_WORD = re.compile(r"[^\W_](?:[\w'’.&/+*-]*[^\W_]|)[+*]?|[^\W_]")
_NOT_ALONE = frozenset(
    """a an the of in on at by to for from with and or but is are was were be been do does did has have had who whom
    whose which what when where why how that this these those it its he she they his her their there as than not no
    one two first last name""".split()
)
"""Words that are names in some graph and mean nothing in a question."""


class NameFinder:
    """Spans of at most ``MAX_WORDS`` words, compared in the graph's form of a name, case ignored."""

    def __init__(self, names: pa.Array) -> None:
        """``names``: distinct, in any order; kept in Arrow, so a million of them are some 30 MB."""
        self._names = names
        self._folded = pc.utf8_lower(names)

    def find(self, texts: Sequence[str]) -> list[tuple[str, ...]]:
        """The names in each text, in order of appearance: the longest first where spans overlap."""
        spans = [_spans(text) for text in texts]
        wanted = pa.array(sorted({form for found in spans for _, _, form in found}), pa.string())
        rows = pc.indices_nonzero(pc.is_in(self._folded, value_set=wanted))
        known: dict[str, str] = {}
        for folded, name in zip(self._folded.take(rows).to_pylist(), self._names.take(rows).to_pylist(), strict=True):
            known.setdefault(folded, name)
        return [_longest(found, known) for found in spans]


def _spans(text: str) -> list[tuple[int, int, str]]:
    """(first word, word after the last, folded canonical form), without those that begin or end with a stop word."""
    words = list(_WORD.finditer(text))
    spans = []
    for first, begin in enumerate(words):
        if begin.group().lower() in _NOT_ALONE:
            continue
        for last in range(first, min(first + MAX_WORDS, len(words))):
            end = words[last].group().lower()
            if end in _NOT_ALONE or (first == last and end in GENERIC | NOT_IN_QUESTIONS):
                continue
            form = canonical(text[begin.start() : words[last].end()]) or text[begin.start() : words[last].end()]
            spans.append((first, last + 1, form.lower()))
    return spans


def _longest(spans: Sequence[tuple[int, int, str]], known: dict[str, str]) -> tuple[str, ...]:
    taken: set[int] = set()
    found: list[tuple[int, str]] = []
    for first, end, form in sorted(spans, key=lambda span: (span[0] - span[1], span[0])):
        if form in known and not taken & set(range(first, end)):
            taken |= set(range(first, end))
            found.append((first, known[form]))
    return tuple(dict.fromkeys(name for _, name in sorted(found)))
