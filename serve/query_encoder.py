"""The encoders of queries as a deployment, where ``serve.query_encoder`` is set; else the scorers hold them.

A GPU is then the encoder's alone, and what several scorers ask at the same time is one batch.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Sequence
from typing import Any, Literal, cast

import numpy as np
from ray import serve
from ray.serve.handle import DeploymentHandle

from hybrid_ir.errors import BadInput, Unavailable
from hybrid_ir.opened import Index
from hybrid_ir.roles import Encoder, Vectors
from hybrid_ir.settings import Settings
from serve.builds import Builds
from serve.handles import call
from serve.pinned import WARM_UP, longest_request_s

Part = Literal["chunk_encoder", "entity_encoder"]
Side = Literal["queries", "passages"]
Titled = Sequence[tuple[str, str]]
"""(title, text); the side ``queries`` has no titles."""
Call = tuple[Encoder, Side, Titled]

MOST_S = 20.0
"""A scorer's thread waits no longer: its requests have long been given up."""
WHO = "query encoder"


class QueryEncoder:
    """Ready means warm: both models have run once.  A build's models are those that its manifest names."""

    def __init__(self, root: str, build_id: str, settings: Settings) -> None:
        wanted = settings.serve.query_encoder
        if wanted is None:
            raise BadInput("serve.query_encoder is not set.")
        batched: Any = self._batched
        batched.set_max_batch_size(wanted.max_batch)
        batched.set_batch_wait_timeout_s(wanted.wait_s)
        self._sizes: Counter[int] = Counter()
        self._builds = Builds(root, settings, build_id, _opened, longest_request_s(settings))

    async def encode(self, build_id: str, part: Part, side: Side, texts: Titled) -> Vectors:
        """Shape (texts, dimension)."""
        encoders = await self._builds.get(build_id)
        found: Vectors | Exception = await self._batched((encoders[part], side, texts))
        if isinstance(found, Exception):
            raise found
        return found

    @serve.batch
    async def _batched(self, calls: list[Call]) -> list[Vectors | Exception]:
        self._sizes[len(calls)] += 1
        return await asyncio.to_thread(encoded, calls)

    async def batches(self) -> dict[int, int]:
        """How many batches had so many requests, since this replica started."""
        return dict(self._sizes)

    async def ready(self, build_id: str) -> None:
        await self._builds.get(build_id)


def _opened(index: Index) -> dict[Part, Encoder]:
    index.chunk_encoder.encode_queries([WARM_UP])
    index.entity_encoder.encode_passages([""], [WARM_UP])
    return {"chunk_encoder": index.chunk_encoder, "entity_encoder": index.entity_encoder}


def encoded(calls: Sequence[Call]) -> list[Vectors | Exception]:
    """Those of one model and side in one call, equal texts once; a call that fails costs no other."""
    results: dict[int, Vectors | Exception] = {}
    kinds = {(id(encoder), side): (encoder, side) for encoder, side, _ in calls}
    for encoder, side in kinds.values():
        places = [place for place, one in enumerate(calls) if one[0] is encoder and one[1] == side]
        found = _of_one(encoder, side, [calls[place][2] for place in places])
        results |= zip(places, found, strict=True)
    return [results[place] for place in range(len(calls))]


def _of_one(encoder: Encoder, side: Side, asked: Sequence[Titled]) -> list[Vectors | Exception]:
    places = {one: place for place, one in enumerate(dict.fromkeys(one for texts in asked for one in texts))}
    titles, texts = [title for title, _ in places], [text for _, text in places]
    try:
        vectors = encoder.encode_queries(texts) if side == "queries" else encoder.encode_passages(titles, texts)
    except Exception as error:
        if len(asked) == 1:
            return [error]
        return [found for some in asked for found in _of_one(encoder, side, [some])]
    return [vectors[[places[one] for one in texts]] for texts in asked]


class HandleEncoder:
    """See :class:`hybrid_ir.roles.Encoder`; pinned to one build.  Its blocking methods are for threads."""

    def __init__(self, handle: DeploymentHandle[Any], build_id: str, part: Part, fingerprint: dict[str, str]) -> None:
        self._handle, self._build_id, self._part = handle, build_id, part
        self.fingerprint = fingerprint

    @property
    def dimension(self) -> int:
        return int(self.encode_queries([WARM_UP]).shape[1])

    async def queries(self, texts: Sequence[str]) -> Vectors:
        """As ``encode_queries``, for an event loop; a caller that leaves ends the call."""
        return await self._asked("queries", [("", text) for text in texts])

    def encode_queries(self, texts: Sequence[str]) -> Vectors:
        return self._now("queries", [("", text) for text in texts])

    def encode_passages(self, titles: Sequence[str], texts: Sequence[str]) -> Vectors:
        return self._now("passages", list(zip(titles, texts, strict=True)))

    def _now(self, side: Side, texts: Titled) -> Vectors:
        async def limited() -> Vectors:
            async with asyncio.timeout(MOST_S):
                return await self._asked(side, texts)

        try:
            return asyncio.run(limited())
        except TimeoutError as error:
            raise Unavailable(f"The {WHO} did not answer within {MOST_S:g} s.") from error

    async def _asked(self, side: Side, texts: Titled) -> Vectors:
        if not texts:
            raise ValueError("nothing to encode")
        found = await call(self._handle, "encode", self._build_id, self._part, side, texts, who=WHO)
        return cast(Vectors, np.asarray(found))


def encode_by(index: Index, handle: DeploymentHandle[Any] | None) -> HandleEncoder | None:
    """Have an index ask the deployment, where there is one; returns the encoder of its chunks."""
    if handle is None:
        return None
    prints = index.manifest.fingerprints
    chunks = HandleEncoder(handle, index.build_id, "chunk_encoder", prints.chunk_encoder)
    entities = HandleEncoder(handle, index.build_id, "entity_encoder", prints.entity_encoder)
    index.encode_by(chunks, entities)
    return chunks
