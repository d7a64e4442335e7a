"""The models that settings name, fetched once and checked, so that no worker downloads anything at start.

They lie in one folder, ``HYBRID_IR_MODELS`` (default: ``~/.cache/hybrid-ir/models``), each under its hub
name, with a record of its commit and the sha256 of every file.  Where it lies, the encoders take it from
there and ask no hub.
"""

from __future__ import annotations

import hashlib
import os
import shutil
from collections.abc import Iterator
from pathlib import Path

from pydantic import BaseModel, ValidationError

from hybrid_ir.errors import BadInput, Damaged, Failed
from hybrid_ir.records import Record
from hybrid_ir.settings import EncoderSettings, GFMSettings, RerankSettings, Settings
from hybrid_ir.store import Store

RECORD = "hybrid-ir-model.json"
WANTED = ("*.json", "*.txt", "*.model", "*.safetensors", "*.pth")
"""Of a hub repository; code and other forms of the same weights (ONNX, TensorFlow, ``.bin``) are left there."""
PLAIN_WEIGHTS = ("pytorch_model*.bin",)
"""Taken where a repository has no safetensors."""


class FetchedModel(Record):
    """What was fetched."""

    name: str
    commit: str
    """The hub's, or of a mirror the record's own."""
    files: dict[str, str]
    """Path inside the folder -> sha256."""


class NamedModel(Record):
    """A model that a settings file names, and where it is."""

    name: str
    used_by: tuple[str, ...]
    state: str
    """``package``, ``folder``, ``fetched``, or ``missing``."""
    where: str
    commit: str | None = None


def models_folder() -> Path:
    named = os.environ.get("HYBRID_IR_MODELS")
    return Path(named).expanduser() if named else Path.home() / ".cache" / "hybrid-ir" / "models"


def named(settings: Settings) -> list[NamedModel]:
    """Every model that the settings name, each once, and where it would be taken from."""
    used: dict[str, list[str]] = {}
    for model, by in _walk(settings, ""):
        used.setdefault(model, []).append(by)
    return [_where(model, tuple(by)) for model, by in sorted(used.items())]


def fetched(name: str) -> tuple[Path, FetchedModel] | None:
    """The folder and record of a model that was fetched."""
    folder = models_folder() / name
    if not (folder / RECORD).is_file():
        return None
    try:
        return folder, FetchedModel.model_validate_json((folder / RECORD).read_text(encoding="utf-8"))
    except ValidationError as error:
        raise Damaged(f"{folder / RECORD}: not a record of a model; fetch {name} again.") from error


def fetch(name: str, revision: str | None = None, mirror: str | None = None) -> FetchedModel:
    """Bring a model into the folder, from the hub or from a mirror (``s3://…`` or a folder made like ours).

    A model that is there whole is not brought again.  Nothing is left of one that did not arrive whole.

    Raises BadInput where there is no such model, and Failed where the hub or mirror does not answer.
    """
    held = fetched(name)
    if held is not None and revision in (None, held[1].commit) and not faults(name):
        return held[1]
    folder = models_folder() / name
    partial = folder.with_name(folder.name + ".partial")
    shutil.rmtree(partial, ignore_errors=True)
    partial.mkdir(parents=True)
    commit = _from_mirror(name, mirror, partial) if mirror else _from_hub(name, revision, partial)
    record = FetchedModel(name=name, commit=commit, files=dict(_hashes(partial)))
    if not any(file.endswith((".safetensors", ".bin", ".pth")) for file in record.files):
        shutil.rmtree(partial)
        raise BadInput(f"{name} holds no weights in a form that is read here (safetensors, bin or pth).")
    (partial / RECORD).write_text(record.model_dump_json(indent=1) + "\n", encoding="utf-8")
    shutil.rmtree(folder, ignore_errors=True)
    partial.rename(folder)
    return record


def faults(name: str) -> list[str]:
    """What is wrong with a fetched model's files: missing, or changed since they were fetched."""
    held = fetched(name)
    if held is None:
        return [f"{name} is not fetched"]
    folder, record = held
    now = dict(_hashes(folder))
    return [
        f"{folder / file} {'is missing' if file not in now else 'is not what was fetched'}"
        for file, digest in sorted(record.files.items())
        if now.get(file) != digest
    ]


def _walk(group: BaseModel, path: str) -> Iterator[tuple[str, str]]:
    """(model, where in the settings it is named); language models are served elsewhere and are no files here."""
    if isinstance(group, EncoderSettings | GFMSettings | RerankSettings):
        yield group.model, f"{path}.model"
        if isinstance(group, EncoderSettings) and group.query_model:
            yield group.query_model, f"{path}.query_model"
    for name in type(group).model_fields:
        inside = getattr(group, name)
        if isinstance(inside, BaseModel):
            yield from _walk(inside, f"{path}.{name}".lstrip("."))


def _where(model: str, used_by: tuple[str, ...]) -> NamedModel:
    if model.startswith("package:"):
        return NamedModel(name=model, used_by=used_by, state="package", where="an installed package")
    if Path(model).is_dir():
        return NamedModel(name=model, used_by=used_by, state="folder", where=str(Path(model).absolute()))
    held = fetched(model)
    if held is None:
        return NamedModel(name=model, used_by=used_by, state="missing", where=str(models_folder() / model))
    return NamedModel(name=model, used_by=used_by, state="fetched", where=str(held[0]), commit=held[1].commit)


def _from_hub(name: str, revision: str | None, into: Path) -> str:
    from huggingface_hub import HfApi, snapshot_download
    from huggingface_hub.errors import HFValidationError, RepositoryNotFoundError, RevisionNotFoundError

    try:
        about = HfApi().model_info(name, revision=revision)
        files = [file.rfilename for file in about.siblings or []]
        patterns = list(WANTED if any(f.endswith((".safetensors", ".pth")) for f in files) else WANTED + PLAIN_WEIGHTS)
        snapshot_download(name, revision=about.sha, local_dir=into, allow_patterns=patterns)
    except (RepositoryNotFoundError, RevisionNotFoundError, HFValidationError) as error:
        shutil.rmtree(into)
        raise BadInput(f"{name}: the hub has no such model, or no such revision, for you.") from error
    except Exception as error:  # of the network, the hub, the disk: the library names dozens
        shutil.rmtree(into)
        reason = (str(error).strip().splitlines() or [type(error).__name__])[0]
        raise Failed(f"{name} could not be fetched ({reason}). Run the same command again, or use --mirror.") from error
    shutil.rmtree(into / ".cache", ignore_errors=True)
    return str(about.sha)


def _from_mirror(name: str, mirror: str, into: Path) -> str:
    store = Store(mirror)
    if not store.exists(f"{name}/{RECORD}"):
        shutil.rmtree(into)
        raise BadInput(f"{store.path(name)} holds no {RECORD}; fill a mirror by copying a models folder to it.")
    record = FetchedModel.model_validate_json(store.read(f"{name}/{RECORD}"))
    for file, digest in record.files.items():
        target = into / file
        if not target.resolve().is_relative_to(into.resolve()):
            raise BadInput(f"{store.path(name)}/{RECORD} names a file outside its folder: {file}.")
        target.parent.mkdir(parents=True, exist_ok=True)
        with store.local(f"{name}/{file}").open("rb") as source, target.open("wb") as sink:
            shutil.copyfileobj(source, sink)
        if _sha256(target) != digest:
            shutil.rmtree(into)
            raise Damaged(f"{store.path(f'{name}/{file}')} does not match the mirror's record of it.")
    return record.commit


def _hashes(folder: Path) -> Iterator[tuple[str, str]]:
    for path in sorted(folder.rglob("*")):
        if path.is_file() and path.name != RECORD:
            yield path.relative_to(folder).as_posix(), _sha256(path)


def _sha256(path: Path) -> str:
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()
