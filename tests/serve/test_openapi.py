"""Whatever the description of the interface allows, and much that it does not, is answered without a 5xx."""

from __future__ import annotations

import tempfile
from pathlib import Path

import schemathesis
from hypothesis import HealthCheck, settings
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import response_schema_conformance, status_code_conformance
from small_service import Quoting, SharedWords, chunks, small_manifest, small_store

from hybrid_ir.index.chunk_store import ChunkStore
from hybrid_ir.settings import Settings
from serve.api import create_app
from serve.service import Service
from serve.switch import Served


async def ready() -> None:
    return


def application():
    folder = tempfile.TemporaryDirectory()
    manifest = small_manifest()
    paths = {"graph": SharedWords(chunks()), "dense": SharedWords(chunks())}
    store = ChunkStore(small_store(Path(folder.name)), manifest)
    app = create_app(Served(Service(manifest, Settings(), store, paths, Quoting(), {"graph scorer": ready})))
    app.state.folder = folder  # as long as the application

    async def on_loopback(scope, receive, send):
        await app({**scope, "server": ("127.0.0.1", 8000)} if scope["type"] == "http" else scope, receive, send)

    return on_loopback


schema = schemathesis.openapi.from_asgi("/openapi.json", application())


@schema.parametrize()
@settings(max_examples=40, suppress_health_check=list(HealthCheck), deadline=None)
def test_no_request_breaks_the_service(case):
    case.call_and_validate(checks=[not_a_server_error, status_code_conformance, response_schema_conformance])
