"""The records that flow through Hybrid-IR, from a corpus file to an answer.

Offline: ``SourceFile -> Document -> Chunk -> Extraction``, with an ``ErrorRecord`` in the
place of whatever could not be used.  Online: ``Question -> Round -> Answer``, where every
statement points back at ``Evidence`` and every piece of evidence at its chunk.
"""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

PathName = str
"""The name of a retrieval path: ``graph`` or ``dense`` today; a retriever knows its own."""

SectionKind = Literal["text", "abstract", "table", "caption"]


class Record(BaseModel):
    """Immutable, strict about its fields, and serialisable to JSON."""

    model_config = ConfigDict(frozen=True, extra="forbid")


# --- offline: a corpus becomes chunks, triples and errors ---------------------------------


class SourceFile(Record):
    """One file of the corpus, as the user named it."""

    path: str
    size: int
    """Bytes."""


class Section(Record):
    """A stretch ``Document.text[start:end]`` under one heading path."""

    titles: tuple[str, ...] = ()
    """Headings from the outermost to this section's own; empty where there is none."""
    kind: SectionKind = "text"
    start: int
    end: int


class Document(Record):
    """One document as its reader understood it.

    Sections lie in order, do not overlap, and cover all text that is to be indexed.
    """

    id: str
    title: str = ""
    text: str
    sections: tuple[Section, ...]
    source: str
    """The file it came from."""
    locator: str = ""
    """Where in the file: ``line 3``, ``PMID 29768149``, ``record 7``, ``page 2``; empty for a whole file."""
    pmid: str | None = None
    doi: str | None = None
    year: int | None = None
    references: tuple[str, ...] = ()
    """What it cites, as ``pmid:123`` and ``doi:10.1000/x`` (a DOI in lower case)."""
    revision: int = 0
    """Of several documents with one id the highest revision counts; see ``corpus.revisions``."""


class Deletion(Record):
    """A corpus file says that a document (a PMID, say) no longer exists."""

    id: str
    source: str
    revision: int = 0


class Chunk(Record):
    """A passage of a document: what is extracted from, embedded, retrieved and cited."""

    id: str
    """``<document id>#<position>``: the same document gives the same ids in every build."""
    document_id: str
    position: int
    title: str
    section: str = ""
    """The heading path, joined by `` > ``."""
    kind: SectionKind = "text"
    text: str
    start: int
    end: int
    """Offsets into the document's text as its reader produced it: ``text == document.text[start:end]``."""
    source: str
    locator: str = ""
    year: int | None = None


class Triple(Record):
    """A statement of a chunk: head, relation and tail as surface forms."""

    chunk_id: str
    head: str
    relation: str
    tail: str


class Mention(Record):
    """An entity that a chunk names, whether or not a triple holds it."""

    chunk_id: str
    name: str


class Extraction(Record):
    """What an extractor found in one chunk."""

    chunk_id: str
    mentions: tuple[str, ...] = ()
    triples: tuple[Triple, ...] = ()


class ErrorRecord(Record):
    """Something that could not be used, and why; it never ends a job and is never silent."""

    subject: str
    """The document id, chunk id or source file."""
    source: str
    """The file."""
    stage: Literal["read", "chunk", "extract", "encode"]
    reason: str
    """A sentence for a person; it names the line or field where there is one."""


# --- online: a question becomes an answer -------------------------------------------------


class Question(Record):
    """What a user asks; ``options`` maps a letter to its text in a multiple-choice question."""

    text: str
    options: dict[str, str] = Field(default_factory=dict)


class SubQuestion(Record):
    """One query of a round.  ``entities`` empty means: find them in the text."""

    text: str
    entities: tuple[str, ...] = ()
    reason: str = ""
    """Why it is asked: ``clause 2``, ``bridge: bats``, ``option B``, or a model's own words."""


class Filter(Record):
    """Which chunks a query may bring; every condition given must hold, an empty one holds for all."""

    sources: tuple[str, ...] = ()
    """Shell patterns; one must match the chunk's source file: ``*/pubmed/*.xml.gz``."""
    year_from: int | None = None
    year_to: int | None = None
    """Inclusive; a chunk without a year passes only where neither is given."""
    document_ids: tuple[str, ...] = ()


Match = Literal["exact", "variant", "alias", "nearest"]
"""How an entity was found: by its name, by another spelling, by a synonym of a vocabulary, by its vector."""


class EntityLink(Record):
    """A mention of the query and the graph entity it was aligned to (Eq. 3)."""

    mention: str
    entity: str | None
    """``None``: nothing in the graph came close enough."""
    similarity: float
    match: Match | None = None
    """``None`` where the mention links to nothing."""


class PathHit(Record):
    """Where one path placed a chunk."""

    rank: Annotated[int, Field(ge=1)]
    score: float


class Evidence(Record):
    """A chunk that retrieval brought, with the path and rank that brought it."""

    chunk: Chunk
    score: float
    """The fused score (Eq. 5)."""
    rerank: float | None = None
    """What the reranker gave it, where there is one and it read this chunk; evidence is then in this order."""
    paths: dict[PathName, PathHit]


class Retrieval(Record):
    """The evidence for one query, best first, and how it came about."""

    query: str
    evidence: tuple[Evidence, ...]
    links: tuple[EntityLink, ...] = ()
    degraded: tuple[PathName, ...] = ()
    """Paths that failed or ran out of time; the others served."""
    seconds: dict[str, float] = Field(default_factory=dict)
    """Per path."""


class Statement(Record):
    """A sentence of an answer and the chunks that support it."""

    text: str
    citations: tuple[str, ...]
    support: float | None = None
    """Cosine between the statement and the best sentence of the chunks it cites; ``None``: not checked, or a quote."""


class ModelCall(Record):
    """One call of a language model: hashes stand for its prompt, its reply is whole."""

    prompt: str
    """Name and version: ``decompose 1``."""
    prompt_hash: str
    reply: str
    read: bool
    """Whether the reply could be read."""
    finish: Literal["stop", "length", "other"]
    prompt_tokens: int = 0
    completion_tokens: int = 0
    seconds: float
    tries: int = 1
    evidence: tuple[str, ...] = ()
    """The chunks in the prompt, in their order there."""
    cut_evidence: tuple[str, ...] = ()
    """The chunks left out because the window is full."""
    cut_history: int = 0
    """Earlier sub-questions whose answers, or which themselves, were left out for the same reason."""
    window: int = 0
    """Tokens of prompt and reply together."""
    counted: dict[str, int] = Field(default_factory=dict)
    """Hash of the messages -> tokens, for each time they were counted to fit the window."""


class SubAnswer(Record):
    """A sub-question with what was found for it."""

    sub_question: SubQuestion
    retrieval: Retrieval
    statements: tuple[Statement, ...]
    """Empty: not enough evidence."""


class Round(Record):
    """One pass of the loop."""

    number: Annotated[int, Field(ge=1)]
    missing: str = ""
    """From round 2 on: what the reasoner said it still lacked."""
    sub_answers: tuple[SubAnswer, ...]


Basis = Literal["evidence", "pairs", "memory", "memory_steps"]
"""What a conclusion rests on: the evidence; sub-questions and their answers alone; what a model knows, told at once
or step by step."""


class LoopState(Record):
    """H_t of Algorithm 1: all that the next call needs; can be stored and replayed."""

    question: Question
    rounds: tuple[Round, ...] = ()
    basis: Basis = "evidence"

    def asked(self) -> frozenset[str]:
        """The sub-questions so far, folded for comparison."""
        return frozenset(
            " ".join(answer.sub_question.text.casefold().split())
            for round_ in self.rounds
            for answer in round_.sub_answers
        )

    def evidence(self) -> dict[str, Evidence]:
        """Every chunk found so far by its id, with its best fused score."""
        found: dict[str, Evidence] = {}
        for round_ in self.rounds:
            for answer in round_.sub_answers:
                for item in answer.retrieval.evidence:
                    held = found.get(item.chunk.id)
                    if held is None or item.score > held.score:
                        found[item.chunk.id] = item
        return found


class Decomposition(Record):
    """What a reasoner wants to know next; no sub-questions means that nothing is missing."""

    sub_questions: tuple[SubQuestion, ...]
    missing: str = ""
    calls: tuple[ModelCall, ...] = ()
    unreadable: bool = False
    """There are no sub-questions because the model's replies could not be read."""


class Findings(Record):
    """What a reasoner found on one sub-question."""

    statements: tuple[Statement, ...] = ()
    """Empty: not enough evidence."""
    calls: tuple[ModelCall, ...] = ()


class Conclusion(Record):
    """A reasoner's final word, before its citations are checked."""

    choice: str | None = None
    """The option's letter; ``None`` in an open question, or where none could be read."""
    short: str
    """The short answer; empty where the evidence is not enough."""
    statements: tuple[Statement, ...] = ()
    enough_evidence: bool
    calls: tuple[ModelCall, ...] = ()


class Answer(Record):
    """What a user gets."""

    question: Question
    build_id: str
    reasoner: str
    choice: str | None
    short: str
    statements: tuple[Statement, ...]
    enough_evidence: bool
    citations: tuple[Chunk, ...]
    """The chunks that the statements cite, in order of first mention."""
    dropped_citations: int = 0
    """Citations of chunks that were not in the evidence; they were taken out."""
    from_memory: bool = False
    """Nothing was retrieved: this is what the model says it knows (zero-shot, chain of thought)."""
    unread_replies: int = 0
    """Replies of the language model that could not be read; what they were to say is missing."""
    rounds: tuple[Round, ...]
    degraded: tuple[PathName, ...] = ()
    stopped: Literal["rounds", "nothing missing", "deadline", "unreadable"]
    """Why the loop ended."""
    seconds: float
