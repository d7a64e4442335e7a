"""One typed settings tree, read from ``configs/*.yaml``.

Every field has a default, and the defaults are the embedded ones: no GPU, no download.
``build`` is what a build's bytes depend on and is stored in its manifest; the rest may
differ between two readers of one build.
"""

from hybrid_ir.settings.build import (
    BuildSettings,
    ChunkerSettings,
    DenseSettings,
    EncoderSettings,
    ExtractorSettings,
    GraphSettings,
    ImportedExtractorSettings,
    LLMExtractorSettings,
    Partitioner,
    ReaderSettings,
    RuleExtractorSettings,
    SparseSettings,
)
from hybrid_ir.settings.job import JobSettings, StageResources
from hybrid_ir.settings.llm import EndpointSettings, LlamaCppSettings, LLMSettings, VLLMSettings
from hybrid_ir.settings.query import (
    ExtractiveReasonerSettings,
    FusionSettings,
    GFMSettings,
    GraphPathSettings,
    LinkerSettings,
    LLMReasonerSettings,
    LoopSettings,
    ReasonerSettings,
    RerankSettings,
    SparsePathSettings,
)
from hybrid_ir.settings.serve import (
    DeploymentSettings,
    GraphOwnerSettings,
    GroupedScorerSettings,
    QueryEncoderSettings,
    ScorerSettings,
    ServeSettings,
)
from hybrid_ir.settings.tree import Settings, load

__all__ = [
    "BuildSettings",
    "ChunkerSettings",
    "DenseSettings",
    "DeploymentSettings",
    "EncoderSettings",
    "EndpointSettings",
    "ExtractiveReasonerSettings",
    "ExtractorSettings",
    "FusionSettings",
    "GFMSettings",
    "GraphOwnerSettings",
    "GraphPathSettings",
    "GraphSettings",
    "GroupedScorerSettings",
    "ImportedExtractorSettings",
    "JobSettings",
    "LLMExtractorSettings",
    "LLMReasonerSettings",
    "LLMSettings",
    "LinkerSettings",
    "LlamaCppSettings",
    "LoopSettings",
    "Partitioner",
    "QueryEncoderSettings",
    "ReaderSettings",
    "ReasonerSettings",
    "RerankSettings",
    "RuleExtractorSettings",
    "ScorerSettings",
    "ServeSettings",
    "Settings",
    "SparsePathSettings",
    "SparseSettings",
    "StageResources",
    "VLLMSettings",
    "load",
]
