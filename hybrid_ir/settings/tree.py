"""The whole settings tree, and how a file of it is read."""

from __future__ import annotations

import difflib
from functools import lru_cache
from pathlib import Path
from typing import Any

import yaml
from pydantic import ValidationError
from pydantic_core import ErrorDetails

from hybrid_ir.errors import BadInput, NotFound
from hybrid_ir.settings.build import BuildSettings
from hybrid_ir.settings.group import Group
from hybrid_ir.settings.job import JobSettings
from hybrid_ir.settings.query import (
    ExtractiveReasonerSettings,
    FusionSettings,
    GraphPathSettings,
    LinkerSettings,
    LoopSettings,
    ReasonerSettings,
    RerankSettings,
    SparsePathSettings,
)
from hybrid_ir.settings.serve import ServeSettings


class Settings(Group):
    """The whole tree."""

    build: BuildSettings = BuildSettings()
    linker: LinkerSettings = LinkerSettings()
    graph_path: GraphPathSettings = GraphPathSettings()
    sparse_path: SparsePathSettings = SparsePathSettings()
    fusion: FusionSettings = FusionSettings()
    rerank: RerankSettings | None = None
    """``None``: the fused order stands."""
    reasoner: ReasonerSettings = ExtractiveReasonerSettings()
    loop: LoopSettings = LoopSettings()
    job: JobSettings = JobSettings()
    serve: ServeSettings = ServeSettings()


def load(path: str | Path, *over: str | Path) -> Settings:
    """Read a YAML file; errors name the file and the field.

    ``over``: files laid over it one after the other, key by key: a method of ``configs/methods`` over a file of models.
    """
    raw: dict[str, Any] = {}
    for one in (path, *over):
        raw = _laid_over(raw, _read(one))
    try:
        return Settings.model_validate(raw)
    except ValidationError as error:
        lines = "; ".join(f"{_key(e['loc'], raw)}: {_reason(e)}" for e in error.errors())
        named = ", ".join(map(str, (path, *over)))
        unknown = any(e["type"] == "extra_forbidden" for e in error.errors())
        more = " The keys are those of hybrid_ir/settings/." if unknown else ""
        raise BadInput(f"{named}: {lines}.{more}") from error


def _read(path: str | Path) -> dict[str, Any]:
    try:
        raw = yaml.safe_load(Path(path).read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise NotFound(f"{path}: no such settings file.") from None
    except yaml.MarkedYAMLError as error:
        at = f"line {error.problem_mark.line + 1}: " if error.problem_mark else ""
        raise BadInput(f"{path}: not a readable YAML file ({at}{error.problem}).") from error
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        raise BadInput(f"{path}: not a readable YAML file ({' '.join(str(error).split())}).") from error
    if raw is None:
        return {}
    if not isinstance(raw, dict):
        raise BadInput(f"{path}: expected settings as `key: value`, found a {type(raw).__name__}.")
    return raw


def _laid_over(base: dict[str, Any], over: dict[str, Any]) -> dict[str, Any]:
    merged = dict(base)
    for key, value in over.items():
        both = isinstance(value, dict) and isinstance(merged.get(key), dict)
        merged[key] = _laid_over(merged[key], value) if both else value
    return merged


def _key(loc: tuple[int | str, ...], raw: Any) -> str:
    """The key as it stands in the file: pydantic names the kind chosen (``reasoner.llm.llm.openai.key``) as well."""
    names: list[str] = []
    chosen = False
    for step in loc:
        if not chosen and isinstance(raw, dict) and step in (raw.get("kind"), raw.get("backend")):
            chosen = True
            continue
        chosen = False
        names.append(str(step))
        raw = raw.get(step) if isinstance(raw, dict) else None
    return ".".join(names)


@lru_cache(maxsize=1)
def _keys() -> list[str]:
    """All there are, at any depth."""
    schema = Settings.model_json_schema()
    return sorted({name for one in (schema, *schema["$defs"].values()) for name in one.get("properties", ())})


def _reason(error: ErrorDetails) -> str:
    told = error.get("ctx", {})
    name = str(told.get("discriminator", "")).strip("'")
    match error["type"]:
        case "extra_forbidden":
            near = difflib.get_close_matches(str(error["loc"][-1]), _keys(), 1)
            return f"there is no such key{f'; did you mean {near[0]}?' if near else ''}"
        case "missing":
            return "this key is missing"
        case "union_tag_not_found":
            return f"its key {name} is missing"
        case "union_tag_invalid":
            return f"its {name} is {told['tag']}; it may be one of {told['expected_tags']}"
    return error["msg"]
