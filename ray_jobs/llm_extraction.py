"""The extract stage where a language model does the work: its calls are counted over all workers."""

from __future__ import annotations

from hybrid_ir.errors import BadInput
from hybrid_ir.extraction.llm import LLMExtractor
from hybrid_ir.index import shard
from hybrid_ir.index.shard import SegmentPlan
from hybrid_ir.llm.vllm import model_folder
from hybrid_ir.progress import Reporter
from hybrid_ir.settings import JobSettings, LLMExtractorSettings
from hybrid_ir.settings.llm import LlamaCppSettings, VLLMSettings
from ray_jobs.call_budget import CallBudget
from ray_jobs.stages import Row, Stage, reported


class ExtractByEndpoint:
    """Each worker has the model's ``concurrency`` calls under way."""

    def __init__(self, given: tuple[SegmentPlan, CallBudget]) -> None:
        self._plan, budget = given
        settings = self._plan.settings.extractor
        if not isinstance(settings, LLMExtractorSettings):
            raise BadInput("build.extractor.kind is not llm.")
        self._extractor = LLMExtractor(settings, budget=budget)

    @reported
    def __call__(self, row: Row) -> Row:
        return {**row, "extract": shard.extract(self._plan, row["shard"], self._extractor).model_dump_json()}


def check(settings: LLMExtractorSettings) -> None:
    """Before hours are spent on reading: raises BadInput where the model that is to run in the job is not here."""
    if isinstance(settings.llm, VLLMSettings):
        from ray_jobs import vllm_extraction

        vllm_extraction.check_installed()
        model_folder(settings.llm)


def by_llm(
    plan: SegmentPlan, settings: LLMExtractorSettings, job: JobSettings, reporter: Reporter
) -> tuple[Stage, CallBudget]:
    """The stage, and the counter of its calls.  With vLLM the asking is done when this returns."""
    budget = CallBudget(settings.max_calls)
    if isinstance(settings.llm, VLLMSettings):
        from ray_jobs import vllm_extraction  # ray[llm] is an install of its own

        vllm_extraction.ask_all(plan, settings.llm, job.read, reporter, budget)
        return (vllm_extraction.ExtractSaid, plan, job.extract), budget
    resources = job.extract
    if isinstance(settings.llm, LlamaCppSettings):  # a server for each worker would share the same cores
        resources = resources.model_copy(update={"min_workers": 1, "max_workers": 1})
    return (ExtractByEndpoint, (plan, budget), resources), budget
