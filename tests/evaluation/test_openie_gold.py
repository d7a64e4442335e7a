"""Extractions held against gold annotations: what counts as found, and the kinds of what is missed."""

import json

import pytest

from hybrid_ir.errors import BadInput, NotFound
from hybrid_ir.evaluation.openie import KINDS, Judged, judge, read_gold
from hybrid_ir.records import Extraction, Triple

TEXT = "Tylenol caused liver failure in rats. IL-2 was low. Both resolved, and aspirin never caused tonic seizures."


def gold_row():
    title = "On pain"
    whole = f"{title} {TEXT}"

    def entity(name, kind, *ids):
        start = whole.index(name)
        return [start, start + len(name), name, kind, list(ids)]

    return {
        "pmid": "1",
        "split": "test",
        "title": title,
        "abstract": TEXT,
        "entities": [
            entity("Tylenol", "Chemical", "T"),
            entity("liver failure", "Disease", "L"),
            entity("IL-2", "Gene", "I"),
            entity("aspirin", "Chemical", "A"),
            entity("tonic seizures", "Disease", "S"),
            entity("pain", "Disease"),
        ],
        "relations": [["CID", "T", "L"], ["CID", "A", "S"], ["Association", "I", "T"], ["CID", "A", "L"]],
    }


@pytest.fixture
def gold(tmp_path):
    path = tmp_path / "docs.jsonl"
    other = {**gold_row(), "split": "train"}
    path.write_text("".join(json.dumps(row) + "\n" for row in (gold_row(), other)))
    (document,) = read_gold(path, "test")
    return document


def extraction(mentions, *facts):
    triples = tuple(Triple(chunk_id="1#0", head=h, relation=r, tail=t) for h, r, t in facts)
    return Extraction(chunk_id="1#0", mentions=mentions, triples=triples)


def rename(text):
    return "acetaminophen" if text.lower() == "tylenol" else None


def test_names_count_whatever_their_case_number_and_vocabulary(gold):
    found = judge(gold, [extraction(("acetaminophen", "Liver failures", "IL 2", "seizure", "rat"))], rename)
    assert found.found == {"Chemical": 1, "Disease": 1, "Gene": 1}
    assert found.partly == {"Disease": 1}
    assert (found.names, found.right_names, found.near_names) == (5, 3, 1)
    assert found.gold_entities.total() == 5, "a mention without id is no entity"
    assert found.share("found", "gold_entities") == 3 / 5


def test_relations_count_in_either_direction_and_with_nearly_the_name(gold):
    made = extraction(
        ("acetaminophen", "liver failure", "aspirin", "seizure"),
        ("liver failure", "follows", "acetaminophen"),
        ("aspirin", "causes", "seizure"),
        ("aspirin", "differs from", "acetaminophen"),
    )
    found = judge(gold, [made], rename)
    assert (found.gold_relations, found.linked, found.linked_nearly) == (4, 1, 2)
    assert (found.triples, found.judged_triples, found.right_triples) == (3, 2, 1)


@pytest.mark.parametrize(
    ("mentions", "facts", "kinds"),
    [
        ((), (), [0, 0, 0, 0]),
        (("tylenol", "liver failure", "aspirin", "seizure", "il-2"), (), [4, 1, 2, 2]),
        (("tylenol", "liver failure", "rat"), (("tylenol", "in", "rat"),), [3, 0, 0, 0]),
    ],
)
def test_the_kinds_of_what_is_missed(gold, mentions, facts, kinds):
    found = judge(gold, [extraction(mentions, *facts)], rename)
    missed = {"".join(sorted(pair)): KINDS.index(kind) for pair, kind in found.missed}
    assert [missed[pair] for pair in ("LT", "AS", "IT", "AL")] == kinds


def test_counts_add_up(gold):
    one = judge(gold, [extraction(("aspirin",))], rename)
    both = one + one + Judged()
    assert both.documents == 2
    assert both.found.total() == 2 * one.found.total()
    assert len(both.missed) == 2 * len(one.missed)
    assert Judged().share("found", "gold_entities") == 0


def test_bad_gold_is_named(tmp_path):
    with pytest.raises(NotFound, match="no such file"):
        read_gold(tmp_path / "docs.jsonl")
    (tmp_path / "docs.jsonl").write_text(json.dumps(gold_row()) + '\n{"pmid": 3}\n')
    with pytest.raises(BadInput, match="line 2"):
        read_gold(tmp_path / "docs.jsonl")
