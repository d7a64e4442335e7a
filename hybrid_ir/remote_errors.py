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
    HTTPClientError,
    IncompleteReadError,
    NoCredentialsError,
    PartialCredentialsError,
    ProfileNotFound,
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
PASSING_CODES = re.compile(
    r"SLOW_?DOWN|THROTTL|TOO_?MANY_?REQUESTS|REQUEST_?LIMIT|NETWORK_CONNECTION|SERVICE_UNAVAILABLE|INTERNAL_(FAILURE|ERROR)"
    r"|REQUEST_TIMEOUT|HTTP status (408|409|429|50[0234])\b|curlCode: (7|18|28|35|52|55|56)\b"
    r"|timed? ?out|connection reset",
    re.IGNORECASE,
)
"""pyarrow's errors are text: ``AWS Error SLOW_DOWN during GetObject operation: …``."""
DENIED = re.compile(r"ACCESS_?DENIED|INVALID_?ACCESS_?KEY|SIGNATURE|EXPIRED_?TOKEN|FORBIDDEN|\b403\b", re.IGNORECASE)


def retried(action: Callable[[], T], path: str, endpoint: str | None) -> T:
    """Do it, again where the fault may pass.  Raises FileNotFoundError, or a sentence a person can act on."""
    for attempt in range(1, TRIES + 1):
        try:
            return action()
        except (OSError, BotoCoreError, ClientError) as error:
            if _is_missing(error):
                raise FileNotFoundError(path) from error
            if isinstance(error, OSError) and error.errno is not None and not isinstance(error, ConnectionError):
                raise  # of this machine's own disk
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
    if isinstance(error, HTTPClientError | IncompleteReadError | ConnectionError):
        return True
    return isinstance(error, OSError) and bool(PASSING_CODES.search(str(error)))


def fault(error: Exception, path: str, endpoint: str | None) -> HybridIRError:
    """What to tell a person about a fault that stays."""
    text = f"{code(error)} {error}"
    if re.search(r"NO_?SUCH_?BUCKET|Bucket '.*' not found", text, re.IGNORECASE):
        return NotFound(no_bucket(path, endpoint))
    if isinstance(error, NoCredentialsError | PartialCredentialsError | ProfileNotFound):
        return BadInput(
            f"{path}: no credentials ({_first_line(error)}). "
            "Set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or name a profile that exists in AWS_PROFILE."
        )
    if re.search(r"PermanentRedirect|AuthorizationHeaderMalformed|MOVED_PERMANENTLY|\b301\b", text, re.IGNORECASE):
        return BadInput(f"{path}: the bucket lies in another region. Set AWS_REGION to the bucket's.")
    if DENIED.search(text) or status(error) == 403:
        return BadInput(
            f"{path}: access denied ({_first_line(error)}). Check the credentials (AWS_ACCESS_KEY_ID and "
            "AWS_SECRET_ACCESS_KEY, or AWS_PROFILE) and that they may read, write, list and delete there."
        )
    return BadInput(f"{path}: the object store{_at(endpoint)} refused ({_first_line(error)}).")


def no_bucket(path: str, endpoint: str | None) -> str:
    bucket = "/".join(path.split("/")[:3])
    return f"{bucket}: no such bucket{_at(endpoint)}. Create it, or check its name and AWS_ENDPOINT_URL."


def _is_missing(error: Exception) -> bool:
    if isinstance(error, ClientError):
        return status(error) == 404 and code(error) != "NoSuchBucket"
    return isinstance(error, FileNotFoundError)


def _at(endpoint: str | None) -> str:
    return f" at {endpoint}" if endpoint else ""


def _first_line(error: Exception) -> str:
    return str(error).strip().partition("\n")[0][:300].rstrip(".")
