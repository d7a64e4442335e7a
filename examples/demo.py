"""The demo behind ``make demo``: index the sample corpus, serve it, ask a multi-hop question over HTTP."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
from pathlib import Path

import httpx

CORPUS = "examples/corpus"
ROOT = ".hybrid-ir/demo"
QUESTION = (
    "I explored caves on my holiday and was scratched on the hand. "
    "By which route could the infection that cave animals carry reach my central nervous system?"
)
READY_TIMEOUT_S = 300


def main() -> int:
    os.chdir(Path(__file__).parent.parent)  # citations name files as seen from the project
    say(f"1. Index the sample corpus ({CORPUS}) with Ray Data into {ROOT}")
    run("index", "--corpus", CORPUS, "--root", ROOT)

    port = free_port()
    url = f"http://127.0.0.1:{port}"
    say(f"2. Start Ray Serve on {url}: dense scorer, graph scorer, reasoner, loop controller")
    with Path(f"{ROOT}/serve.log").open("w") as log:
        server = subprocess.Popen(command("serve", "--root", ROOT, "--port", str(port)), stdout=log, stderr=log)
        try:
            wait_until_ready(server, url)
            say("3. Ask over HTTP: POST /v1/answer")
            run("ask", "--url", url, QUESTION)
        finally:
            say("4. Stop the service")
            server.terminate()
            server.wait(timeout=60)
    say("Next")
    print(
        f"""  ask your own     .venv/bin/hybrid-ir ask --root {ROOT} "Which drugs raise the level of warfarin?"
  compare paths    .venv/bin/hybrid-ir retrieve --root {ROOT} "rabies and bats" --k 5
  look inside      .venv/bin/hybrid-ir inspect --root {ROOT}
  your own files   .venv/bin/hybrid-ir index --corpus FOLDER --root MY-INDEX
  keep it serving  .venv/bin/hybrid-ir serve --root {ROOT}      then open http://127.0.0.1:8000/docs
A research tool: no medical device, and no advice to patients."""
    )
    return 0


def command(*arguments: str) -> list[str]:
    return [sys.executable, "-m", "hybrid_ir.cli", *arguments]


def run(*arguments: str) -> None:
    result = subprocess.run(command(*arguments), check=False)
    if result.returncode:
        sys.exit(result.returncode)


def wait_until_ready(server: subprocess.Popen[bytes], url: str) -> None:
    end = time.monotonic() + READY_TIMEOUT_S
    while time.monotonic() < end:
        if server.poll() is not None:
            sys.exit(f"The service ended with code {server.returncode}; see {ROOT}/serve.log")
        try:
            if httpx.get(f"{url}/readyz", timeout=10).is_success:
                return
        except httpx.HTTPError:
            pass
        time.sleep(0.5)
    sys.exit(f"The service was not ready after {READY_TIMEOUT_S} s; see {ROOT}/serve.log")


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def say(text: str) -> None:
    print(f"\n== {text}", flush=True)


if __name__ == "__main__":
    sys.exit(main())
