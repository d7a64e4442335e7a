"""The benchmark's command on a small set in a public form: it builds, asks, writes, and uses its index again."""

import json
import sys

import pyarrow.parquet as pq
import pytest

from hybrid_ir import cli

PASSAGES = [
    {"title": "Bats", "text": "Insect-eating bats carry the rabies virus."},
    {"title": "Rabies virus", "text": "The rabies virus enters the nerve and travels to the brain."},
    {"title": "Caves", "text": "Caves are cold and wet."},
]
OPENIE = [
    {"idx": 0, "entities": ["bats"], "triples": [["bats", "carry", "rabies virus"]]},
    {"idx": 1, "entities": [], "triples": [["rabies virus", "enters", "nerve"]]},
    {"idx": 2, "entities": ["caves"], "triples": []},
]
QUESTIONS = [
    {
        "id": "q1",
        "question": "What does the rabies virus that bats carry enter?",
        "answer": "nerve",
        "decomposition": [{"question": "What do bats carry?", "answer": "rabies virus", "gold_idx": 0}],
        "gold_idx": [0, 1],
    }
]

pytestmark = [pytest.mark.slow, pytest.mark.cluster, pytest.mark.usefixtures("shared_ray")]


def test_from_a_folder_of_data_to_a_table(tmp_path, capsys, monkeypatch):
    folder = tmp_path / "data" / "hipporag_musique"
    folder.mkdir(parents=True)
    (folder / "musique_corpus.json").write_text(json.dumps(PASSAGES))
    for name, rows in (("openie", OPENIE), ("questions", QUESTIONS)):
        (folder / f"{name}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    out = tmp_path / "out"
    arguments = ["hybrid-ir", "benchmark", "retrieval", "--set", "musique", "--data", str(tmp_path / "data")]
    monkeypatch.setattr(sys, "argv", [*arguments, "--out", str(out), "--json", "--rounds", "2"])
    with pytest.raises(SystemExit) as ended:
        cli.main()
    assert ended.value.code in (0, None)
    summary = json.loads(capsys.readouterr().out)["musique"]
    means = {one["key"].split("/default/")[0]: one["retrieval"]["recall@5"]["mean"] for one in summary["cells"]}
    assert (
        means["ablation_graph"] == means["ablation_dense"] == means["hybrid_ir"] == means["gold_sub_questions"] == 1.0
    )
    assert {one["cell"]["rounds"] for one in summary["cells"] if one["cell"]["method"] == "hybrid_ir"} == {1, 2}
    rows = pq.read_table(out / "musique" / "rows.parquet")
    assert rows.num_rows == len(summary["cells"])
    assert set(rows.column("recall@5").to_pylist()) == {1.0}
    assert "<img" in (out / "musique" / "report.html").read_text()

    with pytest.raises(SystemExit):
        cli.main()
    again = capsys.readouterr()
    assert "nothing to do" in again.err
    assert json.loads(again.out)["musique"]["build_id"] == summary["build_id"]
    assert f"{rows.num_rows} of {rows.num_rows} questions were asked before" in again.err


def test_absent_data_is_named(monkeypatch, capsys, tmp_path):
    monkeypatch.delenv("HYBRID_IR_DATA", raising=False)
    monkeypatch.setattr(sys, "argv", ["hybrid-ir", "benchmark", "retrieval"])
    with pytest.raises(SystemExit) as ended:
        cli.main()
    assert ended.value.code == 2
    assert "--data PATH" in capsys.readouterr().err
    monkeypatch.setattr(sys, "argv", ["hybrid-ir", "benchmark", "retrieval", "--data", str(tmp_path)])
    with pytest.raises(SystemExit) as ended:
        cli.main()
    assert ended.value.code == 3
