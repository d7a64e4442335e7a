"""A request is answered from one build, by every deployment it passes, or refused."""

from __future__ import annotations

from hybrid_ir.errors import Conflict


def require(asked: str, served: str, who: str) -> None:
    """Raise :class:`Conflict` unless the build asked for is the one served here."""
    if asked != served:
        raise Conflict(f"The {who} serves build {served}, the request is for build {asked}. Send it again.")
