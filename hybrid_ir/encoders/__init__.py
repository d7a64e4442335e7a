"""Texts -> vectors: MedCPT, Contriever, MiniLM and their kin behind one interface."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from hybrid_ir.encoders.transformer import TransformerEncoder
    from hybrid_ir.settings import EncoderSettings


def load(settings: EncoderSettings) -> TransformerEncoder:
    """The encoder that the settings name; a missing model is a :class:`BadInput` that says what to do."""
    # torch and transformers take seconds to import: only who encodes pays for them.
    from hybrid_ir.encoders.transformer import TransformerEncoder

    return TransformerEncoder(settings)
