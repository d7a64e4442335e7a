"""Hybrid-IR: medical question answering over a knowledge graph and dense vectors.

    import hybrid_ir
    ir = hybrid_ir.open("my-index")
    ir.retrieve("How does rabies reach the brain?")
    ir.ask("Which infection threatens a cave explorer?")

A research tool: no medical device, and no advice to patients.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from hybrid_ir.api import HybridIR
    from hybrid_ir.settings import Settings

__all__ = ["open"]


def open(root: str, settings: Settings | str | None = None) -> HybridIR:
    """Open the index at a root for questions, in this process and without Ray.

    ``settings``: a tree, or a YAML file's name; without them those the index was built with.
    Raises :class:`hybrid_ir.errors.HybridIRError` with a sentence that says what to do.
    """
    from hybrid_ir.api import HybridIR
    from hybrid_ir.opened import open_index
    from hybrid_ir.settings import load

    return HybridIR(open_index(root, load(settings) if isinstance(settings, str) else settings))
