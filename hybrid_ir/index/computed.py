"""What the models say of a shard's chunks: from the cache where it is known, else from the model."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from hybrid_ir.extraction.llm import LLMExtractor
from hybrid_ir.index import layout
from hybrid_ir.index.cache import Cache, key
from hybrid_ir.index.replies import Replies
from hybrid_ir.records import Chunk, Extraction
from hybrid_ir.roles import Encoder, Extractor
from hybrid_ir.store import Store


def extractions(
    store: Store, segment_id: str, shard: int, shards: int, chunks: Sequence[Chunk], extractor: Extractor
) -> tuple[list[dict[str, Any] | str], int]:
    """Each chunk's mentions and triples, or the reason why there are none; and how many were computed."""
    if extractor.fingerprint["kind"] == "imported":  # by ids and whole documents, and as cheap as the cache
        return list(map(_row, _extract(extractor, chunks))), len(chunks)
    if isinstance(extractor, LLMExtractor):  # its replies are kept, one by one; reading them again costs nothing
        with Replies(store, extractor.reply_fingerprint, segment_id, shard, shards) as replies:
            results, asked = extractor.extract_kept(chunks, replies)
            replies.finish()
        return list(map(_row, results)), asked
    cache = Cache(store, "extraction", extractor.fingerprint, pa.string())
    keys = [key(piece.title, piece.section, piece.kind, piece.text, int(piece.position == 0)) for piece in chunks]
    buckets = layout.buckets_of(shard, shards)
    known: dict[bytes, dict[str, Any] | str] = {k: json.loads(v) for k, v in cache.get(buckets, keys).items()}
    missing = [row for row, k in enumerate(keys) if k not in known]
    fresh: dict[bytes, tuple[int, bytes, str]] = {}
    for row, found in zip(missing, _extract(extractor, [chunks[row] for row in missing]), strict=True):
        if isinstance(found, str):
            known[keys[row]] = found
            continue
        value = _value(found)
        known[keys[row]] = value
        fresh[keys[row]] = (layout.bucket_of(chunks[row].document_id), keys[row], json.dumps(value, ensure_ascii=False))
    cache.put(buckets, f"{segment_id}-{shard:05d}", list(fresh.values()))
    return [known[k] for k in keys], len(missing)


def vectors(
    store: Store, segment_id: str, shard: int, shards: int, chunks: Sequence[Chunk], encoder: Encoder
) -> tuple[NDArray[np.float32], int]:
    """Vectors of shape (chunks, dimension), and how many were computed."""
    titles = [" - ".join(part for part in (piece.title, piece.section) if part) for piece in chunks]
    keys = [key(title, piece.text) for title, piece in zip(titles, chunks, strict=True)]
    cache = Cache(store, "vectors", encoder.fingerprint, pa.list_(pa.float32(), encoder.dimension))
    buckets = layout.buckets_of(shard, shards)
    known = cache.get(buckets, keys)
    missing = [row for row, k in enumerate(keys) if k not in known]
    found = np.zeros((len(chunks), encoder.dimension), np.float32)
    for row, k in enumerate(keys):
        if k in known:
            found[row] = known[k]
    found[missing] = _encode(encoder, [titles[r] for r in missing], [chunks[r].text for r in missing])
    fresh = {
        keys[r]: (layout.bucket_of(chunks[r].document_id), keys[r], found[r])
        for r in missing
        if np.isfinite(found[r]).all()
    }
    cache.put(buckets, f"{segment_id}-{shard:05d}", list(fresh.values()))
    return found, len(missing)


def _row(found: Extraction | str) -> dict[str, Any] | str:
    return found if isinstance(found, str) else _value(found)


def _value(found: Extraction) -> dict[str, Any]:
    return {
        "mentions": list(dict.fromkeys(found.mentions)),
        "triples": list(dict.fromkeys((t.head, t.relation, t.tail) for t in found.triples)),
    }


def _extract(extractor: Extractor, chunks: Sequence[Chunk]) -> list[Extraction | str]:
    """As the extractor does it; where it gives up on all of them, one by one."""
    try:
        return extractor.extract(chunks)
    except Exception as error:
        if len(chunks) <= 1:
            return [f"{type(error).__name__}: {error}" for _ in chunks]
        return [result for piece in chunks for result in _extract(extractor, [piece])]


def _encode(encoder: Encoder, titles: Sequence[str], texts: Sequence[str]) -> NDArray[np.float32]:
    """As the encoder does it; where it gives up on all of them, one by one, with NaN for what it cannot do."""
    try:
        return encoder.encode_passages(titles, texts)
    except Exception:
        if len(texts) <= 1:
            return np.full((len(texts), encoder.dimension), np.nan, np.float32)
        alone = [_encode(encoder, [title], [text]) for title, text in zip(titles, texts, strict=True)]
        return np.concatenate(alone)
