"""Corpus files to documents to chunks: one reader a format, one chunker."""
