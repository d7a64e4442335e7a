"""What stands before every route: a request id, the key and its limits, one line in the log."""

from __future__ import annotations

import ipaddress
import json
import logging
import re
import sys
import time
import uuid
from collections import OrderedDict
from collections.abc import Callable
from contextvars import ContextVar
from pathlib import Path

from fastapi.responses import JSONResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from hybrid_ir import keys
from hybrid_ir.errors import HybridIRError
from hybrid_ir.keys import ApiKey
from serve import errors
from serve.drain import Drain
from serve.metrics import Metrics
from serve.tracing import Tracing

ALIVE = "/healthz"
OPEN = frozenset({ALIVE, "/readyz", "/docs", "/openapi.json", "/docs/oauth2-redirect"})
"""Without a key: probes, and the description of the interface."""
ADMIN = "/v1/admin/"
"""What stands below needs the scope ``admin``."""
STOPPED_S = "10"
"""After so many seconds a service that stops may be back."""
REREAD_S = 5.0
"""A revoked key is refused after so long at the latest."""
BUCKETS_KEPT = 10_000

TRACE = ("traceparent", "tracestate")
"""The headers of the client's own trace."""

_GIVEN_ID = re.compile(r"[A-Za-z0-9._-]{1,64}")

log = logging.getLogger("hybrid_ir.access")
key_of: ContextVar[str | None] = ContextVar("key_of", default=None)
"""The id of the key that the request came with."""


class Keys:
    """The file of keys, read again when it changes.  A file that became unreadable keeps the keys it had."""

    def __init__(self, path: str, clock: Callable[[], float] = time.monotonic) -> None:
        """Raises NotFound or BadInput where it is not a file of keys: a service does not start without its keys."""
        self._path, self._clock = Path(path), clock
        self._by_hash, self._stamp, self._looked = keys.read(path).by_hash(), self._stamped(), clock()

    def find(self, secret: str) -> ApiKey | None:
        if self._clock() - self._looked >= REREAD_S:
            self._looked = self._clock()
            stamp = self._stamped()
            if stamp != self._stamp:
                try:
                    self._by_hash, self._stamp = keys.read(self._path).by_hash(), stamp
                except HybridIRError as error:
                    log.error("%s The keys read before stay valid.", error)
        return self._by_hash.get(keys.hashed(secret))

    def _stamped(self) -> tuple[int, int, int] | None:
        try:
            found = self._path.stat()
        except OSError:
            return None
        return found.st_mtime_ns, found.st_size, found.st_ino


class Limiter:
    """Requests a minute by key, as token buckets that hold a minute's worth; each replica counts for itself."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._buckets: OrderedDict[str, tuple[float, float]] = OrderedDict()

    def wait(self, key: ApiKey) -> float:
        """Take a token; returns 0, or the seconds until there is one again."""
        if key.per_minute is None:
            return 0.0
        now = self._clock()
        held, then = self._buckets.pop(key.id, (float(key.per_minute), now))
        held = min(float(key.per_minute), held + (now - then) * key.per_minute / 60.0)
        wait = 0.0 if held >= 1.0 else (1.0 - held) * 60.0 / key.per_minute
        self._buckets[key.id] = (held - 1.0 if not wait else held, now)
        while len(self._buckets) > BUCKETS_KEPT:
            self._buckets.popitem(last=False)
        return wait


class Gateway:
    """An ASGI middleware.  Without keys it serves only what came in on a loopback address."""

    def __init__(
        self,
        app: ASGIApp,
        build_id: Callable[[], str],
        held: Keys | None,
        trusted_network: bool = False,
        metrics: Metrics | None = None,
        says_id: bool = True,
        tracing: Tracing | None = None,
        drain: Drain | None = None,
    ) -> None:
        """``build_id``: of the build that a request gets now.

        ``trusted_network``: serve without keys on every address, because something in front asks who it is.
        ``says_id``: put the request's id into the response; not behind Serve's proxy, which does.
        """
        self._app, self._build_id, self._keys, self._trusted = app, build_id, held, trusted_network
        self._limiter, self._metrics, self._says_id, self._tracing = Limiter(), metrics, says_id, tracing
        self._drain = drain or Drain()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        headers = {name: value for name, value in reversed(scope["headers"])}
        given = headers.get(b"x-request-id", b"").decode("latin-1")
        request_id = given if _GIVEN_ID.fullmatch(given) else uuid.uuid4().hex
        build_id = self._build_id()
        errors.request_id.set(request_id)
        key_of.set(None)
        if self._tracing is None:
            await self._answer(scope, receive, send, headers, request_id, build_id)
            return
        given = {name: headers[name.encode()].decode("latin-1") for name in TRACE if name.encode() in headers}
        with self._tracing.request(scope["method"], given, request_id, build_id) as span:
            status = await self._answer(scope, receive, send, headers, request_id, build_id)
            span.set_attributes({"http.route": _route(scope), "http.response.status_code": status})

    async def _answer(
        self,
        scope: Scope,
        receive: Receive,
        send: Send,
        headers: dict[bytes, bytes],
        request_id: str,
        build_id: str,
    ) -> int:
        """Returns the status, once it is logged and counted."""
        start, status = time.perf_counter(), 499  # as long as nothing was sent, the client has left

        async def sent(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                if self._says_id:
                    message["headers"] = [*message.get("headers", ()), (b"x-request-id", request_id.encode())]
            await send(message)

        self._drain.running += 1
        try:
            refusal = self._refusal(scope, headers)
            await (refusal or self._app)(scope, receive, sent)
        except Exception as error:
            if status != 499:  # half a response is out: the connection must break
                raise
            await errors.unexpected(scope["method"], scope["path"], error)(scope, receive, sent)
        finally:
            self._drain.running -= 1
            route, seconds = _route(scope), time.perf_counter() - start
            if self._metrics:
                self._metrics.request(route, status, seconds, build_id)
            log.info(
                "request",
                extra={
                    "fields": {
                        "request_id": request_id,
                        "build_id": build_id,
                        "method": scope["method"],
                        "route": route,
                        "status": status,
                        "key": key_of.get(),
                        "ms": round(seconds * 1e3, 1),
                    }
                },
            )
        return status

    def _refusal(self, scope: Scope, headers: dict[bytes, bytes]) -> JSONResponse | None:
        path = scope["path"]
        if self._drain.closed and path != ALIVE:
            return errors.response(
                503, "The service is stopping; try again when it is back.", {"Retry-After": STOPPED_S}
            )
        if path in OPEN:
            return None
        if self._keys is None:
            if self._trusted or is_loopback(scope.get("server")):
                return None
            return errors.response(
                403,
                "This service has no keys, so it answers on a loopback address alone. Give it some: "
                "serve.keys in the settings file, made by hybrid-ir keys add.",
            )
        kind, _, secret = headers.get(b"authorization", b"").decode("latin-1").partition(" ")
        if kind.lower() != "bearer" or not secret.strip():
            return errors.response(
                401, "Send your key: the header Authorization: Bearer KEY.", {"WWW-Authenticate": "Bearer"}
            )
        key = self._keys.find(secret.strip())
        if key is None:
            return errors.response(
                401, "This key is not known here, or was revoked.", {"WWW-Authenticate": 'Bearer error="invalid_token"'}
            )
        key_of.set(key.id)
        needed = "admin" if path.startswith(ADMIN) else "query"
        if needed not in key.scopes and "admin" not in key.scopes:
            return errors.response(403, f"The key {key.id} has no scope {needed}.")
        wait = self._limiter.wait(key)
        if wait:
            sentence = f"The key {key.id} may send {key.per_minute} requests a minute; try again in {wait:.0f} s."
            return errors.response(429, sentence, {"Retry-After": str(max(1, round(wait + 0.5)))})
        return None


def _route(scope: Scope) -> str:
    """The pattern: ids and texts stay out of the log, and what nobody has out of the metrics' labels."""
    return str(getattr(scope.get("route"), "path", "-"))


def is_loopback(server: object) -> bool:
    """Whether the address a request came in on is this machine's own; an unknown one is not."""
    if not isinstance(server, (tuple, list)) or not server or not server[0]:
        return False
    if str(server[0]).startswith("/"):  # a Unix socket, guarded by its folder
        return True
    try:
        return ipaddress.ip_address(str(server[0]).partition("%")[0]).is_loopback
    except ValueError:
        return bool(server[0] == "localhost")


class JsonLines(logging.Formatter):
    """A log record as one line of JSON."""

    def format(self, record: logging.LogRecord) -> str:
        line = {
            "time": time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(record.created)) + f".{int(record.msecs):03d}Z",
            "level": record.levelname,
            "message": record.getMessage(),
            **getattr(record, "fields", {}),
        }
        if record.exc_info:
            line["exception"] = self.formatException(record.exc_info)
        return json.dumps(line, ensure_ascii=False)


def log_to_stderr() -> None:
    """One JSON line a request, where Ray collects a replica's output; once a process."""
    if not log.handlers:
        handler = logging.StreamHandler(sys.stderr)
        handler.setFormatter(JsonLines())
        log.addHandler(handler)
        log.setLevel(logging.INFO)
        log.propagate = False
