"""A published build, opened for questions: every part loads when it is first used."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from hybrid_ir import encoders
from hybrid_ir.dense.index import DenseIndex, Shard
from hybrid_ir.errors import BadInput, Conflict
from hybrid_ir.extraction.imported import ImportedExtractor
from hybrid_ir.extraction.load import load as load_extractor
from hybrid_ir.extraction.synonyms import Synonyms
from hybrid_ir.extraction.synonyms import load as load_synonyms
from hybrid_ir.graph.messages import MessageGraph, messages_of
from hybrid_ir.graph.pagerank import PageRank
from hybrid_ir.graph.store import StoredGraph, open_graph
from hybrid_ir.index import chunk_filter, layout, manifest
from hybrid_ir.index.assembly import ENTITY_VECTORS
from hybrid_ir.index.chunk_store import ChunkStore
from hybrid_ir.index.dense_shards import open_dense, open_dense_group
from hybrid_ir.index.manifest import Manifest
from hybrid_ir.index.plan import plan_of
from hybrid_ir.index.shard_groups import EVERYTHING, ShardGroup
from hybrid_ir.index.sparse_shards import open_sparse
from hybrid_ir.index.statements import Statements
from hybrid_ir.llm.load import load as load_llm
from hybrid_ir.reasoning.extractive import ExtractiveReasoner
from hybrid_ir.reasoning.llm_reasoner import LLMReasoner
from hybrid_ir.reasoning.prompt_files import load_prompts
from hybrid_ir.records import Filter, PathName
from hybrid_ir.retrieval.dense_path import DenseGroupPath, DensePath
from hybrid_ir.retrieval.graph_path import GraphPath
from hybrid_ir.retrieval.linking import Linker
from hybrid_ir.retrieval.rerank import load as load_reranker
from hybrid_ir.retrieval.sparse_path import SparsePath
from hybrid_ir.roles import LLM, Encoder, Extractor, GraphScorer, Reasoner, Reranker, RetrievalPath
from hybrid_ir.settings import ImportedExtractorSettings, LLMExtractorSettings, LLMReasonerSettings, Settings
from hybrid_ir.store import Store

if TYPE_CHECKING:
    from hybrid_ir.graph.gfm.owner import Owners
    from hybrid_ir.graph.gfm.prepared import PreparedGraph

_OF_BUILD = (
    "chunks",
    "graph",
    "messages",
    "statements",
    "extractor",
    "chunk_encoder",
    "entity_encoder",
    "dense_path",
)
"""Parts of an index that no other setting changes."""


class Index:
    """The parts of one build, with the models that its manifest names."""

    def __init__(self, store: Store, found: Manifest, settings: Settings) -> None:
        self.store, self.manifest, self.settings = store, found, settings
        self._folder = layout.build(found.build_id)
        self._owners: Callable[[PreparedGraph], Owners] | None = None

    def share_models(self, other: Index) -> None:
        """Use the models that another build has loaded, where this one was made with the same."""
        mine, theirs = self.manifest.fingerprints, other.manifest.fingerprints
        for part in ("chunk_encoder", "entity_encoder", "extractor"):
            same = getattr(mine, part) == getattr(theirs, part)
            if part == "extractor":  # an imported graph's names are those of its build
                same = same and mine.extractor.get("kind") != "imported"
            if same and part in other.__dict__:
                self.__dict__[part] = other.__dict__[part]

    def encode_by(self, chunk_encoder: Encoder, entity_encoder: Encoder) -> None:
        """Ask these in place of models of our own: they encode elsewhere, for this build."""
        self.__dict__.update(chunk_encoder=chunk_encoder, entity_encoder=entity_encoder)

    def own_by(self, owners: Callable[[PreparedGraph], Owners]) -> None:
        """Ask these owners of the graph's partitions, for this build, in place of opening them here."""
        self._owners = owners

    def asked_by(self, settings: Settings) -> Index:
        """The same build asked by other settings, with what is loaded here and does not depend on them.

        Raises Conflict where the settings are of another build.
        """
        if settings.build != self.settings.build:
            raise Conflict("These settings are of another index: their key build differs from the one that is open.")
        other = Index(self.store, self.manifest, settings)
        other.share_parts(self)
        return other

    def share_parts(self, other: Index) -> None:
        """Use what another opening of the same build has loaded, where it depends on the build alone.

        The reasoner too, where its settings are the same: it keeps what it has encoded.
        """
        same = self.settings.reasoner == other.settings.reasoner
        for part in (*_OF_BUILD, "reasoner") if same else _OF_BUILD:
            if part in other.__dict__:
                self.__dict__.setdefault(part, other.__dict__[part])

    @property
    def build_id(self) -> str:
        return self.manifest.build_id

    @cached_property
    def chunks(self) -> ChunkStore:
        return ChunkStore(self.store, self.manifest)

    @cached_property
    def graph(self) -> StoredGraph:
        return open_graph(self.store, self._folder)

    @cached_property
    def messages(self) -> MessageGraph:
        """G_ent both ways, in memory: for chains of triples."""
        return messages_of(self.graph)

    @cached_property
    def statements(self) -> Statements:
        return Statements(self.store, self.graph, self.chunks)

    @cached_property
    def extractor(self) -> Extractor:
        chosen = self.settings.build.extractor
        if isinstance(chosen, ImportedExtractorSettings):  # the names are in the index; the file may be gone
            return ImportedExtractor(chosen, self.graph.entity_names, self.manifest.fingerprints.extractor)
        extractor = load_extractor(chosen)
        if isinstance(chosen, LLMExtractorSettings):  # of a question it asks the rules; the model may be gone
            return extractor
        _check("extractor", self.manifest.fingerprints.extractor, extractor.fingerprint)
        return extractor

    @cached_property
    def chunk_encoder(self) -> Encoder:
        encoder = encoders.load(self.settings.build.chunk_encoder)
        _check("chunk encoder", self.manifest.fingerprints.chunk_encoder, encoder.fingerprint)
        return encoder

    @cached_property
    def entity_encoder(self) -> Encoder:
        encoder = encoders.load(self.settings.build.entity_encoder)
        _check("entity encoder", self.manifest.fingerprints.entity_encoder, encoder.fingerprint)
        return encoder

    @cached_property
    def dense_path(self) -> DensePath:
        plan, searching = plan_of(self.store, self.manifest), self.settings.build.dense
        return DensePath(open_dense(plan, settings=searching), self.chunk_encoder, self.allowed)

    def dense_group(self, group: ShardGroup) -> DenseGroupPath:
        """The dense path over the shards of one group."""
        plan, searching = plan_of(self.store, self.manifest), self.settings.build.dense
        return DenseGroupPath(open_dense_group(plan, group, searching), self.chunk_encoder, self.allowed)

    def sparse_group(self, group: ShardGroup) -> SparsePath:
        """The sparse path over the shards of one group."""
        return SparsePath(
            lambda: open_sparse(self.store, self.manifest, self.settings.sparse_path, group), self.allowed
        )

    @cached_property
    def graph_path(self) -> GraphPath:
        name = f"{self._folder}/{ENTITY_VECTORS}"
        held = [Shard(name)] if name in self.manifest.files else []
        vectors = DenseIndex(self.store, held, settings=self.settings.build.dense)
        linker = Linker(
            self.graph.entity_names,
            vectors,
            self.entity_encoder,
            self.settings.linker,
            self.graph.document_counts,
            self._synonyms,
        )
        counts, settings = self.graph.document_counts, self.settings.graph_path
        return GraphPath(linker, self._graph_scorer(), self.extractor, counts, settings, self.allowed)

    def _graph_scorer(self) -> GraphScorer:
        settings = self.settings.graph_path
        if settings.scorer == "pagerank":
            return PageRank(self.graph, settings)
        if settings.gfm is None:
            raise BadInput("graph_path.scorer is gfm; name its weights in graph_path.gfm.model.")
        # torch-geometric belongs to an extra of its own
        from hybrid_ir.graph.gfm import prepared

        return prepared.open_scorer(self.store, self.build_id, self.graph, settings.gfm, self._owners)

    def graph_owners(self, group: ShardGroup) -> Owners:
        """The owners of a group of the graph's partitions, for the bounded GFM."""
        if self.settings.graph_path.gfm is None:
            raise BadInput("graph_path.scorer is gfm; name its weights in graph_path.gfm.model.")
        from hybrid_ir.graph.gfm import prepared

        return prepared.open_group(self.store, self.build_id, self.graph, self.settings.graph_path.gfm, group)

    def allowed(self, filter: Filter | None) -> NDArray[np.bool_] | None:
        """The chunks that a filter lets through, shape (chunks,); None: all."""
        return chunk_filter.allowed(self.store, self.manifest, filter)

    def _synonyms(self) -> Synonyms:
        own = getattr(self.settings.build.extractor, "vocabularies", ())
        return load_synonyms(own if self.settings.linker.vocabularies is None else self.settings.linker.vocabularies)

    @cached_property
    def sparse_path(self) -> SparsePath:
        """Its index opens when it is first asked, and raises NotFound then where the build has no terms."""
        return self.sparse_group(EVERYTHING)

    @property
    def path_names(self) -> tuple[PathName, ...]:
        """The paths that a query can name."""
        return ("graph", "dense") if self.manifest.sparse is None else ("graph", "dense", "sparse")

    @cached_property
    def paths(self) -> dict[PathName, RetrievalPath]:
        return {name: getattr(self, f"{name}_path") for name in self.path_names}

    @cached_property
    def reranker(self) -> Reranker | None:
        return load_reranker(self.settings.rerank) if self.settings.rerank else None

    @cached_property
    def reasoner(self) -> Reasoner:
        settings = self.settings.reasoner
        if settings.kind == "extractive":
            return ExtractiveReasoner(self.chunk_encoder, self.extractor)
        return self.llm_reasoner(settings, load_llm(settings.llm))

    def llm_reasoner(self, settings: LLMReasonerSettings, model: LLM) -> Reasoner:
        """Around a model that is already open: behind a Serve handle, say."""
        prompts = load_prompts(settings.prompts)
        encoder = self.chunk_encoder if settings.check_support else None
        return LLMReasoner(model, prompts, settings.entities, settings.llm.max_tokens, encoder)


def open_index(root: str, settings: Settings | None = None, build_id: str | None = None) -> Index:
    """Open a root's published build, or the one named.

    Without settings it is opened with those it was built with; with settings, an encoder or
    extractor other than the build's is a :class:`Conflict`, on opening for what the settings
    show and on first use for what only the models show.
    """
    store = Store(root)
    found = manifest.read(store, build_id)
    if settings is None:
        return Index(store, found, Settings(build=found.settings))
    for part in ("chunk_encoder", "entity_encoder", "extractor"):
        built, given = getattr(found.settings, part), getattr(settings.build, part)
        # A commit stands in the fingerprint, which is compared on first use; an extractor's model is asked no more.
        irrelevant = {"device", "batch_size", "revision", "query_revision", "llm", "max_calls", "prompts"}
        _check(
            part.replace("_", " "),
            {k: str(v) for k, v in built.model_dump(exclude=irrelevant).items()},
            {k: str(v) for k, v in given.model_dump(exclude=irrelevant).items()},
        )
    return Index(store, found, settings)


def _check(part: str, built: dict[str, str], given: dict[str, str]) -> None:
    differing = sorted(key for key in built.keys() | given.keys() if built.get(key) != given.get(key))
    if differing:
        key = differing[0]
        raise Conflict(
            f"The index was built with another {part}: {key} is {built.get(key)!r} there and {given.get(key)!r} here. "
            "Use the settings it was built with, or index the corpus again."
        )
