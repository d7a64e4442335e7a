"""How a built index is asked: linking, paths, fusion, the loop and the reasoner."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field, ValidationError, field_validator

from hybrid_ir.errors import BadInput
from hybrid_ir.settings.build import EncoderSettings
from hybrid_ir.settings.group import Group, Positive, Share
from hybrid_ir.settings.llm import LLMSettings


class LinkerSettings(Group):
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


class GFMSettings(Group):
    """The graph foundation model (GFM-RAG); a build is prepared for it by ``hybrid-ir prepare-gfm``."""

    model: str
    """A local folder with the published ``config.json`` and ``model.pth``, or a fetched model's hub name."""
    revision: str | None = None
    """The hub's commit or tag."""
    text_encoder: EncoderSettings | None = None
    """Of questions and relation names; ``None``: the one the checkpoint names, as it was trained."""
    mode: Literal["exact", "bounded"] = "exact"
    """``bounded``: only the nodes near the seeds move; needs a background, stored with the build."""
    active: Positive = 1000
    """K of the bounded mode."""
    audit_share: Share = 0.001
    """Of the bounded mode's queries in the service so many are scored exactly as well, one at a time beside the
    others, and the differences are metrics.  An audit takes the exact mode's time and memory; 0: none."""
    ranker: Literal["softmax", "sigmoid", "idf", "top20"] = "softmax"
    """How the relevance of entities becomes that of chunks; ``top20`` is GFM-RAG's own."""
    products: Literal["float32", "bfloat16"] = "float32"


class GraphPathSettings(Group):
    """The graph path's scorer and ranker."""

    scorer: Literal["pagerank", "gfm"] = "pagerank"
    gfm: GFMSettings | None = None
    """Where ``scorer`` is ``gfm``."""
    damping: Share = 0.5
    iterations: Positive = 30
    tolerance: float = 1e-7
    exact_up_to_edges: Annotated[int, Field(ge=0)] = 10_000
    """PageRank of a larger graph, its edges counted in both directions, is pushed from the seeds."""
    push_tolerance: Annotated[float, Field(gt=0)] = 2e-6
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


class SparsePathSettings(Group):
    """BM25."""

    k1: Annotated[float, Field(ge=0)] = 1.2
    """How much a term's further occurrences add; 0: nothing."""
    b: Share = 0.75
    """How much a long chunk is held to be long for no reason; 0: not at all."""


class FusionSettings(Group):
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


class RerankSettings(Group):
    """A cross-encoder over the best fused chunks."""

    model: str
    """``package:NAME/FOLDER``, a local folder, or a hub name: ``ncbi/MedCPT-Cross-Encoder``."""
    revision: str | None = None
    """The hub's commit or tag."""
    top_n: Annotated[int, Field(ge=1, le=1000)] = 50
    """So many of the fused list are read and put in a new order; the others keep theirs, after them."""
    batch_size: Positive = 16
    max_tokens: Positive = 512
    """Of query and chunk together; the longer of the two loses its end."""
    device: Literal["auto", "cpu", "cuda"] = "auto"
    dtype: Literal["float32", "bfloat16", "float16"] = "float32"


class LoopSettings(Group):
    """Algorithm 1."""

    flow: Literal["hybrid", "single", "imedrag", "zero_shot", "chain_of_thought"] = "hybrid"
    """How a method comes to its answer; see ``reasoning/flows.py``.  The last three need a language model."""
    rounds: Annotated[int, Field(ge=1, le=10)] = 3
    sub_questions: Annotated[int, Field(ge=1, le=10)] = 3
    top_k: Annotated[int, Field(ge=1, le=100)] = 5
    deadline_s: Annotated[float, Field(gt=0)] = 60.0
    stop_early: bool = True
    """Stop when the reasoner says that nothing is missing; the paper always runs all rounds."""
    trace_texts: bool = False
    """Keep the texts of question, evidence and answer in a trace, not only their hashes."""

    def changed(self, **changes: float | None) -> LoopSettings:
        """With the changes that are not None; one out of bounds is a :class:`BadInput` that names it."""
        given = {name: value for name, value in changes.items() if value is not None}
        try:
            return LoopSettings.model_validate({**self.model_dump(), **given})
        except ValidationError as error:
            raise BadInput("; ".join(f"{e['loc'][0]}: {e['msg']}" for e in error.errors()) + ".") from error


class ExtractiveReasonerSettings(Group):
    """Quotes the evidence; no language model."""

    kind: Literal["extractive"] = "extractive"


class LLMReasonerSettings(Group):
    """A language model decomposes, answers and concludes."""

    kind: Literal["llm"]
    llm: LLMSettings
    entities: Literal["with_sub_questions", "separate"] = "with_sub_questions"
    """``separate``: a call of its own for the entities of each sub-question, as the paper has it; 3 calls deeper."""
    prompts: dict[str, str] = Field(default_factory=dict)
    """Name of a prompt of ours -> a file to use in its place."""
    check_support: bool = True
    """Say of each statement of the answer how close it is to what it cites; the encoder reads the cited chunks."""

    @field_validator("prompts")
    @classmethod
    def _absolute(cls, prompts: dict[str, str]) -> dict[str, str]:
        """A replica has a working folder of its own."""
        return {name: str(Path(path).expanduser().absolute()) for name, path in prompts.items()}


ReasonerSettings = Annotated[ExtractiveReasonerSettings | LLMReasonerSettings, Field(discriminator="kind")]
