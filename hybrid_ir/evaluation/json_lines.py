"""Files of one JSON value a line, as people have them: a line that cannot be read costs itself alone."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from hybrid_ir.errors import BadInput, NotFound


def read(path: str | Path) -> Iterator[tuple[int, Any]]:
    """(line number, the parsed value or the ValueError that says why there is none), without blank lines.

    Lines end at a line feed alone: a JSON text may hold other separators as they are.  Raises NotFound where there is
    no such file, BadInput where it cannot be opened.
    """
    try:
        with Path(path).open("rb") as stream:
            for number, line in enumerate(stream, start=1):
                if line.strip():
                    yield number, _parsed(line)
    except FileNotFoundError:
        raise NotFound(f"{path}: no such file.") from None
    except OSError as error:
        raise BadInput(f"{path}: cannot be read ({error.strerror}).") from error


def _parsed(line: bytes) -> Any:
    try:
        return json.loads(line.decode("utf-8-sig"))
    except UnicodeDecodeError as error:
        return ValueError(f"not UTF-8 text ({error.reason} at byte {error.start})")
    except (ValueError, RecursionError) as error:
        return ValueError(f"not valid JSON ({error})")
