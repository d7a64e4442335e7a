"""Open information extraction: ``Chunk -> Extraction`` (mentions and triples), and the mentions of a question.

``load.load(settings)`` gives the extractor; ``names.canonical`` is the form of every entity's name.
"""
