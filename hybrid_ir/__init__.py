"""Hybrid-IR: medical question answering over a knowledge graph and dense vectors.

A research tool: no medical device, and no advice to patients.
"""
