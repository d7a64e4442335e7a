"""What a later round starts from."""

from __future__ import annotations

from dataclasses import dataclass

from hybrid_ir.reasoning.focus import Focus
from hybrid_ir.reasoning.plan import Plan
from hybrid_ir.reasoning.support import Field
from hybrid_ir.records import LoopState


@dataclass(frozen=True)
class Known:
    """The state, taken apart once."""

    state: LoopState
    focus: Focus
    plan: Plan
    field: Field
    """All sentences so far."""
    leading: tuple[str, ...] = ()
    """The letters of the options that are supported best so far."""
