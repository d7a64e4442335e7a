"""Questions with known answers, and measures: plain functions."""
