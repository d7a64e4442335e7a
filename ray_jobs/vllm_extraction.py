"""Extraction by vLLM inside the job, through ``ray.data.llm``: the engines' GPUs get full batches.

Round by round: each shard's prompts that have no reply yet go through the engines, and the replies
are set down (see :mod:`hybrid_ir.index.batched_replies`).  An ordinary extraction by two calls
takes two rounds and one for each retry; a round starts its engines anew.
"""

from __future__ import annotations

import importlib.util
import itertools
from collections.abc import Iterator
from functools import partial
from typing import Any

import ray.data

from hybrid_ir.errors import BadInput, Failed
from hybrid_ir.extraction.llm_calls import KEPT
from hybrid_ir.extraction.llm_reply import dumped
from hybrid_ir.index import batched_replies, shard
from hybrid_ir.index.replies import prompt_key
from hybrid_ir.index.shard import SegmentPlan
from hybrid_ir.llm.records import Prompt
from hybrid_ir.llm.vllm import engine_arguments, model_folder
from hybrid_ir.progress import Reporter
from hybrid_ir.settings import StageResources
from hybrid_ir.settings.llm import VLLMSettings
from ray_jobs.call_budget import CallBudget
from ray_jobs.stages import Row, reported, run

BATCH = 64
"""Prompts in a batch; an engine has up to eight batches at once, and packs them by itself."""
_BESIDE_ENGINE = {"num_cpus": 0.25}
"""Chat template and tokenizer take little."""


class ExtractSaid:
    """The last reading of a shard, from replies that are there."""

    def __init__(self, plan: SegmentPlan) -> None:
        self._plan = plan

    @reported
    def __call__(self, row: Row) -> Row:
        extractor = batched_replies.open_shard(self._plan, row["shard"])
        return {**row, "extract": shard.extract(self._plan, row["shard"], extractor).model_dump_json()}


def ask_all(
    plan: SegmentPlan, model: VLLMSettings, read: StageResources, reporter: Reporter, budget: CallBudget
) -> None:
    """Ask the engines until no shard has a prompt without a reply.  Raises Failed when the budget is spent."""
    for number in itertools.count(1):
        rows = [{"shard": number} for number in range(plan.shards)]
        looking = run(rows, (_count_missing, plan, read))
        wanted = {row["shard"]: row["missing"] for row in reporter.follow("look for replies", looking, plan.shards)}
        total = sum(wanted.values())
        if not total:
            return
        granted = budget.take_many(total)
        if granted:
            asking = _ask(plan, model, _shares(wanted, granted))
            for _ in reporter.follow(f"ask, round {number}", asking, granted, unit="replies"):
                pass
        if granted < total:
            raise Failed(f"The budget of calls to the language model (build.extractor.max_calls) is spent. {KEPT}")


def _shares(wanted: dict[int, int], granted: int) -> list[Row]:
    """How many prompts of each shard are asked."""
    rows = []
    for number, count in sorted(wanted.items()):
        take = min(count, granted)
        granted -= take
        if take:
            rows.append({"shard": number, "most": take})
    return rows


@reported
def _count_missing(row: Row, plan: SegmentPlan) -> Row:
    return {"shard": row["shard"], "missing": len(batched_replies.missing(plan, row["shard"]))}


def _prompts(row: Row, plan: SegmentPlan) -> list[Row]:
    prompts = batched_replies.missing(plan, row["shard"])[: row["most"]]
    return [{"shard": row["shard"], "key": prompt_key(prompt), "asked": prompt.model_dump_json()} for prompt in prompts]


def _ask(plan: SegmentPlan, model: VLLMSettings, rows: list[Row]) -> Iterator[Row]:
    """A row for each reply that was set down."""
    processor = _processor(model)
    asked = ray.data.from_items(rows, override_num_blocks=len(rows)).flat_map(partial(_prompts, plan=plan))
    said = processor(asked).map_batches(_write, fn_args=(plan,), batch_size=BATCH, batch_format="pyarrow")
    yield from said.iter_rows()


def _write(batch: Any, plan: SegmentPlan) -> Any:
    """Set down a batch, by shard."""
    columns = (batch[name].to_pylist() for name in ("shard", "key", "generated_text", "__inference_error__"))
    by_shard: dict[int, list[batched_replies.Said]] = {}
    for number, key, text, error in zip(*columns, strict=True):
        by_shard.setdefault(number, []).append((key, text or "", error or ""))
    for number, said in by_shard.items():
        batched_replies.write(plan.store, plan.segment_id, number, said)
    return batch.select(["shard"])


def check_installed() -> None:
    """Raises BadInput where vLLM is not: ray.data.llm itself would only fail in its workers."""
    found = importlib.util.find_spec("vllm")
    if found is None or found.origin is None:  # a folder of that name is no package
        raise BadInput(
            "build.extractor.llm: backend vllm is not installed: pip install 'hybrid-ir[vllm]' on every node, or name "
            "an endpoint: llm: {backend: openai, base_url: …}."
        )


def _processor(model: VLLMSettings) -> Any:
    from ray.data.llm import build_processor, vLLMEngineProcessorConfig

    config = vLLMEngineProcessorConfig(
        model_source=str(model_folder(model)),
        engine_kwargs=engine_arguments(model),
        concurrency=(max(1, model.min_replicas), max(1, model.min_replicas, model.max_replicas)),
        batch_size=BATCH,
        accelerator_type=model.accelerator,
        placement_group_config={"bundles": model.bundles} if model.bundles else None,
        should_continue_on_error=True,
        log_engine_metrics=False,
        chat_template_stage=_BESIDE_ENGINE,
        tokenize_stage=_BESIDE_ENGINE,
        detokenize_stage=_BESIDE_ENGINE,
    )
    sampling = {"temperature": model.temperature, "max_tokens": model.max_tokens}

    def prepare(row: Row) -> Row:
        prompt = Prompt.model_validate_json(row["asked"])
        seed = prompt.seed if prompt.seed is not None else model.seed
        return {
            "shard": row["shard"],
            "key": row["key"],
            "messages": [message.model_dump() for message in prompt.messages],
            # As a text: rows of other schemas in one batch would mix their keys.
            "sampling_params": {**sampling, "seed": seed, "structured_outputs": {"json": dumped(prompt.json_schema)}},
        }

    return build_processor(config, preprocess=prepare)
