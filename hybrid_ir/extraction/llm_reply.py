"""What a language model replied about a passage: entities and triples, from whatever form they have.

A reply that says nothing readable raises :class:`Unreadable`, and so does one without a single
triple that does not say itself that there are none.  Of a reply that was cut, what is whole is
kept, and ``whole`` is False.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from itertools import chain
from typing import Any, NamedTuple

from hybrid_ir.llm.json_text import CutDict, CutList, values

READER_VERSION = "1"
"""Raise it whenever the same reply would be read otherwise."""

Fact = tuple[str, str, str]
"""Head, relation, tail."""

_THINKING = re.compile(r"\A.*</think(?:ing)?>|<think(?:ing)?>.*", re.S | re.I)
_FENCE = re.compile(r"```[\w-]*")
_KEY = re.compile(r"[^a-z0-9]")
_ENTITIES = frozenset(
    "entities entity namedentities entitylist extractedentities names entitynames medicalentities".split()
)
_TRIPLES = frozenset(
    """triples triple triplets triplet facts relations relationships relationtriples knowledgegraph rdftriples
    extractedtriples statements edges tuples spo""".split()
)
_HEADS = ("head", "subject", "source", "h", "s", "from", "entity1", "headentity", "subj", "e1", "node1")
_RELATIONS = ("relation", "predicate", "relationship", "type", "r", "p", "verb", "label", "relationtype", "edge", "rel")
_TAILS = ("tail", "object", "target", "t", "o", "to", "entity2", "tailentity", "obj", "e2", "node2")
_NAME = ("name", "entity", "text", "mention", "value", "label", "id")
_SEPARATED = re.compile(r"\s*(?:\||->|→|\t)+\s*")
_MOST_NAME = 300
"""A longer "name" is a text."""


class Unreadable(Exception):
    """Why a reply is of no use; one sentence."""


class Found(NamedTuple):
    """What a reply holds, in its order, each once; ``whole``: it was not cut and nothing in it was broken."""

    entities: tuple[str, ...]
    triples: tuple[Fact, ...]
    whole: bool


def read_entities(text: str) -> Found:
    """Of a reply to the question for entities."""
    held = _held(text)
    for value in held:
        inside = _under(value, _ENTITIES)
        if inside is not None:
            return _entities(inside, whole=not _cut(value), text=text)
    if len(held) == 1 and isinstance(held[0], dict) and held[0]:
        only = held[0]
        if len(only) == 1 and isinstance(next(iter(only.values())), list):
            return _entities(next(iter(only.values())), whole=not _cut(only), text=text, named=False)
        if all(isinstance(some, list) and all(isinstance(x, str) for x in some) for some in only.values()):
            joined = list(chain.from_iterable(only.values()))  # by type: {"drugs": [...], "diseases": [...]}
            return _entities(joined, whole=not _cut(only), text=text, named=False)
    if held and isinstance(held[0], list):
        return _entities(held[0], whole=not _cut(held[0]), text=text, named=_alone(text))
    raise Unreadable(_no_json(text, held, "entities"))


def read_triples(text: str) -> Found:
    """Of a reply to the question for triples."""
    held = _held(text)
    for value in held:
        inside = _under(value, _TRIPLES)
        if inside is not None:
            return _triples(inside, whole=not _cut(value), text=text)
    if len(held) == 1 and isinstance(held[0], dict) and len(held[0]) == 1:
        (inside,) = held[0].values()
        if isinstance(inside, list) and _KEY.sub("", next(iter(held[0])).lower()) not in _ENTITIES:
            return _triples(inside, whole=not _cut(held[0]), text=text, named=False)
    if len(held) == 1 and isinstance(held[0], list):
        inside = held[0]
        flat = inside and not _as_triple(inside) and any(isinstance(item, list | dict) for item in inside)
        if flat or not inside or not _as_triple(inside):
            return _triples(inside, whole=not _cut(inside), text=text, named=_alone(text))
    if held and any(_as_triple(value) for value in held):  # one list or object a line
        return _triples(held, whole=not any(map(_cut, held)), text=text, named=False)
    raise Unreadable(_no_json(text, held, "triples"))


def read_both(text: str) -> Found:
    """Of a reply to the question for entities and triples at once."""
    named: Found | None = None
    held = _held(text)
    for value in held:
        inside = _under(value, _ENTITIES)
        if inside is not None and named is None:
            try:
                named = _entities(inside, whole=not _cut(value), text=text)
            except Unreadable:
                named = Found((), (), False)
        found = _under(value, _TRIPLES)
        if found is not None:
            facts = _triples(found, whole=not _cut(value), text=text)
            entities, whole = (named.entities, named.whole) if named else ((), True)
            return Found(entities, facts.triples, whole and facts.whole)
    if named is not None and named.entities:
        if held and _cut(held[-1]):
            return Found(named.entities, (), False)
        raise Unreadable("it names entities and says nothing about triples.")
    if named is None:
        return read_triples(text)
    raise Unreadable(_no_json(text, held, "triples"))


def dumped(value: Any) -> str:
    """JSON as it stands in a prompt and as a model is shown it."""
    return json.dumps(value, ensure_ascii=False)


def _held(text: str) -> list[Any]:
    text = _THINKING.sub(" ", text)
    parts = _FENCE.split(text)
    fenced = [value for part in parts[1::2] for value in values(part)] if len(parts) > 1 else []
    return fenced or values(text)


def _alone(text: str) -> bool:
    """Whether the reply is a bare list and nothing else."""
    bare = _FENCE.sub("", _THINKING.sub("", text)).strip()
    return bare.startswith("[") and bare.endswith("]")


def _cut(value: Any) -> bool:
    """Whether an end is missing, in the value or in any of its members."""
    if isinstance(value, CutList | CutDict):
        return True
    inside = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return any(_cut(item) for item in inside)


def _under(value: Any, keys: frozenset[str]) -> Any:
    """What stands under one of the keys, one level down at most; None where nothing does."""
    if not isinstance(value, dict):
        return None
    for key, inside in value.items():
        if _KEY.sub("", key.lower()) in keys and isinstance(inside, list | dict):
            return inside
    for inside in value.values():
        if isinstance(inside, dict) and (found := _under(inside, keys)) is not None:
            return found
    return None


def _entities(items: Any, whole: bool, text: str, named: bool = True) -> Found:
    """``named``: under a key that says what it is, so that an empty list says that there are none."""
    if isinstance(items, dict):
        kinds = [some for some in items.values() if isinstance(some, list)]
        items = list(chain.from_iterable(kinds)) if kinds else list(items)
    names = [name for item in items if (name := _name(item))]
    if not names and (items or not whole or not named):
        raise Unreadable(_nothing_in(text, whole, "entity"))
    if len(names) * 2 < len(items):
        raise Unreadable(f"{len(items) - len(names)} of its {len(items)} entities are not names.")
    return Found(tuple(dict.fromkeys(names)), (), whole)


def _triples(items: Any, whole: bool, text: str, named: bool = True) -> Found:
    if isinstance(items, dict):
        lists = [some for some in items.values() if isinstance(some, list)]
        if not lists and not _as_triple(items):  # the schema, say
            raise Unreadable(_nothing_in(text, whole, "triple"))
        items = [items] if _as_triple(items) else list(chain.from_iterable(lists))
    elif all(isinstance(item, str) for item in items) and _as_triple(items):
        items = [items]  # a single triple without the list around it
    made = [_as_triple(item) for item in items if not isinstance(item, CutList | CutDict)]
    facts = list(dict.fromkeys(chain.from_iterable(made)))
    broken = sum(not facts for facts in made)
    if not facts and (made or not whole or not named):
        if broken:
            raise Unreadable(f"none of its {len(made)} triples has a head, a relation and a tail.")
        raise Unreadable(_nothing_in(text, whole, "triple"))
    if broken * 2 > len(made):
        raise Unreadable(f"{broken} of its {len(made)} triples have not a head, a relation and a tail.")
    return Found((), tuple(facts), whole)


def _as_triple(item: Any) -> list[Fact]:
    """The triples that an item states: none where it has not three parts, several where its tail is a list."""
    if isinstance(item, CutList | CutDict):
        return []
    if isinstance(item, dict):
        by_key = {_KEY.sub("", key.lower()): value for key, value in item.items()}
        inside = next((by_key[key] for key in ("triple", "triplet") if isinstance(by_key.get(key), list)), None)
        if inside is not None:
            return _as_triple(inside)
        parts = [next((by_key[key] for key in keys if key in by_key), None) for keys in (_HEADS, _RELATIONS, _TAILS)]
    elif isinstance(item, str):
        parts = _SEPARATED.split(item.strip().strip("()<>"))
    else:
        parts = item if isinstance(item, list) else []
    if len(parts) != 3:
        return []
    head, relation = _name(parts[0]), _name(parts[1])
    tails: Iterable[Any] = parts[2] if isinstance(parts[2], list) else (parts[2],)
    found = [(head, relation, tail) for tail in map(_name, tails)] if head and relation else []
    return found if all(tail for _, _, tail in found) else []


def _name(item: Any) -> str:
    """A name as a text, from a text or ``{"name": …, "type": …}``; empty where it is neither."""
    if isinstance(item, CutList | CutDict):
        return ""
    if isinstance(item, dict):
        by_key = {_KEY.sub("", key.lower()): value for key, value in item.items()}
        item = next((by_key[key] for key in _NAME if isinstance(by_key.get(key), str)), None)
    if not isinstance(item, str):
        return ""
    text = " ".join(item.split())
    return text if len(text) <= _MOST_NAME else ""


def _nothing_in(text: str, whole: bool, what: str) -> str:
    return f"it holds no {what}: {_quoted(text)}." if whole else f"it was cut before its first {what} ended."


def _no_json(text: str, held: list[Any], what: str) -> str:
    if not text.strip():
        return "it is empty."
    if held and any(map(_cut, held)):
        return f"it was cut before its {what}."
    return f"it is JSON without {what}: {_quoted(text)}." if held else f"it is no JSON: {_quoted(text)}."


def _quoted(text: str) -> str:
    short = " ".join(text.split())
    return repr(short if len(short) <= 80 else f"{short[:80]}…")
