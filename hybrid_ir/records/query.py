"""Online: what is asked, and the evidence that retrieval brings for it."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from hybrid_ir.records.corpus import Chunk
from hybrid_ir.records.record import Record

PathName = str
"""The name of a retrieval path: ``graph`` or ``dense`` today; a retriever knows its own."""


class Question(Record):
    """What a user asks; ``options`` maps a letter to its text in a multiple-choice question."""

    text: str
    options: dict[str, str] = Field(default_factory=dict)


class SubQuestion(Record):
    """One query of a round.  ``entities`` empty means: find them in the text."""

    text: str
    entities: tuple[str, ...] = ()
    reason: str = ""
    """Why it is asked: ``clause 2``, ``bridge: bats``, ``option B``, or a model's own words."""


class Filter(Record):
    """Which chunks a query may bring; every condition given must hold, an empty one holds for all."""

    sources: tuple[str, ...] = ()
    """Shell patterns; one must match the chunk's source file: ``*/pubmed/*.xml.gz``."""
    year_from: int | None = None
    year_to: int | None = None
    """Inclusive; a chunk without a year passes only where neither is given."""
    document_ids: tuple[str, ...] = ()


Match = Literal["exact", "variant", "alias", "nearest"]
"""How an entity was found: by its name, by another spelling, by a synonym of a vocabulary, by its vector."""


class EntityLink(Record):
    """A mention of the query and the graph entity it was aligned to (Eq. 3)."""

    mention: str
    entity: str | None
    """``None``: nothing in the graph came close enough."""
    similarity: float
    match: Match | None = None
    """``None`` where the mention links to nothing."""


class PathHit(Record):
    """Where one path placed a chunk."""

    rank: Annotated[int, Field(ge=1)]
    score: float


class Evidence(Record):
    """A chunk that retrieval brought, with the path and rank that brought it."""

    chunk: Chunk
    score: float
    """The fused score (Eq. 5)."""
    rerank: float | None = None
    """What the reranker gave it, where there is one and it read this chunk; evidence is then in this order."""
    paths: dict[PathName, PathHit]


class Retrieval(Record):
    """The evidence for one query, best first, and how it came about."""

    query: str
    evidence: tuple[Evidence, ...]
    links: tuple[EntityLink, ...] = ()
    degraded: tuple[PathName, ...] = ()
    """Paths that failed or ran out of time; the others served."""
    seconds: dict[str, float] = Field(default_factory=dict)
    """Per path."""
