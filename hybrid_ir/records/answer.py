"""Online: ``Question -> Round -> Answer``, what the loop gathers and what a user gets."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from hybrid_ir.records.corpus import Chunk
from hybrid_ir.records.query import Evidence, PathName, Question, Retrieval, SubQuestion
from hybrid_ir.records.record import Record


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
