import numpy as np

from hybrid_ir.graph import chunk_links
from hybrid_ir.graph.chunk_links import CITATION, SIMILARITY, CitedDocument


def test_nearest_leaves_out_the_chunk_itself_the_far_and_the_surplus():
    found = np.array([[0, 2, 1, 3], [5, 1, -1, -1]])
    scores = np.array([[1.0, 0.9, 0.8, 0.7], [0.99, 1.0, -np.inf, -np.inf]], np.float32)
    links = chunk_links.nearest(np.array([0, 1]), scores, found, neighbours=2, floor=0.75)
    assert list(zip(links.source, links.target, strict=True)) == [(0, 2), (0, 1), (1, 5)]


def test_citations_find_documents_by_pmid_or_doi_and_never_themselves():
    documents = [
        CitedDocument(0, "1", None, ("pmid:2", "doi:10.1/a", "pmid:1", "pmid:99")),
        CitedDocument(4, "2", None, ()),
        CitedDocument(9, None, "10.1/A", ("pmid:2", "pmid:2")),
    ]
    links = chunk_links.citations(documents)
    assert list(zip(links.source, links.target, strict=True)) == [(0, 4), (0, 9), (9, 4)]
    assert set(links.kind) == {CITATION}


def test_merge_sorts_and_counts():
    one = chunk_links.ChunkLinks(np.array([3, 1]), np.array([0, 2]), np.ones(2, np.float32), np.zeros(2, np.int8))
    merged = chunk_links.merge([one, chunk_links.citations([])])
    assert merged.source.tolist() == [1, 3]
    assert (merged.count(SIMILARITY), merged.count(CITATION)) == (2, 0)
    assert len(chunk_links.merge([]).source) == 0
