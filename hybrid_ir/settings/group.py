"""What all settings have in common."""

from __future__ import annotations

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

Share = Annotated[float, Field(ge=0.0, le=1.0)]
Positive = Annotated[int, Field(ge=1)]


class Group(BaseModel):
    """Frozen, and an unknown key is an error that names it."""

    model_config = ConfigDict(frozen=True, extra="forbid")
