"""The models that settings name, fetched once and checked, so that no worker downloads anything at start.

They lie in one folder, ``HYBRID_IR_MODELS`` (default: ``~/.cache/hybrid-ir/models``), each under its hub
name, with a record of its commit and the sha256 of every file.  Where it lies, encoders and language models
are taken from there and no hub is asked.  Of a hub repository with many GGUF files one is named:
``OWNER/NAME/FILE.gguf``.
"""

from __future__ import annotations

import hashlib
import importlib.util
import os
import shutil
from collections.abc import Iterator, Sequence
from fnmatch import fnmatch
from pathlib import Path
from typing import Literal, NamedTuple

from pydantic import BaseModel, ValidationError

from hybrid_ir.errors import BadInput, Conflict, Damaged, Failed
from hybrid_ir.records import Record
from hybrid_ir.settings import (
    EncoderSettings,
    EndpointSettings,
    GFMSettings,
    LlamaCppSettings,
    RerankSettings,
    Settings,
    VLLMSettings,
)
from hybrid_ir.store import Store

RECORD = "hybrid-ir-model.json"
WANTED = ("*.json", "*.txt", "*.model", "*.jinja")
"""Of a hub repository, beside the weights; code and other forms of the same weights (ONNX, TensorFlow) stay there."""
WEIGHTS = (("*.safetensors",), ("*.pth",), ("pytorch_model*.bin",))
"""The first form that a repository has is taken."""
WEIGHT_ENDINGS = (".safetensors", ".pth", ".bin", ".gguf")
TOKENIZERS = ("tokenizer.json", "tokenizer.model", "vocab.txt", "vocab.json")
GGUF = ".gguf"


State = Literal["package", "not installed", "folder", "endpoint", "fetched", "other revision", "missing"]


class FetchedModel(Record):
    """What was fetched."""

    name: str
    commit: str
    """The hub's, or of a mirror the record's own."""
    files: dict[str, str]
    """Path inside the folder -> sha256."""
    revision: str | None = None
    """The tag or branch that was asked for."""

    def is_revision(self, wanted: str | None) -> bool:
        return wanted in (None, self.commit, self.revision)

    def has_weights(self) -> bool:
        return any(file.endswith(WEIGHT_ENDINGS) for file in self.files)


class NamedModel(Record):
    """A model that a settings file names, and where it is."""

    name: str
    used_by: tuple[str, ...]
    state: State
    """``endpoint``: a language model that something else serves.  Of these the last three are in the hub."""
    where: str
    commit: str | None = None
    revision: str | None = None
    """The one that the settings want."""
    tokenizer_only: bool = False

    def to_fetch(self) -> bool:
        return self.state in ("fetched", "other revision", "missing")


class Use(NamedTuple):
    """One place of the settings that names a model."""

    model: str
    by: str
    revision: str | None = None
    tokenizer_only: bool = False
    served_at: str | None = None


def models_folder() -> Path:
    named = os.environ.get("HYBRID_IR_MODELS")
    return Path(named).expanduser() if named else Path.home() / ".cache" / "hybrid-ir" / "models"


def named(settings: Settings) -> list[NamedModel]:
    """Every model that the settings name, each once, and where it would be taken from.

    Raises BadInput where they want one model at two revisions.
    """
    used: dict[tuple[str, bool], list[Use]] = {}
    for use in _walk(settings, ""):
        used.setdefault((use.model, use.served_at is not None), []).append(use)
    return [_where(uses) for _, uses in sorted(used.items())]


def fetched(name: str) -> tuple[Path, FetchedModel] | None:
    """The folder and record of a model that was fetched."""
    folder = models_folder() / name
    if not (folder / RECORD).is_file():
        return None
    try:
        return folder, FetchedModel.model_validate_json((folder / RECORD).read_text(encoding="utf-8"))
    except ValidationError as error:
        raise Damaged(f"{folder / RECORD}: not a record of a model; fetch {name} again.") from error


def fetch(
    name: str, revision: str | None = None, mirror: str | None = None, tokenizer_only: bool = False
) -> FetchedModel:
    """Bring a model into the folder, from the hub or from a mirror (``s3://…`` or a folder made like ours).

    A model that is there whole is not brought again.  Nothing is left of one that did not arrive whole.

    Raises BadInput where there is no such model, and Failed where the hub or mirror does not answer.
    """
    held = fetched(name)
    if held is not None and held[1].is_revision(revision) and (tokenizer_only or held[1].has_weights()):  # noqa: SIM102
        if not faults(name):
            return held[1]
    folder = models_folder() / name
    partial = folder.with_name(folder.name + ".partial")
    shutil.rmtree(partial, ignore_errors=True)
    partial.mkdir(parents=True)
    if mirror:
        commit = _from_mirror(name, revision, mirror, partial)
    else:
        commit = _from_hub(name, revision, partial, tokenizer_only)
    record = FetchedModel(name=name, commit=commit, files=dict(_hashes(partial)), revision=revision)
    if not tokenizer_only and not record.has_weights():
        shutil.rmtree(partial)
        raise BadInput(f"{name} holds no weights in a form that is read here (safetensors, bin, pth or GGUF).")
    if tokenizer_only and not set(TOKENIZERS) & record.files.keys():
        shutil.rmtree(partial)
        raise BadInput(f"{name} holds no tokenizer.")
    (partial / RECORD).write_text(record.model_dump_json(indent=1) + "\n", encoding="utf-8")
    shutil.rmtree(folder, ignore_errors=True)
    partial.rename(folder)
    return record


def require(name: str, revision: str | None) -> tuple[Path, FetchedModel] | None:
    """As :func:`fetched`, of the revision that the settings pin.  Raises Conflict where another was fetched."""
    held = fetched(name)
    if held is not None and not held[1].is_revision(revision):
        raise Conflict(
            f"{held[0]} holds {name} at {held[1].commit}, and the settings want {revision}: "
            "run hybrid-ir models fetch --config FILE."
        )
    return held


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


def _walk(group: BaseModel, path: str) -> Iterator[Use]:
    if isinstance(group, EncoderSettings | GFMSettings | RerankSettings | VLLMSettings | LlamaCppSettings):
        yield Use(group.model, f"{path}.model", group.revision)
    if isinstance(group, EncoderSettings) and group.query_model:
        yield Use(group.query_model, f"{path}.query_model", group.query_revision)
    if isinstance(group, EndpointSettings):
        yield Use(group.model, f"{path}.model", group.revision, served_at=group.base_url)
        if group.tokenizer:
            yield Use(group.tokenizer, f"{path}.tokenizer", group.revision, tokenizer_only=True)
    for name in type(group).model_fields:
        inside = getattr(group, name)
        if isinstance(inside, BaseModel):
            yield from _walk(inside, f"{path}.{name}".lstrip("."))


def _where(uses: Sequence[Use]) -> NamedModel:
    model, served_at = uses[0].model, uses[0].served_at
    used_by = tuple(use.by for use in uses)
    revisions = {use.revision for use in uses} - {None}
    if len(revisions) > 1 and served_at is None:
        raise BadInput(f"{model} is wanted at two revisions, by {' and '.join(used_by)}; one folder holds one.")
    revision = next(iter(revisions), None)
    tokenizer_only = all(use.tokenizer_only for use in uses)

    def found(state: State, where: str | Path, commit: str | None = None) -> NamedModel:
        return NamedModel(
            name=model,
            used_by=used_by,
            state=state,
            where=str(where),
            commit=commit,
            revision=revision,
            tokenizer_only=tokenizer_only,
        )

    if served_at is not None:
        return found("endpoint", served_at)
    if model.startswith("package:"):
        package = model.removeprefix("package:").partition("/")[0]
        if importlib.util.find_spec(package) is None:
            return found("not installed", "a Python package")
        return found("package", "an installed package")
    if Path(model).exists():
        return found("folder", Path(model).absolute())
    held = fetched(model)
    if held is None or not (tokenizer_only or held[1].has_weights()):
        return found("missing", models_folder() / model)
    return found("fetched" if held[1].is_revision(revision) else "other revision", held[0], held[1].commit)


def _from_hub(name: str, revision: str | None, into: Path, tokenizer_only: bool) -> str:
    from huggingface_hub import HfApi, snapshot_download
    from huggingface_hub.errors import HFValidationError, RepositoryNotFoundError, RevisionNotFoundError

    owner, _, rest = name.partition("/")
    repository, _, file = rest.partition("/")
    repository = f"{owner}/{repository}" if repository else owner
    try:
        about = HfApi().model_info(repository, revision=revision)
        files = [sibling.rfilename for sibling in about.siblings or []]
        if file and file not in files:
            raise BadInput(f"{repository} has no file {file}.")
        patterns = [file] if file else _patterns(files, tokenizer_only)
        snapshot_download(
            repository, revision=about.sha, local_dir=into, allow_patterns=patterns, ignore_patterns=["original/*"]
        )
    except BadInput:
        shutil.rmtree(into)
        raise
    except (RepositoryNotFoundError, RevisionNotFoundError, HFValidationError) as error:
        shutil.rmtree(into)
        raise BadInput(f"{name}: the hub has no such model, or no such revision, for you.") from error
    except Exception as error:  # of the network, the hub, the disk: the library names dozens
        shutil.rmtree(into)
        reason = (str(error).strip().splitlines() or [type(error).__name__])[0]
        raise Failed(f"{name} could not be fetched ({reason}). Run the same command again, or use --mirror.") from error
    shutil.rmtree(into / ".cache", ignore_errors=True)
    return str(about.sha)


def _patterns(files: Sequence[str], tokenizer_only: bool) -> list[str]:
    """What to take of a repository; never its GGUF files, of which one is to be named."""
    if tokenizer_only:
        return list(WANTED)
    weights: tuple[str, ...] = next(
        (form for form in WEIGHTS if any(fnmatch(file, pattern) for file in files for pattern in form)), ()
    )
    if not weights and any(file.endswith(GGUF) for file in files):
        raise BadInput("This repository holds GGUF files: name one, OWNER/NAME/FILE.gguf.")
    return [*WANTED, *weights]


def _from_mirror(name: str, revision: str | None, mirror: str, into: Path) -> str:
    store = Store(mirror)
    if not store.exists(f"{name}/{RECORD}"):
        shutil.rmtree(into)
        raise BadInput(f"{store.path(name)} holds no {RECORD}; fill a mirror by copying a models folder to it.")
    record = FetchedModel.model_validate_json(store.read(f"{name}/{RECORD}"))
    if not record.is_revision(revision):
        shutil.rmtree(into)
        raise BadInput(f"{store.path(name)} is at {record.commit}, not at {revision}: fill the mirror with that one.")
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
