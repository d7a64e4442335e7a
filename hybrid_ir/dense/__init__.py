"""Vectors -> FAISS shards; query vectors -> ranked chunks."""
