"""Errors on their way to a person: out of Ray, and into an HTTP response."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from starlette.exceptions import HTTPException

from hybrid_ir import errors
from hybrid_ir.errors import HybridIRError

log = logging.getLogger(__name__)

RETRY_AFTER_S = 2
"""What a client is told when a queue is full or a part does not answer."""


class Overloaded(errors.Unavailable):
    """A queue is full."""


class Unavailable(errors.Unavailable):
    """A deployment does not answer: its replica died, or none runs."""


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
    """Every error leaves as ``{"error": "<a sentence>"}``."""
    app.add_exception_handler(HybridIRError, _library_error)
    app.add_exception_handler(RequestValidationError, _invalid_request)
    app.add_exception_handler(HTTPException, _http_error)
    app.add_exception_handler(Exception, _unexpected)


def body(sentence: str) -> dict[str, str]:
    # What a client sent may be quoted in it, half a surrogate pair included.
    return {"error": sentence.encode("utf-8", "replace").decode()}


async def _library_error(request: Request, error: Exception) -> JSONResponse:
    status = error.http_status if isinstance(error, HybridIRError) else 500
    headers = {"Retry-After": str(RETRY_AFTER_S)} if status == 503 else None
    return JSONResponse(body(str(error)), status, headers)


async def _invalid_request(request: Request, error: Exception) -> JSONResponse:
    found = error.errors() if isinstance(error, RequestValidationError) else []
    return JSONResponse(body(" ".join(sentences(found)) or "The request is not valid."), 400)


async def _http_error(request: Request, error: Exception) -> JSONResponse:
    if not isinstance(error, HTTPException):
        return await _unexpected(request, error)
    said = {
        404: f"There is nothing at {request.url.path}; /docs lists what there is.",
        405: f"{request.method} is not possible at {request.url.path}; /docs lists what is.",
        400: "The body is not valid JSON in UTF-8.",
    }
    return JSONResponse(body(said.get(error.status_code, str(error.detail))), error.status_code, error.headers)


async def _unexpected(request: Request, error: Exception) -> JSONResponse:
    log.error("%s %s failed", request.method, request.url.path, exc_info=error)
    return JSONResponse(body("The service failed on this request; its log says why."), 500)


def sentences(errors: Sequence[Mapping[str, Any]]) -> list[str]:
    """Pydantic's findings, each as a sentence that names the field."""
    return [_sentence(error) for error in errors]


def _sentence(error: Mapping[str, Any]) -> str:
    kind, message = str(error.get("type")), str(error.get("msg", "not valid"))
    location = [str(part) for part in error.get("loc", ())]
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
