"""A language model's valid replies, kept by what was asked: each is paid for once.

Replies are written while they come, in parts of a few seconds, so that a job that is killed or
loses its endpoint has lost little; a shard that is done has one file.
"""

from __future__ import annotations

import time
from collections.abc import Sequence

import pyarrow as pa

from hybrid_ir.index import layout
from hybrid_ir.index.cache import Cache, key
from hybrid_ir.index.manifest import digest
from hybrid_ir.llm.records import Prompt
from hybrid_ir.store import Store

SECONDS_BETWEEN_PARTS = 2.0


class Replies:
    """Of one shard.  A context: what is not yet written is written on leaving it, whatever happened inside."""

    def __init__(self, store: Store, fingerprint: dict[str, str], segment_id: str, shard: int, shards: int) -> None:
        """``fingerprint``: of the model and its sampling; what was asked is part of the key."""
        self._cache = Cache(store, "replies", fingerprint, pa.string())
        self._buckets = layout.buckets_of(shard, shards)
        self._writer = f"{segment_id}-{shard:05d}"
        self._fresh: dict[bytes, tuple[int, bytes, str]] = {}
        self._written = time.monotonic()

    def get(self, prompts: Sequence[Prompt]) -> list[str | None]:
        """The reply to each, or None where none is kept."""
        keys = [prompt_key(prompt) for prompt in prompts]
        held = self._cache.get(self._buckets, keys)
        return [held.get(k) for k in keys]

    def put(self, document_id: str, prompt: Prompt, text: str) -> None:
        """Keep a valid reply to a prompt about a document of this shard."""
        k = prompt_key(prompt)
        self._fresh[k] = (layout.bucket_of(document_id), k, text)
        if time.monotonic() - self._written >= SECONDS_BETWEEN_PARTS:
            self.flush()

    def flush(self) -> None:
        """Write what came since the last part."""
        rows, self._fresh = list(self._fresh.values()), {}
        self._cache.put(self._buckets, f"{self._writer}-part-{digest(sorted(row[1].hex() for row in rows))}", rows)
        self._written = time.monotonic()

    def finish(self) -> None:
        """The shard is done: one file in the place of the parts."""
        rows, self._fresh = list(self._fresh.values()), {}
        self._cache.merge(self._buckets, self._writer, rows)

    def __enter__(self) -> Replies:
        return self

    def __exit__(self, *error: object) -> None:
        self.flush()


def prompt_key(prompt: Prompt) -> bytes:
    """Of all that a reply depends on beside the model and its sampling."""
    return key(
        *(part for message in prompt.messages for part in (message.role, message.content)), digest(prompt.json_schema)
    )
