"""Who may ask, how often, and what is written down of it."""

from __future__ import annotations

import asyncio
import json
import logging
import stat

import httpx
import pytest
from hypothesis import given
from hypothesis import strategies as st
from small_service import Quoting, SharedWords, chunks, small_manifest, small_store

from hybrid_ir import keys
from hybrid_ir.errors import BadInput, NotFound
from hybrid_ir.index.chunk_store import ChunkStore
from hybrid_ir.keys import ApiKey
from hybrid_ir.settings import ServeSettings, Settings
from serve.api import create_app
from serve.gateway import REREAD_S, JsonLines, Keys, Limiter, is_loopback
from serve.service import Service
from serve.switch import Served


@pytest.fixture
def file(tmp_path):
    return tmp_path / "keys.json"


@pytest.fixture
def ask(tmp_path):
    def ask(settings: ServeSettings, *requests, server=("127.0.0.1", 8000)):
        """Each request: (method, path, headers); one application for all."""
        manifest = small_manifest()
        graph, store = SharedWords(chunks()), ChunkStore(small_store(tmp_path), manifest)
        app = create_app(Served(Service(manifest, Settings(serve=settings), store, {"graph": graph}, Quoting(), {})))

        async def at(scope, receive, send):
            await app({**scope, "server": server}, receive, send)

        async def send():
            async with httpx.AsyncClient(transport=httpx.ASGITransport(at), base_url="http://any") as client:
                return [
                    await client.request(method, path, headers=headers, json={"query": "bats"})
                    for method, path, headers in requests
                ]

        return asyncio.run(send())

    return ask


def bearer(secret):
    return {"Authorization": f"Bearer {secret}"}


RETRIEVE = "POST", "/v1/retrieve"


def test_without_keys_only_loopback_is_served(ask):
    for server in (("127.0.0.1", 80), ("::1", 80), ("/run/app.sock", None)):
        assert ask(ServeSettings(), (*RETRIEVE, {}), server=server)[0].status_code == 200
    for server in (("10.0.0.7", 80), ("fe80::1", 80), ("service.example", 80), None, ("", None)):
        refused, alive = ask(ServeSettings(), (*RETRIEVE, {}), ("GET", "/healthz", {}), server=server)
        assert refused.status_code == 403
        assert "hybrid-ir keys add" in refused.json()["error"]["message"]
        assert alive.status_code == 200
        assert ask(ServeSettings(trusted_network=True), (*RETRIEVE, {}), server=server)[0].status_code == 200


def test_with_keys_every_question_needs_one_also_on_loopback(ask, file):
    _, secret = keys.add(file)
    wanted = ServeSettings(keys=str(file))
    good, none, wrong, other, basic, doubled = ask(
        wanted,
        (*RETRIEVE, bearer(secret)),
        (*RETRIEVE, {}),
        (*RETRIEVE, bearer(secret[:-1])),
        (*RETRIEVE, bearer("")),
        (*RETRIEVE, {"Authorization": f"Basic {secret}"}),
        (*RETRIEVE, bearer(f"{secret} {secret}")),
    )
    assert good.status_code == 200
    for refused in (none, wrong, other, basic, doubled):
        assert refused.status_code == 401
        assert refused.headers["www-authenticate"].startswith("Bearer")
        assert secret not in refused.text
    for path in ("/healthz", "/readyz", "/openapi.json"):
        assert ask(wanted, ("GET", path, {}))[0].status_code == 200
    assert ask(wanted, ("GET", "/v1/build", {}))[0].status_code == 401


def test_admin_needs_its_scope(ask, file):
    _, query = keys.add(file)
    _, admin = keys.add(file, ["admin"])
    one, two, three = ask(
        ServeSettings(keys=str(file)),
        ("GET", "/v1/admin/nothing", bearer(query)),
        ("GET", "/v1/admin/nothing", bearer(admin)),
        (*RETRIEVE, bearer(admin)),
    )
    assert (one.status_code, two.status_code, three.status_code) == (403, 404, 200)


def test_a_key_has_its_rate_and_others_theirs(ask, file):
    _, slow = keys.add(file, per_minute=2)
    _, free = keys.add(file)
    answers = ask(ServeSettings(keys=str(file)), *[(*RETRIEVE, bearer(slow))] * 4, (*RETRIEVE, bearer(free)))
    assert [answer.status_code for answer in answers] == [200, 200, 429, 429, 200]
    assert 1 <= int(answers[2].headers["retry-after"]) <= 31


@given(st.integers(1, 1000), st.lists(st.floats(0, 100), min_size=1, max_size=60))
def test_no_key_gets_more_than_a_minutes_worth_and_its_rate(per_minute, pauses):
    now = 0.0
    limiter = Limiter(lambda: now)
    key = ApiKey(id="k", sha256="", scopes=("query",), per_minute=per_minute, created="2026-01-01")
    let = 0
    for pause in pauses:
        now += pause
        wait = limiter.wait(key)
        let += not wait
        if wait:  # and after the wait it is let through
            now += wait + 1e-6
            assert limiter.wait(key) == 0.0
            let += 1
    assert let <= per_minute + now * per_minute / 60 + 1e-6


def test_a_file_holds_no_key_and_is_its_owners(file):
    key, secret = keys.add(file, note="Ward 7")
    text = file.read_text(encoding="utf-8")
    assert secret not in text
    assert secret.split("_", 2)[2] not in text
    assert key.sha256 in text
    assert stat.S_IMODE(file.stat().st_mode) == 0o600


def test_a_revoked_key_is_refused_soon_and_a_broken_file_costs_no_key(file, caplog):
    _, one = keys.add(file)
    two, other = keys.add(file)
    now = 0.0
    held = Keys(str(file), lambda: now)
    assert held.find(one)
    keys.revoke(file, two.id)
    now += REREAD_S
    assert held.find(other) is None
    assert held.find(one)
    good = file.read_text(encoding="utf-8")
    file.write_text(good[: len(good) // 2], encoding="utf-8")
    now += REREAD_S
    assert held.find(one)
    assert "not a file of keys" in caplog.text
    file.unlink()
    now += REREAD_S
    assert held.find(one)


def test_bad_files_of_keys_are_named(file):
    with pytest.raises(NotFound, match="hybrid-ir keys add"):
        Keys(str(file))
    for text in ("", "[]", '{"keys": [{"id": 1}]}', "\x00"):
        file.write_text(text, encoding="utf-8")
        with pytest.raises(BadInput, match="not a file of keys"):
            keys.read(file)
    file.unlink()
    keys.add(file)
    with pytest.raises(NotFound, match="no key"):
        keys.revoke(file, "absent")
    with pytest.raises(BadInput, match="cannot be written"):
        keys.add(file.parent / "nowhere" / "keys.json")


@pytest.mark.parametrize(("given", "kept"), [("a-b_c.9", True), ("x" * 65, False), ("a b", False), ("ä", False)])
def test_a_request_keeps_its_id_where_it_is_one(ask, given, kept):
    (answer,) = ask(ServeSettings(), ("GET", "/healthz", {"X-Request-ID": given.encode("latin-1")}))
    assert (answer.headers["x-request-id"] == given) == kept
    assert len(answer.headers["x-request-id"]) in (32, len(given))


def test_the_log_has_a_line_a_request_without_its_text_or_key(ask, file, caplog):
    key, secret = keys.add(file)
    with caplog.at_level(logging.INFO, "hybrid_ir.access"):
        ask(
            ServeSettings(keys=str(file)),
            (*RETRIEVE, bearer(secret)),
            ("GET", "/v1/chunks/secret-name%231", bearer(secret)),
            (*RETRIEVE, bearer("wrong")),
        )
    lines = [json.loads(JsonLines().format(record)) for record in caplog.records if record.name == "hybrid_ir.access"]
    assert [line["status"] for line in lines] == [200, 404, 401]
    assert [line["key"] for line in lines] == [key.id, key.id, None]
    assert lines[0]["route"] == "/v1/retrieve"
    assert lines[0]["build_id"] == small_manifest().build_id
    assert lines[0]["ms"] >= 0
    said = json.dumps(lines)
    assert "bats" not in said
    assert secret not in said
    assert "secret-name" not in said
    assert "wrong" not in said


def test_loopback_is_an_address_and_no_name_that_looks_like_one():
    assert is_loopback(("127.9.9.9", 1))
    assert is_loopback(("localhost", 1))
    assert not is_loopback(("127.0.0.1.example", 1))
    assert not is_loopback(("192.168.0.1", 1))
