"""Errors on their way to a person: out of Ray, and into an HTTP response."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from contextvars import ContextVar
from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from starlette.exceptions import HTTPException

from hybrid_ir.errors import HybridIRError, Unavailable

log = logging.getLogger(__name__)

RETRY_AFTER_S = 2
"""What a client is told when a queue is full or a part does not answer."""


request_id: ContextVar[str] = ContextVar("request_id", default="")
"""Of the request that is being answered; the gateway sets it."""

TYPES = {
    400: "invalid_request",
    401: "unauthorized",
    403: "forbidden",
    404: "not_found",
    405: "method_not_allowed",
    409: "conflict",
    413: "too_large",
    429: "too_many_requests",
    500: "internal",
    503: "unavailable",
    504: "timed_out",
}
"""What a program may branch on; the sentence beside it is for a person, and may be worded anew."""


class Overloaded(Unavailable):
    """A queue is full."""

    http_status = 429


class TimedOut(HybridIRError, TimeoutError):
    """The question's time is over before a part of the service answered."""

    http_status = 504


def original(error: BaseException) -> BaseException:
    """The library's own error inside what Ray wrapped around it, or the error as it is."""
    inner: BaseException | None = error
    while inner is not None:
        cause = getattr(inner, "cause", None)
        # Ray's wrapper is an instance of the error's class too: what it wraps comes first.
        if isinstance(inner, HybridIRError) and not isinstance(cause, BaseException):
            return inner
        inner = cause if isinstance(cause, BaseException) else inner.__cause__
    return error


def install(app: FastAPI) -> None:
    """What the library or FastAPI raises leaves as a :class:`serve.schemas.ErrorBody`."""
    app.add_exception_handler(HybridIRError, _library_error)
    app.add_exception_handler(RequestValidationError, _invalid_request)
    app.add_exception_handler(HTTPException, _http_error)


def body(status: int, sentence: str) -> dict[str, dict[str, str]]:
    """What every error leaves as."""
    kind = TYPES.get(status, "invalid_request" if status < 500 else "internal")
    # What a client sent may be quoted in it, half a surrogate pair included.
    message = sentence.encode("utf-8", "replace").decode()
    return {"error": {"type": kind, "message": message, "request_id": request_id.get()}}


def response(status: int, sentence: str, headers: Mapping[str, str] | None = None) -> JSONResponse:
    return JSONResponse(body(status, sentence), status, headers)


async def _library_error(request: Request, error: Exception) -> JSONResponse:
    status = error.http_status if isinstance(error, HybridIRError) else 500
    headers = {"Retry-After": str(RETRY_AFTER_S)} if status in (429, 503) else None
    return response(status, str(error), headers)


async def _invalid_request(request: Request, error: Exception) -> JSONResponse:
    found = error.errors() if isinstance(error, RequestValidationError) else []
    return response(400, " ".join(sentences(found)) or "The request is not valid.")


async def _http_error(request: Request, error: Exception) -> JSONResponse:
    if not isinstance(error, HTTPException):
        return unexpected(request.method, request.url.path, error)
    said = {
        404: f"There is nothing at {request.url.path}; /docs lists what there is.",
        405: f"{request.method} is not possible at {request.url.path}; /docs lists what is.",
        400: "The body is not valid JSON in UTF-8.",
    }
    return response(error.status_code, said.get(error.status_code, str(error.detail)), error.headers)


def unexpected(method: str, path: str, error: Exception) -> JSONResponse:
    """For what nothing here foresaw: the reason goes into the log alone."""
    log.error("%s %s failed", method, path, exc_info=error)
    return response(500, "The service failed on this request; its log says why.")


def sentences(errors: Sequence[Mapping[str, Any]]) -> list[str]:
    """Pydantic's findings, each as a sentence that names the field."""
    return [_sentence(error) for error in errors]


def _sentence(error: Mapping[str, Any]) -> str:
    kind, message = str(error.get("type")), str(error.get("msg", "not valid"))
    # Beside fields pydantic names what it tried: a kind of value, in brackets.
    location = [str(part) for part in error.get("loc", ()) if "[" not in str(part) or kind == "extra_forbidden"]
    if location and location[0] in ("body", "path", "query"):  # where FastAPI read it, not a field
        location = location[1:]
    if kind == "json_invalid":
        where = f" (character {location[-1]})" if location else ""
        return f"The body is not valid JSON: {error.get('ctx', {}).get('error', message)}{where}."
    field = ".".join(location)[:100]
    if not field:
        return "Send a JSON object as the body, with the header Content-Type: application/json."
    if kind == "missing":
        return f"The field {field} is missing."
    if kind == "extra_forbidden":
        return f"The field {field} is unknown here; /docs lists the fields."
    message = message.removeprefix("Value error, ")
    return f"The field {field}: {message[:1].lower()}{message[1:]}."
