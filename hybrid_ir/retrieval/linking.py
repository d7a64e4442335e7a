"""Entity linking: the mentions of a query to the entities of the graph (Eq. 3).

The name itself comes first, then other spellings of it, then what the vocabularies call it, and
then its neighbours by vector: spelling and synonyms are facts, nearness is a guess.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterator, Sequence
from functools import cached_property

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from hybrid_ir.dense.index import DenseIndex
from hybrid_ir.extraction.names import canonical
from hybrid_ir.extraction.synonyms import Synonyms
from hybrid_ir.extraction.variants import alike, key, may_be_same, same_case
from hybrid_ir.records import EntityLink, Match
from hybrid_ir.roles import Encoder
from hybrid_ir.settings import LinkerSettings

Found = dict[int, tuple[float, Match]]
"""Entity -> similarity and how it was found, the surest first."""

NEIGHBOURS = 8
"""Looked at for each link asked for: the nearest may be a sibling that the numbers rule out."""


class Linker:
    """Aligns mentions with entities; ``names`` are sorted by code points, ``vectors`` holds a unit vector for each."""

    def __init__(
        self,
        names: pa.Array,
        vectors: DenseIndex,
        encoder: Encoder,
        settings: LinkerSettings,
        document_counts: NDArray[np.int64] | None = None,
        synonyms: Callable[[], Synonyms] | None = None,
    ) -> None:
        """``document_counts``: chunks that hold each entity; of two spellings the more frequent is taken.

        ``synonyms`` is called when first needed.
        """
        self._names, self._vectors, self._encoder, self._settings = _Names(names), vectors, encoder, settings
        self._counts = np.zeros(len(names), np.int64) if document_counts is None else document_counts
        self._load_synonyms = synonyms

    def link(self, mentions: Sequence[str]) -> list[tuple[EntityLink, int]]:
        """The best link of each mention, in order, with the entity's number (-1 where nothing is near enough)."""
        return [links[0] for links in self.link_many(mentions, 1)]

    def link_many(self, mentions: Sequence[str], top_n: int | None = None) -> list[list[tuple[EntityLink, int]]]:
        """Up to ``top_n`` links a mention (as the settings say where None), best first, each with its entity's number.

        A mention that names an entity links to that one alone: its neighbours would be noise.  One
        that links to nothing has one link, to None, with the number -1.  All mentions that need a
        vector are encoded in one call, so give those of several queries at once.
        """
        wanted = top_n or self._settings.top_n
        found = [self._by_name(mention) for mention in mentions]
        open_ = [i for i, links in enumerate(found) if not any(sure == 1.0 for sure, _ in links.values())]
        nearest = self._by_vector([mentions[i] for i in open_], wanted)
        missed: dict[int, float] = {}
        for i, (links, below) in zip(open_, nearest, strict=True):
            found[i] = links | found[i]  # the same entity by name and by vector: the name says it
            missed[i] = below
        result = []
        for i, mention in enumerate(mentions):
            order = sorted(found[i].items(), key=lambda item: (-item[1][0], -int(self._counts[item[0]]), item[0]))[
                :wanted
            ]
            links_of = [
                (EntityLink(mention=mention, entity=self._names[n], similarity=round(sure, 6), match=match), n)
                for n, (sure, match) in order
            ]
            nothing = EntityLink(mention=mention, entity=None, similarity=round(missed.get(i, 0.0), 6))
            result.append(links_of or [(nothing, -1)])
        return result

    def _by_name(self, mention: str) -> Found:
        for name in (mention, canonical(mention)):
            number = self._names.number(name)
            if number >= 0:
                return {number: (1.0, "exact")}
        for folded in (key(mention), key(mention.upper())):  # "ards" is no plural of "ard"
            variant = self._spelled(folded, mention)
            if variant is not None:
                return {variant: (1.0, "variant")}
        found: Found = {}
        for other, sure in self._synonyms.of(mention).items():
            entity = self._spelled(other, None)
            if entity is not None:
                found[entity] = (max(sure, found.get(entity, (0.0, None))[0]), "alias")
        return found

    def _spelled(self, folded: str, mention: str | None) -> int | None:
        """The entity whose name has this key: of several the one that most chunks hold, then the first."""
        entities = [n for n in self._spellings.numbers(folded) if mention is None or same_case(mention, self._names[n])]
        return min(entities, key=lambda n: (-int(self._counts[n]), n), default=None)

    def _by_vector(self, mentions: Sequence[str], wanted: int) -> list[tuple[Found, float]]:
        """Entities above the floor, and the similarity of the nearest where there is none."""
        if not mentions or not len(self._vectors):
            return [({}, 0.0) for _ in mentions]
        # Names are compared with names, so the mention goes through the passage side, as the entities did.
        vectors = self._encoder.encode_passages([""] * len(mentions), mentions)
        scores, ids = self._vectors.search(vectors, wanted * NEIGHBOURS)
        result: list[tuple[Found, float]] = []
        for mention, row_scores, row_ids in zip(mentions, scores, ids, strict=True):
            near: Found = {}
            for score, n in zip(row_scores.tolist(), row_ids.tolist(), strict=True):
                if n < 0 or score < self._settings.floor or len(near) == wanted:
                    break
                if self._near_enough(mention, self._names[n], score):
                    near[n] = (min(score, 1.0), "nearest")
            result.append((near, max(float(row_scores[0]), 0.0) if row_ids[0] >= 0 else 0.0))
        return result

    def _near_enough(self, mention: str, entity: str, similarity: float) -> bool:
        if self._settings.numbers_must_match and not (may_be_same(mention, entity) and same_case(mention, entity)):
            return False
        return similarity >= self._settings.unlike_floor or alike(mention, entity)

    @cached_property
    def _spellings(self) -> _Spellings:
        return _Spellings(self._names)

    @cached_property
    def _synonyms(self) -> Synonyms:
        return self._load_synonyms() if self._load_synonyms else Synonyms([])


class _Names(Sequence[str]):
    """A sorted Arrow array as a sequence, for binary search without a copy in Python."""

    def __init__(self, names: pa.Array) -> None:
        self._names = names

    def __len__(self) -> int:
        return len(self._names)

    def __getitem__(self, i: int) -> str:  # type: ignore[override]
        return str(self._names[i].as_py())

    def __iter__(self) -> Iterator[str]:
        for start in range(0, len(self), 65536):
            yield from self._names.slice(start, 65536).to_pylist()

    def number(self, name: str) -> int:
        i = bisect_left(self, name)
        return i if i < len(self) and self[i] == name else -1


class _Spellings:
    """Names by their key, as sorted hashes of 8 bytes a name: the keys themselves would be the names once more."""

    def __init__(self, names: _Names) -> None:
        """Takes about ten seconds for a million names."""
        self._names = names
        hashes = np.fromiter((hash(key(name)) for name in names), np.int64, len(names))
        self._order = np.argsort(hashes, kind="stable")
        self._hashes = hashes[self._order]

    def numbers(self, folded: str) -> list[int]:
        if not folded:
            return []
        wanted = np.int64(hash(folded))
        start, end = (int(np.searchsorted(self._hashes, wanted, side)) for side in ("left", "right"))
        return [n for n in self._order[start:end].tolist() if key(self._names[n]) == folded]
