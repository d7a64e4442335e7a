"""What is done to a service that runs, its replicas being this process's children, and waiting for it."""

from __future__ import annotations

import os
import signal
import time
from contextlib import contextmanager

import httpx
import psutil
import pytest

from serve.run import Running


def wait_until_ready(service: Running) -> None:
    end = time.monotonic() + 60
    while time.monotonic() < end:
        ready = httpx.get(f"{service.url}/readyz", timeout=30, trust_env=False)
        # A path that hung is left out for a while after it is back.
        asked = {"query": "warfarin", "paths": ["dense"]}
        found = httpx.post(f"{service.url}/v1/retrieve", json=asked, timeout=30, trust_env=False)
        if {ready.status_code, found.status_code} == {200}:
            return
        time.sleep(0.2)
    pytest.fail("not ready again after 60 s")


def replica(name: str) -> psutil.Process:
    """The process of a deployment's replica; Ray's processes are this one's children."""
    for process in psutil.Process().children(recursive=True):
        try:
            title = " ".join(process.cmdline())
        except psutil.Error:
            continue
        if title.startswith("ray::ServeReplica") and f":{name}" in title:
            return process
    raise AssertionError(f"no replica of {name} runs")


@contextmanager
def stopped(name: str):
    """A replica that does not answer, and is not dead either."""
    process = replica(name)
    os.kill(process.pid, signal.SIGSTOP)
    try:
        yield
    finally:
        os.kill(process.pid, signal.SIGCONT)


def wait_for(condition) -> None:
    end = time.monotonic() + 180
    while not condition() and time.monotonic() < end:
        time.sleep(0.05)
    assert condition()
