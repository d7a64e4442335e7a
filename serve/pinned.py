"""What every deployment holds to: warm before it is ready, and no request longer than this."""

from __future__ import annotations

from hybrid_ir.settings import Settings
from serve.schemas import MAX_DEADLINE_S

WARM_UP = "Which enzyme clears warfarin, and what happens to the INR when fluconazole inhibits it?"
"""Asked once before a replica is ready: what the models load on first use is not for the first user to wait for."""


def longest_request_s(settings: Settings) -> float:
    return max(MAX_DEADLINE_S, settings.loop.deadline_s)
