"""What the controller counts, exported by Ray for Prometheus (there every name begins with ``ray_``)."""

from __future__ import annotations

from ray.util.metrics import Counter, Histogram

from hybrid_ir.reasoning.events import Called, Concluding, Event, Finished, Retrieved, RoundFinished, RoundStarted
from hybrid_ir.records import Retrieval

FAST = [0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5]
SLOW = [0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 60, 120, 300]


class Metrics:
    """One a process."""

    def __init__(self) -> None:
        self._requests = Counter(
            "hybrid_ir_requests", description="Requests answered.", tag_keys=("route", "status", "build_id")
        )
        self._request_seconds = Histogram(
            "hybrid_ir_request_seconds", description="Of a request, whole.", boundaries=SLOW, tag_keys=("route",)
        )
        self._path_seconds = Histogram(
            "hybrid_ir_path_seconds", description="Of one query to one path.", boundaries=FAST, tag_keys=("path",)
        )
        self._degraded = Counter(
            "hybrid_ir_degraded", description="Queries that a path did not serve.", tag_keys=("path",)
        )
        self._stage_seconds = Histogram(
            "hybrid_ir_stage_seconds",
            description="Of the loop's stages: decompose, round (retrieve and answer), conclude.",
            boundaries=SLOW,
            tag_keys=("stage",),
        )
        self._answers = Counter(
            "hybrid_ir_answers", description="Answers, by why the loop ended.", tag_keys=("stopped", "enough_evidence")
        )
        self._dropped = Counter("hybrid_ir_dropped_citations", description="Citations of chunks not in the evidence.")
        self._tokens = Counter(
            "hybrid_ir_llm_tokens", description="Tokens of the language model.", tag_keys=("kind", "prompt")
        )
        self._call_seconds = Histogram(
            "hybrid_ir_llm_seconds", description="Of one call of the language model.", boundaries=SLOW
        )

    def request(self, route: str, status: int, seconds: float, build_id: str) -> None:
        self._requests.inc(1, {"route": route, "status": str(status), "build_id": build_id})
        self._request_seconds.observe(seconds, {"route": route})

    def retrieval(self, found: Retrieval) -> None:
        for path, seconds in found.seconds.items():
            self._path_seconds.observe(seconds, {"path": path})
        for path in found.degraded:
            self._degraded.inc(1, {"path": path})

    def loop(self) -> LoopMetrics:
        """For one question."""
        return LoopMetrics(self)

    def stage(self, name: str, seconds: float) -> None:
        self._stage_seconds.observe(seconds, {"stage": name})

    def call(self, event: Called) -> None:
        call = event.call
        self._call_seconds.observe(call.seconds)
        for kind, tokens in (("prompt", call.prompt_tokens), ("completion", call.completion_tokens)):
            if tokens:
                self._tokens.inc(tokens, {"kind": kind, "prompt": call.prompt})

    def answer(self, event: Finished) -> None:
        enough = "yes" if event.answer.enough_evidence else "no"
        self._answers.inc(1, {"stopped": event.answer.stopped, "enough_evidence": enough})
        if event.answer.dropped_citations:
            self._dropped.inc(event.answer.dropped_citations)


class LoopMetrics:
    """Follows the events of one question: a stage is the time between two of them."""

    def __init__(self, metrics: Metrics) -> None:
        self._metrics, self._since = metrics, 0.0

    def see(self, event: Event) -> None:
        if isinstance(event, Retrieved):
            self._metrics.retrieval(event.retrieval)
        elif isinstance(event, Called):
            self._metrics.call(event)
        elif isinstance(event, RoundStarted):
            self._stage("decompose", event)
        elif isinstance(event, RoundFinished):
            self._stage("round", event)
        elif isinstance(event, Concluding):
            self._since = event.seconds
        elif isinstance(event, Finished):
            self._stage("conclude", event)
            self._metrics.answer(event)

    def close(self) -> None:
        """Nothing is open."""

    def _stage(self, name: str, event: RoundStarted | RoundFinished | Finished) -> None:
        self._metrics.stage(name, event.seconds - self._since)
        self._since = event.seconds
