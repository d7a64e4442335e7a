"""What happens while a question is answered, as one list of events.

The streamed response, the live view, the trace, the replay and the report are all made from
this list.  Every event is a JSON object whose ``kind`` says what it is; ``seconds`` counts
from the start of the question.
"""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, TypeAdapter

from hybrid_ir.records import Answer, LoopState, ModelCall, Record, Retrieval, Round, SubAnswer, SubQuestion


class RoundStarted(Record):
    """The reasoner said what it wants to know next."""

    kind: Literal["round_started"] = "round_started"
    seconds: float
    number: int
    missing: str = ""
    sub_questions: tuple[SubQuestion, ...]


class Called(Record):
    """A language model replied; it comes before the event that its reply led to."""

    kind: Literal["called"] = "called"
    seconds: float
    round: int
    """Of the conclusion: the last round, 0 where there was none."""
    index: int | None = None
    """The sub-question's place in its round; ``None`` for a call on the whole question."""
    call: ModelCall


class Retrieved(Record):
    """Evidence arrived for one sub-question."""

    kind: Literal["retrieved"] = "retrieved"
    seconds: float
    round: int
    index: int
    """The sub-question's place in its round, from 0."""
    retrieval: Retrieval


class SubAnswered(Record):
    """A sub-question is done; events of one round come in the order in which they finish."""

    kind: Literal["sub_answered"] = "sub_answered"
    seconds: float
    round: int
    index: int
    sub_answer: SubAnswer


class Failed(Record):
    """A sub-question could not be retrieved or answered; the others go on."""

    kind: Literal["failed"] = "failed"
    seconds: float
    round: int
    index: int
    stage: Literal["retrieve", "answer"]
    reason: str


class RoundFinished(Record):
    """The round as it enters the state H_t; sub-answers in the order of the sub-questions."""

    kind: Literal["round_finished"] = "round_finished"
    seconds: float
    round: Round


class Concluding(Record):
    """No more rounds; the reasoner is writing the answer."""

    kind: Literal["concluding"] = "concluding"
    seconds: float
    stopped: Literal["rounds", "nothing missing", "deadline", "unreadable"]


class Wrote(Record):
    """A piece of the answer as the model writes it: not checked yet, and without its citations.

    What counts is ``Finished``; a trace leaves these out.
    """

    kind: Literal["wrote"] = "wrote"
    seconds: float
    text: str


class Finished(Record):
    """Always the last event."""

    kind: Literal["finished"] = "finished"
    seconds: float
    answer: Answer


Event = Annotated[
    RoundStarted | Called | Retrieved | SubAnswered | Failed | RoundFinished | Concluding | Wrote | Finished,
    Field(discriminator="kind"),
]

EVENT: TypeAdapter[Event] = TypeAdapter(Event)
"""Reads an event back: ``EVENT.validate_json(line)``."""


def state_of(answer: Answer) -> LoopState:
    """The state that an answer was concluded from, to replay or to conclude anew."""
    return LoopState(question=answer.question, rounds=answer.rounds)
