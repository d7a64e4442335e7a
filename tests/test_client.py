"""A service's refusals become the library's errors, each with the service's own sentence."""

import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from hybrid_ir import client
from hybrid_ir.errors import BadInput, NotFound, Unavailable


class Service(BaseHTTPRequestHandler):
    def answer(self):
        status = int(self.path.strip("/") or 200)
        body = {"error": {"message": f"said {status}"}} if status >= 400 else {"key": self.headers["Authorization"]}
        self.reply(status, json.dumps(body))

    def reply(self, status, text):
        self.send_response(status)
        self.end_headers()
        self.wfile.write(text.encode())

    def do_GET(self):
        if self.path == "/page":
            self.reply(200, "<html>")
        else:
            self.answer()

    def do_POST(self):
        self.rfile.read(int(self.headers["Content-Length"]))
        if self.path == "/broken":
            self.reply(
                200, 'event: round\ndata: {"n": 1}\n\nevent: error\ndata: {"error": {"message": "it broke"}}\n\n'
            )
        elif self.path == "/busy":
            self.reply(200, 'event: error\ndata: {"error": {"message": "full", "type": "unavailable"}}\n\n')
        elif self.path == "/bare":
            self.reply(503, "<html>proxy</html>")
        else:
            self.answer()

    def log_message(self, *arguments):
        pass


@pytest.fixture(scope="module")
def url():
    server = ThreadingHTTPServer(("127.0.0.1", 0), Service)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()


@pytest.mark.parametrize(
    ("status", "kind"), [(400, BadInput), (401, BadInput), (404, NotFound), (429, Unavailable), (503, Unavailable)]
)
def test_the_status_says_which_error(url, status, kind):
    for ask in (lambda: client.get(url, f"/{status}"), lambda: client.post(url, f"/{status}", {})):
        with pytest.raises(kind, match=f"answered {status}: said {status}"):
            ask()
    with pytest.raises(kind):
        list(client.events(url, f"/{status}", {}))


def test_what_is_no_service_is_named(url):
    with pytest.raises(BadInput, match="no service of Hybrid-IR"):
        client.get(url, "/page")
    with pytest.raises(Unavailable, match="answered 503: <html>proxy"):
        client.post(url, "/bare", {})
    for nowhere in ("http://127.0.0.1:9", "http://[::1"):
        with pytest.raises(Unavailable, match="no service answers there"):
            client.get(nowhere, "/200")
    for odd in ("not a url", "127.0.0.1:8000", "file:///etc/hosts"):
        with pytest.raises(BadInput, match="write it as http://HOST:PORT"):
            client.get(odd, "/200")


def test_an_error_within_a_stream_is_raised_after_what_came(url):
    with pytest.raises(BadInput, match="it broke"):
        list(client.events(url, "/broken", {}))
    events = client.events(url, "/broken", {})
    assert next(events) == ("round", '{"n": 1}')
    with pytest.raises(Unavailable, match="full"):
        next(client.events(url, "/busy", {}))


def test_the_key_of_the_environment_is_sent(url, monkeypatch):
    monkeypatch.delenv("HYBRID_IR_KEY", raising=False)
    assert client.get(url, "/200") == {"key": None}
    monkeypatch.setenv("HYBRID_IR_KEY", "k1")
    assert client.post(url, "/200", {}) == {"key": "Bearer k1"}
