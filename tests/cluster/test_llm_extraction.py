"""Indexing by a language model behind a real, bad endpoint: no chunk lost, none twice, nothing paid twice."""

import hashlib
import importlib.util
import json
import re
from collections import Counter

import pytest
from fake_llm import Fault
from fake_server import FakeServer

from hybrid_ir.errors import BadInput, Failed, Unavailable
from hybrid_ir.extraction.llm_prompts import SCHEMAS
from hybrid_ir.index import error_records, layout, manifest
from hybrid_ir.index.replies import prompt_key
from hybrid_ir.progress import Reporter
from hybrid_ir.settings import JobSettings, Settings, StageResources
from hybrid_ir.store import Store
from ray_jobs.index import index

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(600), pytest.mark.usefixtures("shared_ray")]

QUIET = Reporter(quiet=True)
DOCUMENTS = 40
HOPELESS = {"7", "23"}
"""Documents about which the model never says anything readable."""


@pytest.fixture(scope="module")
def corpus(tmp_path_factory):
    path = tmp_path_factory.mktemp("corpus") / "notes.jsonl"
    rows = [{"id": f"n{i}", "text": f"Drug{i} inhibits enzyme E{i % 5}."} for i in range(DOCUMENTS)]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return str(path)


def settings(server, timeout_s=4, **changes):
    llm = {"backend": "openai", "model": "fake", "base_url": server.url, "concurrency": 4, "retries": 3}
    llm["timeout_s"] = timeout_s
    extractor = {"kind": "llm", "llm": llm, "rules": {"vocabularies": ()}, **changes}
    return Settings.model_validate({"build": {"shards": 3, "extractor": extractor}, "job": {"lease_s": 20}})


def number_of(prompt):
    return re.findall(r"Drug(\d+) inhibits", "\n".join(message.content for message in prompt.messages))[-1]


def good(prompt):
    number = number_of(prompt)
    if prompt.json_schema == SCHEMAS["entities"]:
        return json.dumps({"entities": [f"Drug{number}", f"enzyme E{int(number) % 5}"]})
    return json.dumps({"triples": [[f"Drug{number}", "inhibits", f"enzyme E{int(number) % 5}"]]})


def bad_luck(prompt):
    """A number below 100, the same for the same prompt."""
    text = "\n".join(message.content for message in prompt.messages) + str(prompt.seed)
    return int(hashlib.sha256(text.encode()).hexdigest(), 16) % 100


class Moody:
    """Garbage, fenced and cut JSON, 429s and hangs; dead for good after so many calls, if a number is given."""

    def __init__(self, dies_after=None):
        self.dies_after, self.calls, self.seen = dies_after, 0, Counter()

    def __call__(self, prompt):
        self.calls += 1
        if self.dies_after is not None and self.calls > self.dies_after:
            return Fault("status", status=503)
        if prompt.json_schema is None:
            return "yes"
        if number_of(prompt) in HOPELESS:
            return "I would rather not say."
        key = (prompt.messages, prompt.seed)
        self.seen[key] += 1
        luck, reply = bad_luck(prompt), good(prompt)
        if prompt.seed:  # the model does better when it is told what was wrong
            return reply
        if self.seen[key] == 1 and luck < 6:
            return Fault("status", status=429, retry_after="0")
        if self.seen[key] == 1 and luck < 8:
            return Fault("hang")
        if luck < 20:
            return "Sorry, { I cannot ] read this."
        if luck < 32:
            return reply[: len(reply) // 2]
        if luck < 50:
            return f"Here you are:\n```json\n{reply}\n```\nAnything else?"
        return reply


def state(root, made):
    """(ids of chunks, triples, subjects of errors) of a build."""
    store, chunks, triples = Store(str(root)), [], []
    for segment in made.segments:
        for shard in range(segment.shards):
            chunks += store.read_table(layout.shard(segment.id, "chunks", shard), ["id"])["id"].to_pylist()
            triples += store.read_table(layout.shard(segment.id, "triples", shard)).to_pylist()
    errors = [row["subject"] for _, row in error_records.live(store, made.segments, None)]
    return sorted(chunks), sorted((t["chunk_id"], t["head"], t["relation"], t["tail"]) for t in triples), sorted(errors)


def kept(root):
    store = Store(str(root))
    return [text for name in store.files("cache/replies") for text in store.read_table(name)["value"].to_pylist()]


def keys_kept(root):
    store = Store(str(root))
    return {key for name in store.files("cache/replies") for key in store.read_table(name)["key"].to_pylist()}


def keys_asked(server):
    """The prompts that the fake was asked, a try again counted as what it tries again."""
    asked = set()
    for prompt in (call.prompt for call in server.log if call.prompt.json_schema is not None):
        *before, last = prompt.messages
        last = last.model_copy(update={"content": last.content.partition("\n\nA reply of yours")[0]})
        asked.add(prompt_key(prompt.model_copy(update={"messages": (*before, last)})))
    return asked


EVERY = sorted(f"n{i}#0" for i in range(DOCUMENTS))
EXPECTED = sorted(
    (f"n{i}#0", f"drug{i}", "inhibits", f"enzyme E{i % 5}") for i in range(DOCUMENTS) if str(i) not in HOPELESS
)


def test_an_endpoint_that_misbehaves_and_dies_half_way(corpus, tmp_path):
    root = tmp_path / "root"
    with FakeServer(Moody(dies_after=60)) as server:
        with pytest.raises(Unavailable, match="run the same command again"):
            index([corpus], str(root), settings(server), QUIET)
        asked = keys_asked(server)
    assert manifest.current(Store(str(root))) is None
    before = keys_kept(root)
    assert 20 < len(before) <= 60
    assert before < asked

    with FakeServer(Moody()) as server:  # at another port: where it is asked is no part of a build
        made = index([corpus], str(root), settings(server), QUIET)
        asked = keys_asked(server)
        kinds = Counter(call.outcome for call in server.log)
    chunks, triples, errors = state(root, made)
    assert chunks == EVERY
    assert triples == EXPECTED
    assert errors == sorted(f"n{i}#0" for i in HOPELESS)
    assert made.counts.errors == len(HOPELESS)

    after = kept(root)
    assert len(after) == 2 * (DOCUMENTS - len(HOPELESS)), "every valid reply once"
    assert all('"entities"' in text or '"triples"' in text for text in after)
    assert not [text for text in after if "rather not" in text or "cannot" in text]
    assert not before & asked, "what was kept is not asked again"
    assert before | asked >= keys_kept(root) > before
    assert kinds["failed"] + kinds["cancelled"] > 0, "there were faults in the second run too"

    with FakeServer(Moody()) as server:  # nothing is left to be asked, even for a build of its own
        longer = settings(server, retries=3)
        assert state(root, index([corpus], str(root), longer, QUIET))[1] == EXPECTED
        assert {number_of(call.prompt) for call in server.log} == HOPELESS


def test_vllm_that_is_not_installed_is_named_before_anything_is_read(corpus, tmp_path):
    if (found := importlib.util.find_spec("vllm")) is not None and found.origin is not None:
        pytest.skip("vLLM is installed here")
    extractor = {"kind": "llm", "llm": {"backend": "vllm", "model": "m"}, "rules": {"vocabularies": ()}}
    with pytest.raises(BadInput, match=r"pip install 'hybrid-ir\[vllm\]'"):
        index([corpus], str(tmp_path), Settings.model_validate({"build": {"extractor": extractor}}), QUIET)
    assert not Store(str(tmp_path)).files("work")


def test_a_budget_stops_the_job_and_each_run_has_its_own(corpus, tmp_path):
    root, runs = tmp_path / "root", 0
    with FakeServer(good) as server:
        capped = settings(server, timeout_s=120, max_calls=60)
        capped = capped.model_copy(update={"job": JobSettings(extract=StageResources(max_workers=2))})
        while True:
            runs += 1
            calls = len(server.log)
            try:
                made = index([corpus], str(root), capped, QUIET)
                break
            except Failed as error:
                assert "max_calls" in str(error)  # noqa: PT017
                assert len(server.log) - calls == 60
        assert runs == 2
        assert len(server.log) == 2 * DOCUMENTS
    chunks, triples, errors = state(root, made)
    assert (chunks, len(triples), errors) == (EVERY, DOCUMENTS, [])
