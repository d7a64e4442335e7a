"""Texts -> vectors: MedCPT, Contriever, MiniLM and their kin behind one interface."""

from hybrid_ir.encoders.transformer import TransformerEncoder, load

__all__ = ["TransformerEncoder", "load"]
