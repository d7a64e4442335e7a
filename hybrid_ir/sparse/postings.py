"""Postings: which chunk of a shard holds which term how often.

They hold counts and lengths, not scores: BM25 divides by the average length of all chunks of a
build, which changes with every update and goes through every score in no common factor, so that
an index of finished scores (as bm25s keeps it, with one corpus an index) could neither be made
shard by shard nor outlive an update.  A score is made from these at query time, for the
postings of the query's terms alone; tests hold it against bm25s on one whole corpus.

A term is known by the 64 bits of a hash, so that a dictionary is one sorted array that is mapped
and searched without a copy: among a hundred million terms the chance that any two meet is 3 in 10,000.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hybrid_ir.sparse.analyzer import terms as terms_of

Hashes = NDArray[np.uint64]
MOST = np.iinfo(np.uint16).max
"""A count above this is kept as this."""


@dataclass(frozen=True)
class Postings:
    """Of one shard, CSR by term: term i's chunks are ``chunks[starts[i]:starts[i + 1]]``, ascending."""

    terms: Hashes
    """Ascending."""
    starts: NDArray[np.int64]
    """Shape (terms + 1,)."""
    chunks: NDArray[np.int32]
    """Rows of the shard's chunk table."""
    counts: NDArray[np.uint16]
    """How often the chunk holds the term."""
    lengths: NDArray[np.int32]
    """Terms of each chunk, shape (chunks of the shard,)."""


def hash_of(term: str) -> int:
    return int.from_bytes(hashlib.blake2b(term.encode("utf-8", "surrogatepass"), digest_size=8).digest(), "little")


def hashes_of(terms: Iterable[str]) -> Hashes:
    return np.fromiter((hash_of(term) for term in terms), np.uint64)


def count(texts: Iterable[str]) -> Postings:
    """The postings of a shard's chunks, given in the order of its chunk table."""
    numbers: dict[str, int] = {}
    term: list[int] = []
    chunk: list[int] = []
    held: list[int] = []
    lengths: list[int] = []
    for row, text in enumerate(texts):
        found = Counter(terms_of(text))
        lengths.append(found.total())
        term += [numbers.setdefault(name, len(numbers)) for name in found]
        chunk += [row] * len(found)
        held += found.values()
    hashes = hashes_of(numbers)
    return arrange(hashes[np.array(term, np.int64)], np.array(chunk), np.array(held), np.array(lengths, np.int32))


def arrange(
    hashes: Hashes, chunks: NDArray[np.integer], counts: NDArray[np.integer], lengths: NDArray[np.int32]
) -> Postings:
    """Postings of (term, chunk, count) in any order, those of one term and chunk added up."""
    order = np.lexsort((chunks, hashes))
    hashes, chunks, counts = hashes[order], chunks[order], counts[order].astype(np.int64)
    new_term = np.diff(hashes, prepend=~hashes[:1]) != 0
    first = np.flatnonzero(new_term | (np.diff(chunks, prepend=-1) != 0))
    if len(first):
        counts = np.add.reduceat(counts, first)
    begins = np.flatnonzero(new_term[first])
    return Postings(
        terms=hashes[first][begins],
        starts=np.append(begins, len(first)).astype(np.int64),
        chunks=chunks[first].astype(np.int32),
        counts=np.minimum(counts, MOST).astype(np.uint16),
        lengths=lengths,
    )


def merge(parts: Sequence[tuple[Postings, NDArray[np.int64]]], size: int) -> Postings:
    """The postings of a new shard of ``size`` chunks: each part with the new row of each of its chunks, -1 for none."""
    hashes, chunks, counts = [np.zeros(0, np.uint64)], [np.zeros(0, np.int64)], [np.zeros(0, np.uint16)]
    lengths = np.zeros(size, np.int32)
    for part, rows in parts:
        row = rows[part.chunks]
        kept = row >= 0
        hashes.append(np.repeat(part.terms, np.diff(part.starts))[kept])
        chunks.append(row[kept])
        counts.append(part.counts[kept])
        lengths[rows[rows >= 0]] = part.lengths[rows >= 0]
    return arrange(np.concatenate(hashes), np.concatenate(chunks), np.concatenate(counts), lengths)
