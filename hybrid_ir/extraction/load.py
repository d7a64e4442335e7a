"""Settings -> extractor."""

from __future__ import annotations

from hybrid_ir.roles import Extractor
from hybrid_ir.settings import ExtractorSettings, ImportedExtractorSettings, LLMExtractorSettings


def load(settings: ExtractorSettings) -> Extractor:
    """The extractor that the settings name (a few seconds: it reads its parser and vocabularies)."""
    if isinstance(settings, LLMExtractorSettings):
        from hybrid_ir.extraction.llm import LLMExtractor

        return LLMExtractor(settings)
    if isinstance(settings, ImportedExtractorSettings):
        from hybrid_ir.extraction.imported import ImportedExtractor

        return ImportedExtractor(settings)
    from hybrid_ir.extraction.rules import RuleExtractor

    return RuleExtractor(settings)
