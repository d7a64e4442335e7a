"""Texts -> terms -> postings; terms of a query -> chunks by BM25."""
