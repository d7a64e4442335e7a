"""The front door: what scripts and people see, and what it says to bad input."""

import asyncio
import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time

import pytest

from hybrid_ir import cli
from hybrid_ir.api import _run
from hybrid_ir.errors import HybridIRError


@pytest.fixture
def run(capsys, monkeypatch):
    """A function: arguments -> (exit code, stdout, stderr)."""

    def call(*arguments):
        monkeypatch.setattr(sys, "argv", ["hybrid-ir", *map(str, arguments)])
        code = 0
        try:
            cli.main()
        except SystemExit as end:
            code = end.code or 0
        out, err = capsys.readouterr()
        return code, out, err

    return call


@pytest.mark.parametrize(
    "command", ["index", "update", "compact", "rollback", "gc", "ask", "retrieve", "serve", "inspect", "verify"]
)
def test_every_command_explains_itself(run, command):
    code, out, _ = run(command, "--help")
    assert code == 0
    assert "--root" in out
    assert len(out) > 200


def test_help_says_what_this_is_not(run):
    assert "no medical device" in run("--help")[1]


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["ask", "q", "--root", "ROOT"], "holds no index"),
        (["retrieve", "q", "--root", "ROOT"], "hybrid-ir index --corpus"),
        (["verify", "--root", "ROOT"], "holds no index"),
        (["inspect", "--root", "ROOT"], "holds no index"),
        (["gc", "--root", "ROOT"], "holds no index"),
        (["rollback", "--root", "ROOT"], "holds no index"),
        (["compact", "--root", "ROOT"], "holds no index"),
        (["update", "--root", "ROOT", "--delete", "x"], "holds no index"),
        (["ask", "q"], "either --root"),
        (["ask", "q", "--root", "ROOT", "--option", "Aspirin"], "write it as A=text"),
        (["ask", "q", "--root", "ROOT", "--option", "A=x", "--option", "A=y"], "given twice"),
        (["ask", "q", "--url", "http://127.0.0.1:9"], "no service answers"),
        (["ask", "q", "--url", "http://127.0.0.1:9", "--config", "x.yaml"], "--config needs --root"),
        (["serve", "--root", "ROOT", "--port", "99999"], "--port 99999: a port is"),
        (["ask", "q", "--root", "ROOT", "--config", "nowhere.yaml"], "nowhere.yaml: no such settings file"),
        (["retrieve", "q", "--root", "ROOT", "--year-from", "2010", "--year-to", "2000"], "no year is between"),
        (["index", "--corpus", "EMPTY", "--root", "ROOT"], "EMPTY"),
        (["index", "--corpus", "no-such-path", "--root", "ROOT"], "no-such-path"),
    ],
)
def test_errors_are_one_sentence_and_an_exit_code(run, tmp_path, arguments, sentence):
    (tmp_path / "EMPTY").mkdir()
    where = {"ROOT": str(tmp_path / "root"), "EMPTY": str(tmp_path / "EMPTY")}
    code, out, err = run(*(where.get(argument, argument) for argument in arguments))
    assert code in (2, 3, 4, 5, 6)
    assert sentence in err
    assert "Traceback" not in err
    assert out == ""
    assert not (tmp_path / "root" / "CURRENT").exists()


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("loop: {rounds: many}", "loop.rounds: "),
        ("loop: {turns: 3}", "loop.turns: there is no such key"),
        ("serve: {prot: 3}", "serve.prot: there is no such key; did you mean port?"),
        ("- a", "key: value"),
        ("loop: {}\na: [", "not a readable YAML file (line 2: "),
        ("build: {extractor: {kind: magic}}", "build.extractor: its kind is magic; it may be one of 'rules', 'llm'"),
        ("reasoner: {prompts: {gaps: x}}", "reasoner: its key kind is missing"),
        ("reasoner: {kind: llm}", "reasoner.llm: this key is missing"),
        ("reasoner: {kind: llm, llm: {backend: openai, model: m}}", "reasoner.llm.base_url: this key is missing"),
        ("reasoner: {kind: llm, llm: {backend: openai, model: m, base_url: u, key: k}}", "reasoner.llm.key: there is"),
    ],
)
def test_a_bad_settings_file_names_the_field(run, tmp_path, text, sentence):
    config = tmp_path / "c.yaml"
    config.write_text(text)
    code, _, err = run("ask", "q", "--root", tmp_path, "--config", config)
    assert code == 2
    assert "c.yaml: " in err
    assert sentence in err


def test_checking_models_says_that_an_endpoint_is_not_asked(run, tmp_path):
    config = tmp_path / "c.yaml"
    config.write_text("reasoner: {kind: llm, llm: {backend: openai, model: m, base_url: 'http://h/v1'}}")
    code, out, _ = run("models", "check", "--config", config)
    assert code == 0
    assert out == "1 model is there and whole.\nNot asked: m at http://h/v1\n"


def test_ctrl_c_cancels_what_runs():
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    ended = []

    async def work():
        threading.Timer(0.2, os.kill, (os.getpid(), signal.SIGINT)).start()
        try:
            await asyncio.sleep(60)
        finally:
            ended.append(time.monotonic())

    start = time.monotonic()
    try:
        with pytest.raises(KeyboardInterrupt):
            _run(work())
    finally:
        signal.signal(signal.SIGINT, before)
    assert len(ended) == 1
    assert time.monotonic() - start < 30


def test_ctrl_c_is_said_and_has_its_exit_code():
    # What a shell starts in the background ignores the signal.
    handled = "import signal; signal.signal(signal.SIGINT, signal.default_int_handler)"
    with socket.create_server(("127.0.0.1", 0)) as silent:
        url = f"http://127.0.0.1:{silent.getsockname()[1]}"
        command = f"{handled}; from hybrid_ir.cli import main; main()"
        asked = subprocess.Popen(
            [sys.executable, "-c", command, "ask", "q", "--url", url], stderr=subprocess.PIPE, text=True
        )
        with silent.accept()[0]:
            asked.send_signal(signal.SIGINT)
            _, said = asked.communicate(timeout=60)
    assert asked.returncode == 130
    assert said.startswith("Interrupted.")


@pytest.mark.slow
@pytest.mark.cluster
class TestOnTheSampleIndex:
    def test_ask(self, run, sample_root):
        question = "By which transport does the virus carried by bats reach the central nervous system?"
        code, out, _ = run("ask", question, "--root", sample_root)
        assert code == 0
        assert "Round 1" in out
        assert "graph" in out
        assert "dense" in out
        assert "axonal-transport.md, characters" in out
        code, out, _ = run("ask", question, "--root", sample_root, "--json", "--rounds", 1)
        answer = json.loads(out)
        assert len(answer["rounds"]) == 1
        evidence = {e["chunk"]["id"] for s in answer["rounds"][0]["sub_answers"] for e in s["retrieval"]["evidence"]}
        assert {c for s in answer["statements"] for c in s["citations"]} <= evidence

    def test_options(self, run, sample_root):
        arguments = ["ask", "Which enzyme does fluconazole inhibit?", "--root", sample_root, "--json"]
        code, out, _ = run(*arguments, "--option", "A=CYP2C9", "--option", "B=Thrombin")
        assert code == 0
        assert json.loads(out)["choice"] in ("A", "B")
        code, _, err = run(*arguments, "--option", "A1=x", "--option", "B=y")
        assert code == 2
        assert "letter" in err

    def test_retrieve(self, run, sample_root):
        code, out, _ = run("retrieve", "bats", "--root", sample_root, "--k", 3, "--json")
        assert code == 0
        assert len(json.loads(out)["evidence"]) == 3
        assert run("retrieve", "bats", "--root", sample_root, "--k", 0)[0] == 2
        assert "graph, dense, sparse" in run("retrieve", "bats", "--root", sample_root, "--paths", "lexical")[2]
        code, out, _ = run("retrieve", "bats", "--root", sample_root, "--k", 100000, "--json")
        assert len(json.loads(out)["evidence"]) <= 200
        code, out, err = run("retrieve", "bats", "--root", sample_root, "--year-from", 1900)  # the notes have none
        assert code == 0
        assert "Nothing was found." in out
        assert "The filter lets no chunk through" in err
        out = run("retrieve", "bats", "--root", sample_root, "--entity", "bats", "--entity", "no such thing")[1]
        assert "not in the graph: no such thing" in out

    def test_inspect_and_verify(self, run, sample_root):
        code, out, _ = run("inspect", "--root", sample_root, "--json")
        assert json.loads(out)["counts"]["documents"] >= 60
        code, out, _ = run("inspect", "--root", sample_root, "--chunk", "rabies/bats#0")
        assert code == 0
        assert "mentions:" in out
        assert run("inspect", "--root", sample_root, "--chunk", "rabies/bats#99")[0] == 3
        assert "(" in run("inspect", "--root", sample_root, "--entity", "bat")[1]
        assert run("inspect", "--root", sample_root, "--entity", "no such entity")[0] == 3
        code, out, _ = run("verify", "--root", sample_root)
        assert code == 0
        assert "0 at fault" in out

    def test_an_index_built_with_another_encoder_is_a_conflict(self, run, sample_root, tmp_path):
        config = tmp_path / "c.yaml"
        config.write_text("build: {chunk_encoder: {pooling: cls}}")
        code, _, err = run("retrieve", "bats", "--root", sample_root, "--config", config)
        assert code == 4
        assert "pooling" in err

    def test_python_api(self, sample_root):
        import hybrid_ir

        ir = hybrid_ir.open(sample_root)
        evidence = ir.retrieve("rabies virus and bats", k=5).evidence
        assert any(item.chunk.document_id.startswith("rabies/") for item in evidence)
        assert ir.chunk(evidence[0].chunk.id) == evidence[0].chunk
        seen = []
        answer = ir.ask("What do bats carry?", rounds=1, on_event=seen.append)
        assert seen[-1].answer == answer
        for bad in ("", "x" * 100_000):
            with pytest.raises(HybridIRError, match="question"):
                ir.ask(bad)
        with pytest.raises(HybridIRError, match="rounds"):
            ir.ask("What?", rounds=0)


def test_a_damaged_file_is_found(run, tmp_path):
    from hybrid_ir.index import manifest
    from hybrid_ir.settings import BuildSettings
    from hybrid_ir.store import Store

    store = Store(str(tmp_path))
    entry = store.write("segments/s/x", b"whole")
    counts = dict.fromkeys(manifest.Counts.model_fields, 0)
    made = manifest.Manifest(
        build_id="b",
        settings=BuildSettings(),
        fingerprints=manifest.Fingerprints(extractor={}, chunk_encoder={}, entity_encoder={}),
        segments=(),
        counts=manifest.Counts(**counts),
        files={"segments/s/x": entry},
    )
    manifest.publish(store, made, None)
    assert run("verify", "--root", tmp_path)[0] == 0
    (tmp_path / "segments/s/x").write_bytes(b"other")
    code, out, _ = run("verify", "--root", tmp_path)
    assert code == 5
    assert "segments/s/x" in out
    (tmp_path / "segments/s/x").unlink()
    assert "missing" in run("verify", "--root", tmp_path)[1]
    (tmp_path / "builds/b/manifest.json").write_text('{"format": 1, "build_id"')
    assert "not a manifest" in run("verify", "--root", tmp_path)[2]
    (tmp_path / "builds/b/manifest.json").write_text('{"format": 99}')
    assert "format 99" in run("verify", "--root", tmp_path)[2]
