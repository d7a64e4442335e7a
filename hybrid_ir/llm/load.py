"""The language model that settings name."""

from __future__ import annotations

from hybrid_ir.errors import BadInput
from hybrid_ir.roles import LLM
from hybrid_ir.settings.llm import EndpointSettings, LLMSettings, VLLMSettings


def load(settings: LLMSettings) -> LLM:
    """Opened, not asked yet.

    Raises BadInput where a key or a package is missing, and for vLLM, which runs in Ray alone.
    """
    if isinstance(settings, VLLMSettings):
        raise BadInput(
            f"The language model {settings.model} is to run by vLLM inside the Ray cluster: `hybrid-ir serve` starts "
            "it there. For a single question, or from another program, run `vllm serve` and name it: "
            "llm: {backend: openai, base_url: 'http://HOST:8000/v1', model: …}."
        )
    if isinstance(settings, EndpointSettings):
        from hybrid_ir.llm.endpoint import EndpointLLM

        return EndpointLLM(settings, settings.base_url)
    from hybrid_ir.llm import llama_cpp

    return llama_cpp.load(settings)
