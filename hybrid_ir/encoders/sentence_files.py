"""What a model of the sentence-transformers library says of itself, in the files beside its weights.

``modules.json`` lists the steps from text to vector.  A transformer, mean or [CLS] pooling and
normalisation are what :mod:`transformer` does; a model with any other step (a dense layer, say)
is refused, because its vectors would be others than its authors'.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, cast

from hybrid_ir.encoders.location import ModelLocation
from hybrid_ir.errors import BadInput

Pooling = Literal["mean", "cls"]

_LEGACY = {"pooling_mode_cls_token": "cls", "pooling_mode_mean_tokens": "mean"}


@dataclass(frozen=True)
class SentenceModel:
    """How a model is meant to be used."""

    pooling: Pooling
    normalise: bool
    max_tokens: int | None
    """``None``: as many as its positions allow."""
    lower_case: bool
    query_prompt: str
    passage_prompt: str


def read(location: ModelLocation) -> SentenceModel | None:
    """``None`` for a model without ``modules.json``: it says nothing."""
    modules = _json(location, "modules.json")
    if modules is None:
        return None
    steps = [(str(step["type"]).rsplit(".", 1)[-1], str(step["path"])) for step in modules]
    kinds = [kind for kind, _ in steps]
    if kinds[:2] != ["Transformer", "Pooling"] or kinds[2:] not in ([], ["Normalize"]):
        raise BadInput(
            f"The encoder {location.name} is made of {', '.join(kinds)}; only Transformer, Pooling and Normalize, in "
            "this order, can be run here. Choose another model."
        )
    transformer_folder, pooling_folder = steps[0][1], steps[1][1]
    if transformer_folder not in ("", "."):
        raise BadInput(f"The encoder {location.name} keeps its transformer in {transformer_folder}; name that folder.")
    limits = _json(location, "sentence_bert_config.json") or {}
    prompts = (_json(location, "config_sentence_transformers.json") or {}).get("prompts") or {}
    length = limits.get("max_seq_length")
    return SentenceModel(
        pooling=_pooling(location, _json(location, f"{pooling_folder}/config.json") or {}),
        normalise=kinds[2:] == ["Normalize"],
        max_tokens=int(length) if length else None,
        lower_case=bool(limits.get("do_lower_case")),
        query_prompt=str(prompts.get("query") or ""),
        passage_prompt=str(prompts.get("document") or prompts.get("passage") or ""),
    )


def _pooling(location: ModelLocation, config: Mapping[str, Any]) -> Pooling:
    mode = config.get("pooling_mode")
    if mode is None:
        active = [key for key, value in config.items() if key.startswith("pooling_mode_") and value is True]
        mode = _LEGACY.get(active[0], active[0]) if len(active) == 1 else " and ".join(active) or "nothing"
    if mode not in ("mean", "cls") or not config.get("include_prompt", True):
        without = " without its prompt" if not config.get("include_prompt", True) else ""
        raise BadInput(f"The encoder {location.name} pools by {mode}{without}; only mean and cls can be done here.")
    return cast(Pooling, mode)


def _json(location: ModelLocation, file: str) -> Any:
    path = location.file(file)
    if path is None:
        return None
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise BadInput(f"{path}: not readable as JSON ({error}); fetch the model again.") from error
