"""Settings -> extractor."""

from __future__ import annotations

from hybrid_ir.errors import BadInput
from hybrid_ir.roles import Extractor
from hybrid_ir.settings import ExtractorSettings, ImportedExtractorSettings, LLMExtractorSettings


def load(settings: ExtractorSettings) -> Extractor:
    """The extractor that the settings name (a few seconds: it reads its parser and vocabularies)."""
    if isinstance(settings, LLMExtractorSettings):
        raise BadInput("extractor.kind: `llm` is not part of this version yet; set `kind: rules`.")
    if isinstance(settings, ImportedExtractorSettings):
        from hybrid_ir.extraction.imported import ImportedExtractor

        return ImportedExtractor(settings)
    from hybrid_ir.extraction.rules import RuleExtractor

    return RuleExtractor(settings)
