"""Models are fetched once, from a hub or a mirror, with checksums; afterwards no hub is asked."""

from __future__ import annotations

import hashlib
import json
import shutil
import subprocess
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from hybrid_ir import models
from hybrid_ir.encoders.location import locate
from hybrid_ir.errors import BadInput, Conflict, Damaged
from hybrid_ir.settings import Settings

NAME, COMMIT = "tiny/encoder", "c" * 40
FILES = {
    "config.json": b'{"hidden_size": 8}',
    "model.safetensors": b"weights " * 100,
    "onnx/model.onnx": b"another form",
    "modeling_evil.py": b"print('never fetched')",
}


class Hub(BaseHTTPRequestHandler):
    """The few answers of a model hub that a download needs."""

    asked: list[str] = []  # noqa: RUF012

    def do_HEAD(self) -> None:
        self.do_GET()

    def do_GET(self) -> None:
        path = self.path.partition("?")[0]
        self.asked.append(f"{self.command} {path}")
        if path.startswith(f"/api/models/{NAME}"):
            siblings = [{"rfilename": name} for name in FILES]
            tree = [{"type": "file", "path": n, "size": len(d), "oid": self.tag(d)} for n, d in FILES.items()]
            about = {"id": NAME, "modelId": NAME, "sha": COMMIT, "siblings": siblings, "tags": [], "private": False}
            self.send("application/json", json.dumps(tree if "/tree/" in path else about).encode())
        elif path.startswith(f"/{NAME}/resolve/{COMMIT}/"):
            self.send("application/octet-stream", FILES[path.split("/", 5)[5]])
        else:
            self.send_response(404)
            self.send_header("X-Error-Code", "RepoNotFound")
            self.send_header("Content-Length", "0")
            self.end_headers()

    @staticmethod
    def tag(data: bytes) -> str:
        return hashlib.sha1(data).hexdigest()  # noqa: S324

    def send(self, kind: str, data: bytes) -> None:
        self.send_response(200)
        for name, value in (("Content-Type", kind), ("Content-Length", str(len(data))), ("X-Repo-Commit", COMMIT)):
            self.send_header(name, value)
        self.send_header("ETag", f'"{self.tag(data)}"')
        self.end_headers()
        if self.command == "GET":
            self.wfile.write(data)

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def hub() -> str:
    server = ThreadingHTTPServer(("127.0.0.1", 0), Hub)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    Hub.asked.clear()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()


def run(hub: str, folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """In a process of its own: the hub's library reads its environment when it is imported."""
    environment = {
        "HF_ENDPOINT": hub,
        "HYBRID_IR_MODELS": str(folder),
        "HF_HOME": str(folder / "hf"),
        "PATH": "/usr/bin",
    }
    command = [sys.executable, "-m", "hybrid_ir.cli", "models", *arguments]
    root = Path(__file__).parent.parent
    return subprocess.run(command, capture_output=True, text=True, env=environment, cwd=root, check=False)


@pytest.mark.slow
def test_a_model_is_fetched_once_checked_and_found_without_a_hub(hub: str, tmp_path: Path, monkeypatch) -> None:
    config = tmp_path / "settings.yaml"
    config.write_text(f"build: {{chunk_encoder: {{model: {NAME}}}}}")
    folder = tmp_path / "models"
    done = run(hub, folder, "fetch", "--config", str(config), "--json")
    assert done.returncode == 0, done.stderr
    (record,) = json.loads(done.stdout)["models"]
    assert (record["name"], record["commit"]) == (NAME, COMMIT)
    assert sorted(record["files"]) == ["config.json", "model.safetensors"]  # no code, no other form

    asked = len(Hub.asked)
    assert run(hub, folder, "fetch", "--config", str(config)).returncode == 0
    assert len(Hub.asked) == asked  # it is there whole
    assert run(hub, folder, "check", "--config", str(config)).returncode == 0
    monkeypatch.setenv("HYBRID_IR_MODELS", str(folder))
    found = locate(NAME)
    assert (found.name, found.revision(None)) == (NAME, COMMIT)
    assert found.folder == folder / NAME

    (folder / NAME / "config.json").write_text("{}")
    broken = run(hub, folder, "check", "--config", str(config))
    assert broken.returncode == 5
    assert "config.json is not what was fetched" in broken.stderr
    assert run(hub, folder, "fetch", "--config", str(config)).returncode == 0  # brought again
    assert models.faults(NAME) == []


@pytest.mark.slow
def test_a_model_that_is_not_there_and_a_hub_that_does_not_answer(hub: str, tmp_path: Path) -> None:
    missing = run(hub, tmp_path, "fetch", "tiny/none")
    assert missing.returncode == 2
    assert "the hub has no such model" in missing.stderr
    down = run("http://127.0.0.1:9", tmp_path, "fetch", NAME)
    assert down.returncode == 6
    assert "could not be fetched" in down.stderr
    assert not list(tmp_path.rglob("*.partial"))


def test_a_mirror_is_a_copy_of_a_models_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    mirror = tmp_path / "mirror"
    (mirror / NAME).mkdir(parents=True)
    (mirror / NAME / "model.safetensors").write_bytes(FILES["model.safetensors"])
    digest = hashlib.sha256(FILES["model.safetensors"]).hexdigest()

    def state(files: dict[str, str]) -> None:
        record = models.FetchedModel(name=NAME, commit=COMMIT, files=files)
        (mirror / NAME / models.RECORD).write_text(record.model_dump_json())

    monkeypatch.setenv("HYBRID_IR_MODELS", str(tmp_path / "here"))
    state({"model.safetensors": digest})
    assert models.fetch(NAME, mirror=str(mirror)).commit == COMMIT
    assert models.faults(NAME) == []
    shutil.rmtree(tmp_path / "here")
    state({"model.safetensors": "0" * 64})
    with pytest.raises(Damaged, match="does not match"):
        models.fetch(NAME, mirror=str(mirror))
    state({"../../outside.safetensors": digest})
    with pytest.raises((BadInput, Damaged)):
        models.fetch(NAME, mirror=str(mirror))
    assert not (tmp_path / "outside.safetensors").exists()
    with pytest.raises(BadInput, match="holds no"):
        models.fetch("tiny/none", mirror=str(mirror))
    assert models.fetched(NAME) is None


def test_the_settings_models_are_listed_with_where_they_are(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HYBRID_IR_MODELS", str(tmp_path))
    (default,) = models.named(Settings())
    assert (default.state, default.used_by) == ("package", ("build.chunk_encoder.model", "build.entity_encoder.model"))
    settings = Settings.model_validate(
        {
            "build": {"chunk_encoder": {"model": "ncbi/a", "query_model": "ncbi/q"}},
            "graph_path": {"scorer": "gfm", "gfm": {"model": str(tmp_path), "text_encoder": {"model": "st/mpnet"}}},
        }
    )
    found = {model.name: model for model in models.named(settings)}
    assert found["ncbi/a"].state == found["ncbi/q"].state == found["st/mpnet"].state == "missing"
    assert found[str(tmp_path)].state == "folder"
    assert found["st/mpnet"].used_by == ("graph_path.gfm.text_encoder.model",)


def llm_settings(**changes: object) -> Settings:
    return Settings.model_validate({"reasoner": {"kind": "llm", "llm": changes}})


def test_language_models_are_listed_each_by_how_it_is_served(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HYBRID_IR_MODELS", str(tmp_path))

    def state(settings: Settings, name: str) -> models.NamedModel:
        return next(model for model in models.named(settings) if model.name == name)

    vllm = state(llm_settings(backend="vllm", model="meta/llama", revision="v1"), "meta/llama")
    assert (vllm.state, vllm.revision, vllm.used_by) == ("missing", "v1", ("reasoner.llm.model",))
    endpoint = llm_settings(backend="openai", model="gpt", base_url="http://h/v1", tokenizer="meta/llama")
    assert (state(endpoint, "gpt").state, state(endpoint, "gpt").where) == ("endpoint", "http://h/v1")
    assert not state(endpoint, "gpt").to_fetch()
    assert (state(endpoint, "meta/llama").state, state(endpoint, "meta/llama").tokenizer_only) == ("missing", True)
    package = llm_settings(backend="llama_cpp", model="package:there_is_none")
    assert state(package, "package:there_is_none").state == "not installed"
    (tmp_path / "own.gguf").write_bytes(b"GGUF")
    file = str(tmp_path / "own.gguf")
    assert state(llm_settings(backend="llama_cpp", model=file), file).state == "folder"


def test_a_revision_is_pinned_and_another_one_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    mirror = tmp_path / "mirror"
    (mirror / NAME).mkdir(parents=True)
    (mirror / NAME / "model.safetensors").write_bytes(FILES["model.safetensors"])
    digest = hashlib.sha256(FILES["model.safetensors"]).hexdigest()
    held = models.FetchedModel(name=NAME, commit=COMMIT, files={"model.safetensors": digest}, revision="v1")
    (mirror / NAME / models.RECORD).write_text(held.model_dump_json())
    monkeypatch.setenv("HYBRID_IR_MODELS", str(tmp_path / "here"))
    with pytest.raises(BadInput, match="not at v2"):
        models.fetch(NAME, "v2", mirror=str(mirror))
    models.fetch(NAME, "v1", mirror=str(mirror))
    pinned = {"model": NAME, "revision": "v2"}
    settings = Settings.model_validate({"build": {"chunk_encoder": pinned}})
    (found,) = (model for model in models.named(settings) if model.name == NAME)
    assert (found.state, found.commit, found.revision) == ("other revision", COMMIT, "v2")
    assert locate(NAME, "v1").commit == locate(NAME, COMMIT).commit == COMMIT
    with pytest.raises(Conflict, match="the settings want v2"):
        locate(NAME, "v2")
    with pytest.raises(BadInput, match="is pinned"):
        locate("tiny/none", "v1")
    two = {"chunk_encoder": pinned, "entity_encoder": {"model": NAME, "revision": "v1"}}
    with pytest.raises(BadInput, match="two revisions"):
        models.named(Settings.model_validate({"build": two}))


def test_of_a_repository_the_first_form_of_weights_and_one_gguf_file_are_taken() -> None:
    assert models._patterns(["a.safetensors", "b.pth", "original/c.pth"], False) == [*models.WANTED, "*.safetensors"]
    assert models._patterns(["model.pth", "config.json"], False) == [*models.WANTED, "*.pth"]
    assert models._patterns(["pytorch_model.bin"], False)[-1] == "pytorch_model*.bin"
    assert models._patterns(["a.safetensors"], True) == list(models.WANTED)
    with pytest.raises(BadInput, match="name one"):
        models._patterns(["q4.gguf", "q8.gguf"], False)
