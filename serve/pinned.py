"""What every deployment holds to: one build, and warm before it is ready."""

from __future__ import annotations

from hybrid_ir.errors import Conflict

WARM_UP = "Which enzyme clears warfarin, and what happens to the INR when fluconazole inhibits it?"
"""Asked once before a replica is ready: what the models load on first use is not for the first user to wait for."""


def require(asked: str, served: str, who: str) -> None:
    """Raise :class:`Conflict` unless the build asked for is the one served here."""
    if asked != served:
        raise Conflict(f"The {who} serves build {served}, the request is for build {asked}. Send it again.")
