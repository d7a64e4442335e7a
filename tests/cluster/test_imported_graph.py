"""A ready graph through the whole job: indexed, asked without its file, updated with a longer one, or refused."""

import json

import pytest

import hybrid_ir
from hybrid_ir.errors import HybridIRError
from hybrid_ir.progress import Reporter
from hybrid_ir.settings import Settings
from ray_jobs.index import index, update

pytestmark = [pytest.mark.slow, pytest.mark.cluster, pytest.mark.usefixtures("shared_ray")]
QUIET = Reporter(quiet=True)


def settings(path):
    return Settings.model_validate({"build": {"extractor": {"kind": "imported", "path": str(path)}}})


def document(path, identity, text):
    path.write_text(json.dumps({"id": identity, "title": "", "text": text}) + "\n")
    return str(path)


def test_a_graph_is_imported_and_grows(tmp_path, caplog):
    root, graph = str(tmp_path / "root"), tmp_path / "graph.csv"
    first = "pmid,head,relation,tail\n1,Desmodus rotundus,carries,lyssavirus\n"
    graph.write_text(first + "7,kissing bug,carries,trypanosoma\n")
    corpus = document(tmp_path / "a.jsonl", "1", "Vampire bats carry it.")
    made = index([corpus], root, settings(graph), QUIET)
    assert made.counts.triples == 1
    assert "its triples for '7' are left out: the corpus does not hold them." in caplog.text
    assert index([corpus], root, settings(graph), QUIET).build_id == made.build_id

    graph.unlink()
    found = hybrid_ir.open(root).retrieve("What does Desmodus rotundus carry?", 1, ["graph"])
    assert [link.entity for link in found.links] == ["desmodus rotundus"]
    assert found.evidence[0].chunk.document_id == "1"

    with pytest.raises(HybridIRError, match="no such file"):
        update(root, [document(tmp_path / "b.jsonl", "2", "The nerve.")], [], None, QUIET)
    graph.write_text(first + "2,lyssavirus,enters,nerve\n")
    grown = update(root, [str(tmp_path / "b.jsonl")], [], None, QUIET)
    assert grown.counts.triples == 2
    assert grown.fingerprints.extractor["file"] != made.fingerprints.extractor["file"]

    with pytest.raises(HybridIRError, match="no triples for document '9'"):
        index([document(tmp_path / "c.jsonl", "9", "Elsewhere.")], str(tmp_path / "other"), settings(graph), QUIET)
