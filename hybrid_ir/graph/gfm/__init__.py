"""The graph foundation model: GFM-RAG's query-conditioned network over G_ent (Luo et al., 2025)."""
