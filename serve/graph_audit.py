"""A sample of the bounded graph scorer's queries, scored exactly as well: the difference, as metrics."""

from __future__ import annotations

import asyncio
import logging
import random
from collections.abc import Callable
from typing import TYPE_CHECKING

from ray.util.metrics import Counter, Histogram

from hybrid_ir.retrieval.graph_path import GraphPath
from hybrid_ir.roles import Query
from hybrid_ir.settings import GraphPathSettings

if TYPE_CHECKING:
    from hybrid_ir.graph.gfm.scorer import Audit

log = logging.getLogger(__name__)


class GraphAudit:
    """Draws queries and audits them one at a time beside the requests; what is drawn meanwhile is left out."""

    def __init__(self, audit: Callable[[Query], Audit], share: float, draw: Callable[[], float] | None = None) -> None:
        """``audit`` compares one query; ``share`` of all queries are drawn; ``draw``: numbers from 0 to 1."""
        self._audit, self._share, self._draw = audit, share, draw or random.Random().random  # noqa: S311
        self._running: asyncio.Task[None] | None = None
        self._error = Histogram(
            "hybrid_ir_graph_audit_error",
            description="Mean error of the bounded scorer's logits over the spread of the exact ones.",
            boundaries=[0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1],
        )
        self._overlap = Histogram(
            "hybrid_ir_graph_audit_overlap",
            description="Share of the exact scorer's 20 best chunks that the bounded one has among its own.",
            boundaries=[0.5, 0.7, 0.8, 0.9, 0.95, 0.99, 1],
        )
        self._failed = Counter("hybrid_ir_graph_audit_failed", description="Audits that ended with an error.")

    def offer(self, query: Query) -> None:
        """To be called in the event loop for every query that was answered."""
        if self._draw() < self._share and (self._running is None or self._running.done()):
            self._running = asyncio.create_task(self._run(query))

    async def _run(self, query: Query) -> None:
        try:
            found = await asyncio.to_thread(self._audit, query)
        except Exception:
            log.exception("an audit of the graph scorer failed")
            self._failed.inc()
            return
        self._error.observe(found.error)
        self._overlap.observe(found.overlap)


def audit_of(path: GraphPath, settings: GraphPathSettings) -> GraphAudit | None:
    """None where the scorer is exact or no share of its queries is to be audited."""
    gfm = settings.gfm
    if settings.scorer != "gfm" or gfm is None or gfm.mode != "bounded" or not gfm.audit_share:
        return None
    from hybrid_ir.graph.gfm.scorer import GFMScorer

    scorer = path.scorer
    if not isinstance(scorer, GFMScorer):
        raise TypeError(f"graph_path.scorer is gfm, opened was {type(scorer).__name__}")

    def audit(query: Query) -> Audit:
        return scorer.audit(path.seeds(query)[1], query.text)

    return GraphAudit(audit, gfm.audit_share)
