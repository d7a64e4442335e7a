"""Entity linking: the mentions of a query to the entities of the graph (Eq. 3)."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence

import pyarrow as pa

from hybrid_ir.dense.index import DenseIndex
from hybrid_ir.records import EntityLink
from hybrid_ir.roles import Encoder
from hybrid_ir.settings import LinkerSettings


class Linker:
    """Aligns a mention to the entity of its own name, else to the nearest by cosine."""

    def __init__(self, names: pa.Array, vectors: DenseIndex, encoder: Encoder, settings: LinkerSettings) -> None:
        """``names`` are sorted by code points; ``vectors`` holds one unit vector for each."""
        self._names, self._vectors, self._encoder, self._settings = _Names(names), vectors, encoder, settings

    def link(self, mentions: Sequence[str]) -> list[tuple[EntityLink, int]]:
        """One link a mention, in order, with the entity's number (-1 where nothing is near enough)."""
        exact = [self._names.number(mention) for mention in mentions]
        unknown = [i for i, number in enumerate(exact) if number < 0]
        nearest: dict[int, tuple[int, float]] = {}
        if unknown and len(self._vectors):
            # Names are compared with names, so the mention goes through the passage side, as the entities did.
            vectors = self._encoder.encode_passages([""] * len(unknown), [mentions[i] for i in unknown])
            scores, ids = self._vectors.search(vectors, 1)
            nearest = {i: (int(ids[row, 0]), float(scores[row, 0])) for row, i in enumerate(unknown)}
        links = []
        for i, mention in enumerate(mentions):
            number, similarity = (exact[i], 1.0) if exact[i] >= 0 else nearest.get(i, (-1, 0.0))
            if similarity < self._settings.floor:
                number = -1
            entity = self._names[number] if number >= 0 else None
            links.append((EntityLink(mention=mention, entity=entity, similarity=round(similarity, 6)), number))
        return links


class _Names(Sequence[str]):
    """A sorted Arrow array as a sequence, for binary search without a copy in Python."""

    def __init__(self, names: pa.Array) -> None:
        self._names = names

    def __len__(self) -> int:
        return len(self._names)

    def __getitem__(self, i: int) -> str:  # type: ignore[override]
        return str(self._names[i].as_py())

    def number(self, name: str) -> int:
        i = bisect_left(self, name)
        return i if i < len(self) and self[i] == name else -1
