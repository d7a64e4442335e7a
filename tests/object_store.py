"""A real S3 server (moto) on loopback whose answers can be made to fail; for tests of object stores."""

import socket
from threading import Lock, Thread

import botocore.session
from moto.moto_server.werkzeug_app import DomainDispatcherApplication, create_backend_app
from werkzeug.serving import WSGIRequestHandler, make_server

ERROR = "<?xml version='1.0'?><Error><Code>{code}</Code><Message>{code}</Message></Error>"


class ObjectStore:
    """``fault(method, path, query)`` is asked at each request: an answer's (status, code), or how to break it.

    ``"reset"``: the connection is closed unanswered; ``"lost"``: the same, after the request was carried
    out; ``"cut"``: half the body, then the end.  None: no fault.
    """

    def __init__(self):
        self.fault = None
        self.requests, self.failed = [], 0
        self._app = DomainDispatcherApplication(create_backend_app)
        # S3 checks a condition and writes in one step; moto does so only when asked one thing at a time.
        self._one_at_a_time = Lock()
        self._server = make_server("127.0.0.1", 0, self._answer, threaded=True, request_handler=_Quiet)
        self.port = self._server.server_address[1]
        self.url = f"http://127.0.0.1:{self.port}"
        self._thread = Thread(target=self._server.serve_forever, daemon=True)

    def __enter__(self):
        self._thread.start()
        return self

    def __exit__(self, *_):
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def environment(self, cache):
        """What a process needs to find this server; ``cache``: a folder for its copies."""
        names = ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY")
        return {
            "AWS_ENDPOINT_URL": self.url,
            **dict.fromkeys(names, "testing"),
            "AWS_DEFAULT_REGION": "us-east-1",
            "AWS_EC2_METADATA_DISABLED": "true",
            "HYBRID_IR_CACHE": str(cache),
        }

    def make_bucket(self, name):
        environ = self.environment("")
        client = botocore.session.Session().create_client(
            "s3",
            endpoint_url=self.url,
            region_name="us-east-1",
            aws_access_key_id=environ["AWS_ACCESS_KEY_ID"],
            aws_secret_access_key=environ["AWS_SECRET_ACCESS_KEY"],
        )
        client.create_bucket(Bucket=name)

    def reset(self):
        self.fault, self.requests, self.failed = None, [], 0

    def every_third(self, *answer):
        """From now on every third request fails with this answer."""
        count = iter(range(1, 1 << 30))
        self.fault = lambda *_: (answer if len(answer) > 1 else answer[0]) if next(count) % 3 == 0 else None

    def _answer(self, environ, start_response):
        with self._one_at_a_time:
            method, path, query = environ["REQUEST_METHOD"], environ["PATH_INFO"], environ.get("QUERY_STRING", "")
            self.requests.append(f"{method} {path}?{query}".removesuffix("?"))
            fault = self.fault(method, path, query) if self.fault else None
            if fault is None:
                return list(self._app(environ, start_response))
            self.failed += 1
            if isinstance(fault, tuple):
                _read(environ)
                status, code = fault
                body = b"" if method == "HEAD" else ERROR.format(code=code).encode()
                start_response(f"{status} {code}", [("Content-Type", "text/xml"), ("Content-Length", str(len(body)))])
                return [body]
            if fault == "reset":
                _read(environ)
            if fault in ("lost", "cut"):
                said = []
                body = b"".join(self._app(environ, lambda status, headers, *_: said.append((status, headers))))
                if fault == "cut":
                    start_response(*said[0])
                    return _Half(body, environ["werkzeug.socket"])
            environ["werkzeug.socket"].shutdown(socket.SHUT_RDWR)
            raise ConnectionResetError


def _read(environ):
    environ["wsgi.input"].read(int(environ.get("CONTENT_LENGTH") or 0))


class _Half:
    def __init__(self, body, connection):
        self._body, self._connection = body, connection

    def __iter__(self):
        yield self._body[: len(self._body) // 2]
        self._connection.shutdown(socket.SHUT_RDWR)


class _Quiet(WSGIRequestHandler):
    protocol_version = "HTTP/1.1"

    def log(self, *_):
        pass

    def connection_dropped(self, *_):
        pass
