"""Start the service from a program: join or start Ray, serve, wait until ready, shut down again."""

from __future__ import annotations

import errno
import logging
import math
import os
import random
import re
import signal
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from typing import Any

import httpx
import ray
from ray import serve
from ray.serve.context import (  # Ray offers no public way to ask for Serve's port, or to forget a Serve that is gone
    _get_global_client,
    _set_global_client,
)
from ray.serve.schema import ApplicationStatus

from hybrid_ir.errors import BadInput, Conflict, Unavailable
from hybrid_ir.opened import open_index
from hybrid_ir.settings import Settings
from serve import own_ray
from serve.app import application, llm_cpus, starts_vllm
from serve.pinned import longest_request_s

log = logging.getLogger(__name__)

APPLICATION, CONTROLLER = "hybrid-ir", "Controller"
START_TIMEOUT_S = 600.0
"""Models load once a replica; from an object store that takes minutes."""
MAX_PORT = 65_535
SETTLE_S = 0.5
"""What the controller has sent passes through Serve's proxy."""
OBJECT_STORE_BYTES = 128 * 2**20
"""For a Ray of our own: requests are small."""


@dataclass
class Running:
    """A service that answers."""

    url: str
    build_id: str
    started: ExitStack
    """Undoes, in reverse, what ``run`` started."""

    def close(self) -> None:
        """Let requests in progress finish, then end what ``run`` started and nothing else; twice does no harm."""
        self.started.close()


def run(
    root: str,
    settings: Settings | None = None,
    host: str | None = None,
    port: int | None = None,
    build_id: str | None = None,
    say: Callable[[str], None] = lambda text: None,
) -> Running:
    """Serve a build over HTTP; returns when the first question can be asked, and the caller closes.

    Host and port default to the settings'; port 0 takes a free one.  Joins the Ray that this
    process is connected to, else the one that ``RAY_ADDRESS`` names, else starts one of its own
    on loopback, without a dashboard.  ``say`` gets a line at each step.

    Raises the library's errors: no such build, a port in use, a replica that cannot start.
    """
    # Whatever can be refused is refused before Ray starts.
    if port is not None and not 0 <= port <= MAX_PORT:
        raise BadInput(f"--port {port}: a port is a number from 0 (any that is free) to {MAX_PORT}.")
    index = open_index(root, settings, build_id)
    build = partial(application, root, settings, index.build_id, follow=build_id is None)
    # To build vLLM's deployment Ray connects, and would start itself with a dashboard: it waits for ours.
    app = None if starts_vllm(index.settings) else build()
    wanted = index.settings.serve
    host, port = host or wanted.host, wanted.port if port is None else port
    elsewhere = bool(os.environ.get("RAY_ADDRESS"))
    if not elsewhere:
        port = free_port(host, port)
    say("Starting: models and index are loaded once for each replica.")
    with ExitStack() as started:
        ours = not ray.is_initialized() and not elsewhere
        if not ray.is_initialized():
            # This process may have ended a Ray with a Serve in it, and Serve would still take that for its own.
            _set_global_client(None)  # type: ignore[no-untyped-call]
            started.callback(ray.shutdown)
            _start_ray(index.settings, elsewhere)
        started_serve = _start_serve(host, port)
        if not ours:  # one of our own takes Serve with it
            started.callback(serve.shutdown if started_serve else _delete)
        serve.run_many(
            [serve.RunTarget(target=app or build(), name=APPLICATION, route_prefix="/")],
            wait_for_applications_running=False,
        )
        url = _url(host, port)
        _wait_until_ready(url)
        started.callback(_drain, longest_request_s(index.settings))
        return Running(url, index.build_id, started.pop_all())
    raise AssertionError("unreachable")


def serve_forever(
    root: str,
    settings: Settings | None = None,
    host: str | None = None,
    port: int | None = None,
    build_id: str | None = None,
    say: Callable[[str], None] = lambda text: None,
) -> None:
    """``run``, then wait for SIGINT or SIGTERM, then close."""
    running = run(root, settings, host, port, build_id, say)
    try:
        say(f"Serving build {running.build_id} at {running.url} (the API is described at {running.url}/docs).")
        say("A research tool, no medical device. Ctrl-C ends it.")
        _wait_for_signal()
        say("Stopping: requests in progress are finished first.")
    finally:
        running.close()


def free_port(host: str, port: int) -> int:
    """The port, or a free one for 0; a :class:`BadInput` where it cannot be listened on.

    Seconds pass before Serve listens, and Ray's processes take ports meanwhile: a free one is looked for where
    neither they (10002 to 19999) nor the system (from 32768) take any.
    """
    if not port:
        for port in random.sample(range(20_000, 32_768), 20):
            with suppress(BadInput):
                return free_port(host, port)
        port = 0
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
    except socket.gaierror:
        raise BadInput(f"{host} is not a host of this machine; use --host 127.0.0.1.") from None
    with socket.socket(family, kind, protocol) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(address)
        except PermissionError:
            raise BadInput(f"Port {port} is reserved for the system; choose one above 1023 with --port.") from None
        except OSError as error:
            if port and error.errno == errno.EADDRINUSE:
                raise BadInput(f"Port {port} is in use; choose another with --port.") from None
            raise BadInput(f"Cannot listen on {host}: {error.strerror}; use --host 127.0.0.1.") from None
        return int(probe.getsockname()[1])


def _url(host: str, port: int) -> str:
    """Where this machine reaches a server that listens on the host."""
    reached = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(host, host)  # noqa: S104 (compared, not bound)
    return f"http://[{reached}]:{port}" if ":" in reached else f"http://{reached}:{port}"


def _start_ray(settings: Settings, elsewhere: bool) -> None:
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    os.environ.setdefault("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")
    logging.getLogger("ray.serve").setLevel(logging.WARNING)
    quiet: dict[str, Any] = {"logging_level": logging.ERROR, "log_to_driver": bool(os.environ.get("HYBRID_IR_DEBUG"))}
    if elsewhere:
        ray.init(**quiet)
        return
    wanted = settings.serve
    grouped = [kind for kind in (wanted.dense_scorer, wanted.sparse_scorer) for _ in range(kind.groups)]
    kinds = [wanted.graph_scorer, *grouped, wanted.controller, wanted.reasoner]
    kinds += [wanted.reranker] if settings.rerank else []
    kinds += [wanted.query_encoder] if wanted.query_encoder else []
    kinds += [wanted.graph_owner] * wanted.graph_owner.groups if wanted.graph_owner else []
    asked = sum(kind.num_cpus * max(kind.min_replicas, kind.max_replicas) for kind in kinds)
    asked += llm_cpus(settings)
    own_ray.start(
        # Logical CPUs: on a small machine replicas share the real ones rather than wait for ever.
        num_cpus=max(os.cpu_count() or 1, math.ceil(asked)),
        object_store_memory=OBJECT_STORE_BYTES,
        **quiet,
    )


def _start_serve(host: str, port: int) -> bool:
    """Whether Serve was started here; a Serve that runs already must listen where it was asked for."""
    client = _get_global_client(raise_if_no_controller_running=False)
    if client is None:
        serve.start(proxy_location="EveryNode", http_options={"host": host, "port": port})
        return True
    found = client.http_config
    if (found.host, found.port) != (host, port):
        raise Conflict(
            f"Ray Serve runs on this cluster already, on {found.host} port {found.port}: "
            f"use --host {found.host} --port {found.port}, or shut that Serve down first."
        )
    if APPLICATION in serve.status().applications:
        raise Conflict(
            f"This cluster serves an application {APPLICATION} already; change it with `serve deploy`, "
            "or end it with `serve shutdown`."
        )
    return False


def _drain(longest_request_s: float) -> None:
    """All parts would end at once, and a question in progress still asks them: so the controller goes first."""
    controller = serve.get_deployment_handle(CONTROLLER, APPLICATION)
    try:
        controller.broadcast("drain").results(timeout_s=longest_request_s)
        time.sleep(SETTLE_S)
    except Exception as error:  # it is ending anyway
        log.warning("Requests in progress were not waited for: %s", error)


def _delete() -> None:
    with suppress(TimeoutError):
        serve.delete(APPLICATION)


def _wait_until_ready(url: str) -> None:
    """Until the application runs and answers over HTTP."""
    end = time.monotonic() + START_TIMEOUT_S
    said = "no replica started"
    while time.monotonic() < end:
        found = serve.status().applications.get(APPLICATION)
        if found is not None and found.status == ApplicationStatus.DEPLOY_FAILED:
            raise Unavailable(f"The service could not start: {reason(found)}")
        if found is not None and found.status == ApplicationStatus.RUNNING:
            try:
                answer = httpx.get(f"{url}/readyz", timeout=10.0, trust_env=False)
                if answer.status_code == 200:
                    return
                said = answer.text[:300]
            except httpx.HTTPError as error:
                said = f"{url} does not answer ({type(error).__name__})"
        elif found is not None:
            said = reason(found)
        time.sleep(0.2)
    raise Unavailable(f"The service was not ready after {START_TIMEOUT_S:g} s: {said}")


def reason(found: serve.schema.ApplicationStatusOverview) -> str:
    """Why it does not run: the library's own sentence where a replica raised one."""
    texts = [found.message, *(deployment.message for deployment in found.deployments.values())]
    for text in texts:
        sentences = re.findall(r"^(?:ray\.exceptions\.\w+: )?hybrid_ir\.errors\.\w+: (.+)$", text, re.MULTILINE)
        if sentences:
            return str(sentences[-1])
    lines = [line for text in texts for line in text.splitlines() if line.strip()]
    return lines[-1] if lines else "Serve gives no reason."


def _wait_for_signal() -> None:
    try:
        with _sigterm_interrupts():
            threading.Event().wait()
    except KeyboardInterrupt:
        return


@contextmanager
def _sigterm_interrupts() -> Iterator[None]:
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    previous = signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, previous)
