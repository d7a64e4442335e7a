"""What a language model's replies depend on, as far as its settings and files tell."""

from __future__ import annotations

import hashlib
import json
from importlib import metadata
from pathlib import Path

from hybrid_ir import models
from hybrid_ir.settings.llm import EndpointSettings, LLMSettings, VLLMSettings

PACKAGE = "package:"
_SMALL = 2**20
_ENGINE = ("dtype", "quantization", "chat_template", "hf_overrides", "structured_outputs_config", "lora_modules")
"""vLLM's arguments that change what it writes; the others are about speed and memory."""


def sampling_fingerprint(settings: LLMSettings) -> dict[str, str]:
    """Model, revision, and how it samples; not where it runs nor how many calls run at once."""
    found = {
        "model": settings.model,
        "revision": revision(settings),
        "temperature": f"{settings.temperature:g}",
        "max_tokens": str(settings.max_tokens),
        "seed": str(settings.seed),
        "structured": "json_schema",
    }
    if isinstance(settings, EndpointSettings):
        found["structured"] = settings.structured
        if settings.extra_body:
            found["extra_body"] = json.dumps(settings.extra_body, sort_keys=True)
    elif isinstance(settings, VLLMSettings):
        engine = {name: settings.engine[name] for name in _ENGINE if name in settings.engine}
        if engine:
            found["engine"] = json.dumps(engine, sort_keys=True, default=str)
    return found


def revision(settings: LLMSettings) -> str:
    """The hub's commit, a package's version, or a hash that tells two versions of files apart; empty: unknown.

    Of weights only names, sizes and ends are hashed: gigabytes are not read for it.
    """
    if settings.model.startswith(PACKAGE):
        package = settings.model.removeprefix(PACKAGE).partition("/")[0]
        try:
            return metadata.version(package)
        except metadata.PackageNotFoundError:
            return ""
    path = Path(settings.model)
    if not isinstance(settings, EndpointSettings) and path.exists():
        files = sorted(path.rglob("*")) if path.is_dir() else [path]
        whole = hashlib.sha256()
        for file in (file for file in files if file.is_file()):
            size = file.stat().st_size
            with file.open("rb") as stream:
                head = stream.read(_SMALL)
                stream.seek(max(0, size - _SMALL))
                tail = stream.read(_SMALL)
            name = file.relative_to(path).as_posix() if path.is_dir() else file.name
            whole.update(f"{name}\0{size}\0".encode() + hashlib.sha256(head + tail).digest())
        return whole.hexdigest()[:16]
    held = None if isinstance(settings, EndpointSettings) else models.fetched(settings.model)
    return held[1].commit if held is not None else settings.revision or ""
