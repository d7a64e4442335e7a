"""The retrieval benchmark."""
