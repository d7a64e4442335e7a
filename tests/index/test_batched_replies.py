"""Replies by prompt in the index's cache, and an engine that answers in batches: without Ray, without vLLM."""

import json

import pytest
from fake_llm import Fault, ScriptedLLM

from hybrid_ir.errors import Unavailable
from hybrid_ir.extraction.llm import LLMExtractor
from hybrid_ir.extraction.llm_prompts import SCHEMAS
from hybrid_ir.index import batched_replies, layout, shard
from hybrid_ir.index.replies import prompt_key
from hybrid_ir.index.shard import SegmentPlan
from hybrid_ir.records import SourceFile
from hybrid_ir.settings import BuildSettings, LLMExtractorSettings
from hybrid_ir.store import Store

DOCUMENTS = 12


def settings(**changes):
    llm = {"backend": "openai", "model": "m", "base_url": "http://127.0.0.1:1/v1", "concurrency": 1}
    return LLMExtractorSettings.model_validate({"kind": "llm", "llm": llm, "rules": {"vocabularies": ()}, **changes})


@pytest.fixture
def plan(tmp_path):
    """Two shards of small documents, cut and not yet extracted."""
    corpus = tmp_path / "c.jsonl"
    rows = [{"id": f"d{i}", "text": f"Drug{i} inhibits enzyme E{i}."} for i in range(DOCUMENTS)]
    corpus.write_text("".join(json.dumps(row) + "\n" for row in rows))
    made = SegmentPlan(Store(str(tmp_path / "root")), "seg", 2, BuildSettings(extractor=settings()))
    shard.read(made, "part", [SourceFile(path=str(corpus), size=corpus.stat().st_size)])
    shard.chunk(made, 0)
    return made


def says(prompt, bad=()):
    """A good model, but for the documents in ``bad``, which get nonsense at the first try."""
    text = "\n".join(message.content for message in prompt.messages).rpartition("<passage>\n")[2]
    if prompt.json_schema is None:
        return "yes"
    number = text.removeprefix("Drug").partition(" ")[0]
    if number in bad and prompt.seed is None:
        return "I would rather not."
    if prompt.json_schema == SCHEMAS["entities"]:
        return json.dumps({"entities": [f"Drug{number}", f"enzyme E{number}"]})
    return json.dumps({"triples": [[f"Drug{number}", "inhibits", f"enzyme E{number}"]]})


def triples(plan):
    rows = [
        row
        for number in range(plan.shards)
        for row in plan.store.read_table(layout.shard("seg", "triples", number)).to_pylist()
    ]
    return sorted((row["chunk_id"], row["head"], row["relation"], row["tail"]) for row in rows)


EXPECTED = sorted((f"d{i}#0", f"drug{i}", "inhibits", f"enzyme E{i}") for i in range(DOCUMENTS))


def test_an_engine_in_batches_makes_the_same_graph_as_an_endpoint(plan):
    rounds = []
    while any(wanted := {number: batched_replies.missing(plan, number) for number in range(2)}.values()):
        rounds.append(sum(map(len, wanted)))
        for number, prompts in enumerate(wanted):
            for some in (prompts[:3], prompts[3:]):
                said = [(prompt_key(prompt), says(prompt, bad=("1", "4")), "") for prompt in some]
                if said:
                    batched_replies.write(plan.store, "seg", number, said)
    assert rounds == [12, 10 + 2, 2, 2]  # entities; triples, and two again; their triples; and these again
    for number in range(2):
        shard.extract(plan, number, batched_replies.open_shard(plan, number))
    assert triples(plan) == EXPECTED
    assert [batched_replies.missing(plan, number) for number in range(2)] == [[], []]
    texts = [
        text for name in plan.store.files("cache/replies") for text in plan.store.read_table(name)["value"].to_pylist()
    ]
    assert len(texts) == 2 * DOCUMENTS
    assert not [text for text in texts if "rather not" in text]


def test_what_the_engine_refuses_is_an_error_record(plan):
    for number in range(2):
        prompts = batched_replies.missing(plan, number)
        said = [(prompt_key(prompt), "", "the prompt is too long") for prompt in prompts]
        batched_replies.write(plan.store, "seg", number, said)
        assert batched_replies.missing(plan, number) == []
        result = shard.extract(plan, number, batched_replies.open_shard(plan, number))
        assert result.errors == result.rows == len(prompts)
        errors = plan.store.read_table(layout.shard("seg", "errors-extract", number)).to_pylist()
        assert all("the prompt is too long" in row["reason"] for row in errors)


def test_replies_outlive_an_endpoint_and_end_in_one_file_a_shard(plan, monkeypatch):
    monkeypatch.setattr("hybrid_ir.index.replies.SECONDS_BETWEEN_PARTS", 0.0)
    said = []

    def dies(prompt):
        if len(said) == 7:
            return Fault("status", status=500)
        said.append(prompt)
        return says(prompt)

    extractor = LLMExtractor(settings(), ScriptedLLM(dies))
    with pytest.raises(Unavailable):
        [shard.extract(plan, number, extractor) for number in range(2)]
    assert sum(plan.store.read_table(name).num_rows for name in plan.store.files("cache/replies")) == 7
    llm = ScriptedLLM(says)
    for number in range(2):
        shard.extract(plan, number, LLMExtractor(settings(), llm))
    assert triples(plan) == EXPECTED
    assert len(llm.log) == 2 * DOCUMENTS - 7
    assert not {call.prompt.messages for call in llm.log} & {prompt.messages for prompt in said}
    assert len(plan.store.files("cache/replies")) == 2
    # Another segment of the same documents in more shards asks nothing.
    again = SegmentPlan(plan.store, "again", 5, plan.settings)
    corpus = plan.store.path("").rstrip("/").removesuffix("root") + "c.jsonl"
    shard.read(again, "part", [SourceFile(path=corpus, size=1)])
    shard.chunk(again, 0)
    results = [shard.extract(again, number, LLMExtractor(settings(), llm)) for number in range(5)]
    assert sum(result.rows for result in results) == DOCUMENTS
    assert sum(result.computed for result in results) == 0
    assert len(llm.log) == 2 * DOCUMENTS - 7
