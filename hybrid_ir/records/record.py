"""What all records have in common."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict


class Record(BaseModel):
    """Immutable, strict about its fields, and serialisable to JSON."""

    model_config = ConfigDict(frozen=True, extra="forbid")
