"""Faults of an object store: which pass by themselves, and a sentence for those that do not."""

from __future__ import annotations

import logging
import random
import re
import time
from collections.abc import Callable
from typing import TypeVar

from botocore.exceptions import (  # type: ignore[import-untyped]
    BotoCoreError,
    ClientError,
    ConnectTimeoutError,
    EndpointConnectionError,
    HTTPClientError,
    IncompleteReadError,
    NoCredentialsError,
    PartialCredentialsError,
    ProfileNotFound,
    ProxyConnectionError,
)

from hybrid_ir.errors import BadInput, HybridIRError, NotFound, Unavailable

T = TypeVar("T")
log = logging.getLogger(__name__)

TRIES = 10
FIRST_PAUSE_S = 0.5
LONGEST_PAUSE_S = 20.0
"""A pause is drawn evenly from 0 to min(longest, first * 2^n): all ten tries take 45 s on average, 91 s at most."""

PASSING_STATUS = {408, 409, 429, 500, 502, 503, 504}
"""409: another conditional write was under way."""
PASSING_ERRORS = (
    HTTPClientError,
    EndpointConnectionError,
    ConnectTimeoutError,
    ProxyConnectionError,
    IncompleteReadError,
    ConnectionError,
)
PASSING_CODES = re.compile(
    r"SlowDown|Throttl|TooManyRequests|RequestLimit|RequestTimeout|InternalError|ServiceUnavailable"
)
DENIED = re.compile(r"AccessDenied|InvalidAccessKey|Signature|ExpiredToken|InvalidToken|Forbidden")


def retried(action: Callable[[], T], path: str, endpoint: str | None) -> T:
    """Do it, again where the fault may pass.  Raises FileNotFoundError, or a sentence a person can act on."""
    for attempt in range(1, TRIES + 1):
        try:
            return action()
        except (BotoCoreError, ClientError, ConnectionError) as error:
            if status(error) == 404 and code(error) not in ("NoSuchBucket", "NoSuchUpload"):
                raise FileNotFoundError(path) from error
            if not passes(error):
                raise fault(error, path, endpoint) from error
            if attempt == TRIES:
                raise Unavailable(
                    f"{path}: the object store{_at(endpoint)} did not do it in {TRIES} tries ({_first_line(error)}). "
                    "Check the network and AWS_ENDPOINT_URL, then run the same command again."
                ) from error
            pause = random.uniform(0, min(LONGEST_PAUSE_S, FIRST_PAUSE_S * 2 ** (attempt - 1)))  # noqa: S311
            level = logging.WARNING if attempt > 2 else logging.INFO
            log.log(level, "%s: %s; try %d of %d in %.1f s", path, _first_line(error), attempt + 1, TRIES, pause)
            time.sleep(pause)
    raise AssertionError("unreachable")


def status(error: Exception) -> int:
    """The HTTP status of botocore's error; 0 where there is none."""
    found = getattr(error, "response", {}) or {}
    return int(found.get("ResponseMetadata", {}).get("HTTPStatusCode", 0))


def code(error: Exception) -> str:
    """S3's own name for the fault."""
    found = getattr(error, "response", {}) or {}
    return str(found.get("Error", {}).get("Code", ""))


def passes(error: Exception) -> bool:
    """Whether the same request may succeed a little later."""
    if isinstance(error, ClientError):
        return status(error) in PASSING_STATUS or bool(PASSING_CODES.search(code(error)))
    return isinstance(error, PASSING_ERRORS)


def fault(error: Exception, path: str, endpoint: str | None) -> HybridIRError:
    """What to tell a person about a fault that stays."""
    if code(error) == "NoSuchBucket":
        return NotFound(no_bucket(path, endpoint))
    if isinstance(error, NoCredentialsError | PartialCredentialsError | ProfileNotFound):
        return BadInput(
            f"{path}: no credentials ({_first_line(error)}). "
            "Set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or name a profile that exists in AWS_PROFILE."
        )
    if status(error) == 301 or code(error) in ("PermanentRedirect", "AuthorizationHeaderMalformed"):
        return BadInput(f"{path}: the bucket lies in another region. Set AWS_REGION to the bucket's.")
    if DENIED.search(code(error)) or status(error) == 403:
        return BadInput(
            f"{path}: access denied ({_first_line(error)}). Check the credentials (AWS_ACCESS_KEY_ID and "
            "AWS_SECRET_ACCESS_KEY, or AWS_PROFILE) and that they may read, write, list and delete there."
        )
    return BadInput(f"{path}: the object store{_at(endpoint)} refused ({_first_line(error)}).")


def no_bucket(path: str, endpoint: str | None) -> str:
    bucket = "/".join(path.split("/")[:3])
    return f"{bucket}: no such bucket{_at(endpoint)}. Create it, or check its name and AWS_ENDPOINT_URL."


def _at(endpoint: str | None) -> str:
    return f" at {endpoint}" if endpoint else ""


def _first_line(error: Exception) -> str:
    return str(error).strip().partition("\n")[0][:300].rstrip(".")
