"""OpenTelemetry spans of a request: its rounds, each query to a path, each call of a language model.  An option.

What happened inside a question is read from the loop's events, as the metrics are.  A span holds ids, numbers and
names: no question, evidence or reply is in it.
"""

from __future__ import annotations

import importlib
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from opentelemetry import context, trace
from opentelemetry.context import Context
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor, ConsoleSpanExporter, SpanExporter
from opentelemetry.trace import Span, SpanKind, StatusCode
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

from hybrid_ir.errors import BadInput
from hybrid_ir.reasoning.events import Called, Concluding, Event, Finished, Retrieved, RoundFinished, RoundStarted
from hybrid_ir.records import Retrieval
from hybrid_ir.retrieval.retriever import RERANK
from hybrid_ir.settings.serve import Traces


def exporter_of(wanted: Traces) -> SpanExporter | None:
    """``otlp`` sends where OpenTelemetry's own variables say (``OTEL_EXPORTER_OTLP_ENDPOINT``)."""
    if wanted == "off":
        return None
    if wanted == "console":
        return ConsoleSpanExporter()
    try:
        trace_exporter = importlib.import_module("opentelemetry.exporter.otlp.proto.http.trace_exporter")
    except ImportError as error:
        package = "opentelemetry-exporter-otlp-proto-http"
        raise BadInput(f"serve.traces is otlp: pip install {package} on every node, or write console.") from error
    exporter: SpanExporter = trace_exporter.OTLPSpanExporter()
    return exporter


class Tracing:
    """One a process."""

    def __init__(self, exporter: SpanExporter) -> None:
        self._provider = TracerProvider(resource=Resource.create({"service.name": "hybrid-ir"}))
        self._provider.add_span_processor(BatchSpanProcessor(exporter))
        self._tracer = self._provider.get_tracer("hybrid_ir")

    def flush(self) -> None:
        self._provider.force_flush()

    @contextmanager
    def request(self, method: str, headers: Mapping[str, str], request_id: str, build_id: str) -> Iterator[Span]:
        """The current span of a request, a child of the client's where it sent ``traceparent``."""
        parent = TraceContextTextMapPropagator().extract(headers, Context())
        given = {"http.request.method": method, "hybrid_ir.request_id": request_id, "hybrid_ir.build_id": build_id}
        with self._tracer.start_as_current_span("request", parent, SpanKind.SERVER, given) as span:
            yield span

    def open(self, name: str, start_ns: int, parent: Context, **given: str | int) -> Span:
        return self._tracer.start_span(name, parent, attributes=given, start_time=start_ns)

    def retrieval(self, found: Retrieval, end_ns: int | None = None, parent: Context | None = None) -> None:
        """A span for each path, and for the reranker, of a retrieval that has just ended; a failed one is an error."""
        end_ns, parent = end_ns or time.time_ns(), parent or context.get_current()
        paths = {name: seconds for name, seconds in found.seconds.items() if name != RERANK}
        reranked = end_ns - _ns(found.seconds.get(RERANK, 0.0))
        start_ns = reranked - _ns(max(paths.values(), default=0.0))  # the paths start at the same time
        for name, seconds in paths.items():
            self.open(f"path {name}", start_ns, parent).end(start_ns + _ns(seconds))
        if reranked < end_ns:
            self.open(RERANK, reranked, parent).end(end_ns)
        for name in found.degraded:
            failed = self.open(name if name == RERANK else f"path {name}", start_ns, parent)
            failed.set_status(StatusCode.ERROR)
            failed.end(end_ns)

    def loop(self) -> LoopSpans:
        """For one question."""
        return LoopSpans(self)


class LoopSpans:
    """Follows the events of one question, below the span that is current now."""

    def __init__(self, tracing: Tracing) -> None:
        self._tracing, self._start, self._since = tracing, time.time_ns(), 0.0
        self._request = context.get_current()
        self._round: Span | None = None

    def see(self, event: Event) -> None:
        end = self._at(event.seconds)
        if isinstance(event, RoundStarted):
            self._over("decompose", event.seconds)
            asked = len(event.sub_questions)
            self._round = self._tracing.open("round", end, self._request, number=event.number, sub_questions=asked)
        elif isinstance(event, Retrieved):
            self._tracing.retrieval(event.retrieval, end, self._parent())
        elif isinstance(event, Called):
            call = event.call
            tokens = {"prompt_tokens": call.prompt_tokens, "completion_tokens": call.completion_tokens}
            start = self._at(event.seconds - call.seconds)
            self._tracing.open("language model", start, self._parent(), prompt=call.prompt, **tokens).end(end)
        elif isinstance(event, RoundFinished | Concluding):
            self._close(event.seconds)
        elif isinstance(event, Finished):
            self._close(event.seconds)
            self._over("conclude", event.seconds)

    def close(self) -> None:
        """When the client has left, a round may be open."""
        if self._round:
            self._round.end()

    def _close(self, seconds: float) -> None:
        if self._round:
            self._round.end(self._at(seconds))
        self._round, self._since = None, seconds

    def _over(self, name: str, seconds: float) -> None:
        self._tracing.open(name, self._at(self._since), self._request).end(self._at(seconds))
        self._since = seconds

    def _parent(self) -> Context:
        return trace.set_span_in_context(self._round, self._request) if self._round else self._request

    def _at(self, seconds: float) -> int:
        return self._start + _ns(seconds)


def _ns(seconds: float) -> int:
    return int(seconds * 1e9)
