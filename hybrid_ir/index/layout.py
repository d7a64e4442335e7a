"""Where each file of a root lies.  A name is a function of its input, never of time or process."""

from __future__ import annotations

import hashlib

CURRENT = "CURRENT"


def segment(segment_id: str) -> str:
    return f"segments/{segment_id}"


def build(build_id: str) -> str:
    return f"builds/{build_id}"


def manifest(build_id: str) -> str:
    return f"{build(build_id)}/manifest.json"


def report(build_id: str) -> str:
    return f"{build(build_id)}/report.json"


def shard(segment_id: str, kind: str, number: int) -> str:
    """``kind``: documents, chunks, deletions, mentions, triples, errors-<stage>, vectors, or dense."""
    ending = {"vectors": "npy", "dense": "faiss"}.get(kind, "parquet")
    return f"{segment(segment_id)}/{kind}/shard-{number:05d}.{ending}"


def sparse(segment_id: str, part: str, number: int) -> str:
    """``part``: an array of a shard's postings."""
    return f"{segment(segment_id)}/sparse/{part}-{number:05d}.npy"


def marker(segment_id: str, stage: str, number: int) -> str:
    """Written after all files of a stage's shard; its presence means that they are whole."""
    return f"{segment(segment_id)}/done/{stage}-{number:05d}.json"


def work(segment_id: str) -> str:
    """Parsed documents on their way to their shards; removed once the segment is whole."""
    return f"work/{segment_id}"


BUCKETS = 1 << 16
"""Names are hashed into this many buckets; a shard or part is a run of neighbouring buckets."""


def bucket_of(name: str) -> int:
    """A hash of a document's id or an entity's name, the same in every run and on every machine."""
    digest = hashlib.blake2b(name.encode("utf-8", "surrogatepass"), digest_size=2).digest()
    return int.from_bytes(digest, "big")


def shard_of(document_id: str, shards: int) -> int:
    """The shard that holds a document, of 1 to BUCKETS shards."""
    return bucket_of(document_id) * shards // BUCKETS


def buckets_of(shard: int, shards: int) -> range:
    """The buckets that a shard holds: shards of another number overlap it where their buckets do."""
    return range(-(-shard * BUCKETS // shards), -(-(shard + 1) * BUCKETS // shards))
