"""`hybrid-ir keys`."""

import json
from concurrent.futures import ProcessPoolExecutor

from typer.testing import CliRunner

from hybrid_ir.cli import app
from hybrid_ir.keys import add, hashed, read


def test_a_key_is_made_listed_and_revoked(tmp_path):
    file = str(tmp_path / "keys.json")

    def run(command, *rest):
        return CliRunner().invoke(app, ["keys", command, "--file", file, *rest])

    made = json.loads(run("add", "--note", "Ward 7", "--per-minute", "9", "--json").output)
    held = json.loads((tmp_path / "keys.json").read_text(encoding="utf-8"))["keys"]
    assert [key["sha256"] for key in held] == [hashed(made["key"])]
    assert made["key"].startswith(f"hir_{made['id']}_")
    run("add", "--scope", "admin")
    listed = run("list").output
    assert "Ward 7" in listed
    assert "9 a minute" in listed
    assert made["key"] not in listed
    assert run("revoke", made["id"]).exit_code == 0
    assert [key["scopes"] for key in json.loads(run("list", "--json").output)] == [["admin"]]
    assert "admin" in str(run("add", "--scope", "root").exception)


def test_keys_made_at_the_same_time_are_all_kept(tmp_path):
    file = str(tmp_path / "keys.json")
    with ProcessPoolExecutor(8) as pool:
        made = [key.id for key, _ in pool.map(add, [file] * 40)]
    assert sorted(key.id for key in read(file).keys) == sorted(made)
