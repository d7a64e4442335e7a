"""Extraction by ``ray.data.llm`` with a tiny random model on a CPU: what it writes is noise of the right form."""

from __future__ import annotations

import importlib.util
import json
import os
import re
from pathlib import Path

import pytest

pytestmark = [
    pytest.mark.vllm,
    pytest.mark.slow,
    pytest.mark.timeout(2400),
    pytest.mark.skipif(
        getattr(importlib.util.find_spec("vllm"), "origin", None) is None,  # this folder is found under its name too
        reason="vLLM is not installed: make test-vllm",
    ),
]

TEXT = Path(__file__).parent.parent.parent / "examples" / "corpus"


def test_every_prompt_gets_a_reply_of_its_schema_and_every_chunk_a_result(tmp_path) -> None:
    os.environ |= {
        "HF_HUB_OFFLINE": "1",
        "RAY_AUTH_MODE": "disabled",
        "RAY_USAGE_STATS_ENABLED": "0",
        "VLLM_CPU_KVCACHE_SPACE": "1",
        "VLLM_NO_USAGE_STATS": "1",
    }
    import ray
    from tiny_qwen import qwen

    from hybrid_ir.index import batched_replies, shard
    from hybrid_ir.index.shard import SegmentPlan
    from hybrid_ir.progress import Reporter
    from hybrid_ir.records import SourceFile
    from hybrid_ir.settings import BuildSettings, JobSettings, LLMExtractorSettings
    from hybrid_ir.store import Store
    from ray_jobs.llm_extraction import by_llm
    from ray_jobs.stages import run

    corpus = "\n".join(path.read_text() for path in sorted(TEXT.rglob("*.md")))
    llm = {
        "backend": "vllm",
        "model": str(qwen(tmp_path / "tiny-qwen2", corpus)),
        "max_tokens": 60,
        "engine": {"dtype": "bfloat16", "enforce_eager": True, "max_model_len": 4096, "max_num_seqs": 4},
        "bundles": [{"CPU": 1}],
    }
    extractor = LLMExtractorSettings.model_validate(
        {"kind": "llm", "llm": llm, "retries": 1, "rules": {"vocabularies": ()}}
    )
    notes = tmp_path / "notes.jsonl"
    rows = [{"id": f"n{i}", "text": f"Drug{i} inhibits enzyme E{i}."} for i in range(6)]
    rows.append({"id": "long", "text": "fever " * 180})
    notes.write_text("".join(json.dumps(row) + "\n" for row in rows))
    plan = SegmentPlan(Store(str(tmp_path / "root")), "seg", 2, BuildSettings(extractor=extractor))
    shard.read(plan, "part", [SourceFile(path=str(notes), size=notes.stat().st_size)])
    shard.chunk(plan, 0)
    small = {"num_cpus": 6, "object_store_memory": 128 * 2**20, "_node_ip_address": "127.0.0.1"}
    ray.init(address="local", include_dashboard=False, **small)
    try:
        stage, budget = by_llm(plan, extractor, JobSettings(), Reporter(quiet=True))
        made = budget.made()
        done = list(run([{"shard": 0}, {"shard": 1}], stage))
    finally:
        ray.shutdown()
    assert len(rows) <= made <= 4 * len(rows)
    texts = [text for number in range(2) for _, text, error in batched_replies.said(plan, number)]
    assert len(texts) == made
    # A random model hardly ever ends a string, so its replies are cut; their form is the schema's.
    assert all(re.match(r'\{ ?"entities": ?\[', text) for text in texts)
    results = [shard.StageResult.model_validate_json(row["extract"]) for row in done]
    assert sum(result.rows for result in results) == len(rows)
    assert [batched_replies.missing(plan, number) for number in range(2)] == [[], []]
