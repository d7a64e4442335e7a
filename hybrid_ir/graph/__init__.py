"""Triples -> the knowledge-graph index; seeds -> scores of entities and chunks."""
