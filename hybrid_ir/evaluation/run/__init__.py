"""One runner of every benchmark: a grid, its questions, their rows on disk."""
