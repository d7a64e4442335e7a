"""What both uses of vLLM, the service's and the indexing job's, take from the settings."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from hybrid_ir import models
from hybrid_ir.errors import BadInput
from hybrid_ir.settings import VLLMSettings

ENGINE = {"structured_outputs_config": {"backend": "xgrammar", "disable_any_whitespace": True}}
"""Ours unless the settings say otherwise: a schema allows white space, and a reply could be filled with it."""


def engine_arguments(settings: VLLMSettings) -> dict[str, Any]:
    """vLLM's own: the settings' over ours."""
    window = {"max_model_len": settings.window} if settings.window is not None else {}
    return {**ENGINE, **window, **settings.engine}


def model_folder(settings: VLLMSettings) -> Path:
    """Where the model lies, on this node as on the others: no replica and no worker downloads anything.

    Raises BadInput where it is neither a folder nor fetched, and Conflict where another revision was fetched.
    """
    if Path(settings.model).is_dir():
        return Path(settings.model).absolute()
    held = models.require(settings.model, settings.revision)
    if held is None:
        raise BadInput(
            f"The language model {settings.model} is no folder and is not fetched: "
            "run `hybrid-ir models fetch --config FILE` on every node, or fill a folder that all see."
        )
    return held[0]
