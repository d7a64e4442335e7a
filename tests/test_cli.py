"""The front door: what scripts and people see, and what it says to bad input."""

import json
import sys

import pytest

from hybrid_ir import cli
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
        (["ask", "q", "--root", "ROOT", "--config", "nowhere.yaml"], "nowhere.yaml: no such settings file"),
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
    "text", ["loop: {rounds: many}", "loop: {turns: 3}", "- a", "a: [", "build: {extractor: {kind: magic}}"]
)
def test_a_bad_settings_file_names_the_field(run, tmp_path, text):
    config = tmp_path / "c.yaml"
    config.write_text(text)
    code, _, err = run("ask", "q", "--root", tmp_path, "--config", config)
    assert code == 2
    assert "c.yaml" in err


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
