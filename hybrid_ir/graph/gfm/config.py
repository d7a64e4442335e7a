"""What a published checkpoint says about its network."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from hybrid_ir.errors import BadInput, NotFound
from hybrid_ir.records import Record

SUPPORTED = {"message_func": "distmult", "aggregate_func": "sum", "short_cut": True, "layer_norm": True}
"""The one form whose forward pass is built here, as GFM-RAG-8M has it."""


class GFMConfig(Record):
    """Dimensions and the text encoder; the defaults are GFM-RAG-8M's."""

    text_dimension: int = 768
    """Of the vectors of questions and relation names."""
    dimension: int = 512
    layers: int = 6
    text_encoder: str = "sentence-transformers/all-mpnet-base-v2"
    normalise_text: bool = False


def read_config(folder: str | Path) -> GFMConfig:
    """Read ``config.json`` in either published layout (``rel_emb_dim``, later ``feat_dim``).

    Raises NotFound without the file, and BadInput with the key that is missing or not supported.
    """
    path = Path(folder) / "config.json"
    try:
        raw = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise NotFound(f"{path}: no such file; a GFM checkpoint is a folder with config.json and model.pth.") from None
    except (OSError, ValueError) as error:
        raise BadInput(f"{path}: not readable as JSON ({error}).") from error
    model = _group(raw, "model_config", path)
    entity = _group(model, "entity_model", path)
    text: dict[str, Any] = raw.get("text_emb_model_config") or {}
    for key, wanted in SUPPORTED.items():
        if entity.get(key, wanted) != wanted:
            raise BadInput(f"{path}: entity_model.{key} is {entity[key]!r}; only {wanted!r} is built here.")
    dimension, hidden = _size(entity, "input_dim", path), entity.get("hidden_dims")
    if not isinstance(hidden, list) or not hidden or any(size != dimension for size in hidden):
        raise BadInput(f"{path}: entity_model.hidden_dims must be a list of layers as wide as input_dim ({dimension}).")
    return GFMConfig(
        text_dimension=_size(model, "rel_emb_dim" if "rel_emb_dim" in model else "feat_dim", path),
        dimension=dimension,
        layers=len(hidden),
        text_encoder=str(text.get("text_emb_model_name", GFMConfig().text_encoder)),
        normalise_text=bool(text.get("normalize", False)),
    )


def _group(raw: Any, key: str, path: Path) -> dict[str, Any]:
    found = raw.get(key) if isinstance(raw, dict) else None
    if not isinstance(found, dict):
        raise BadInput(f"{path}: `{key}` is missing; expected GFM-RAG's layout.")
    return found


def _size(group: dict[str, Any], key: str, path: Path) -> int:
    found = group.get(key)
    if not isinstance(found, int) or isinstance(found, bool) or found < 1:
        raise BadInput(f"{path}: `{key}` must be a positive whole number, found {found!r}.")
    return found
