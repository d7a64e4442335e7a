"""What goes in and out over HTTP, beside the library's own records."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, model_validator

from hybrid_ir.index.manifest import Counts, Fingerprints
from hybrid_ir.records import Answer, Filter, PathName

MAX_DEADLINE_S = 300.0
"""The longest that one request may run; replicas wait longer than this before they shut down."""

EXAMPLE_QUESTION = "A patient on warfarin gets fluconazole for thrush. What happens to the INR, and why?"


def _unicode(text: str) -> str:
    # JSON can spell half a surrogate pair; no response, log or file could hold it.
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise ValueError(f"character {error.start} is half of a surrogate pair, not a character") from None
    return text


Text = Annotated[str, AfterValidator(_unicode)]

_PATHS = "Retrieval paths to use, of `graph`, `dense` and `sparse`; absent: those of the setting `fusion.paths`."


class _Body(BaseModel):
    """An unknown field is an error that names it."""

    model_config = ConfigDict(frozen=True, extra="forbid")


class AnswerRequest(_Body):
    """A question, and how much work may go into it; absent fields come from the service's settings."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {"question": EXAMPLE_QUESTION},
                {
                    "question": "Which enzyme that clears S-warfarin does fluconazole inhibit?",
                    "options": {"A": "CYP2C9", "B": "CYP2D6", "C": "Monoamine oxidase"},
                    "rounds": 2,
                    "deadline_s": 20,
                },
            ]
        }
    )

    question: Text
    options: dict[Text, Text] = Field(default_factory=dict, description="Letter to text; empty for an open question.")
    rounds: Annotated[int, Field(ge=1, le=10, description="Most rounds of the retrieve-reason loop.")] | None = None
    sub_questions: Annotated[int, Field(ge=1, le=10, description="Most sub-questions a round.")] | None = None
    top_k: Annotated[int, Field(ge=1, le=100, description="Chunks of evidence a sub-question.")] | None = None
    paths: list[Text] | None = Field(None, description=_PATHS)
    deadline_s: (
        Annotated[float, Field(gt=0, le=MAX_DEADLINE_S, allow_inf_nan=False, description="Seconds for the whole.")]
        | None
    ) = None


class StreamableAnswerRequest(AnswerRequest):
    """A question, answered as a whole or event by event."""

    stream: bool = Field(False, description="Server-Sent Events of the loop; the last, `finished`, holds the answer.")


MAX_QUESTIONS = 32


class AnswersRequest(_Body):
    """Several questions."""

    questions: Annotated[list[AnswerRequest], Field(min_length=1, max_length=MAX_QUESTIONS)]


class FilterRequest(_Body):
    """Which chunks may come; every condition given must hold."""

    sources: list[Text] = Field(
        default_factory=list,
        max_length=100,
        description="Shell patterns; one must match the whole path of the source file: */rabies/*.md.",
    )
    year_from: Annotated[int, Field(ge=0, le=9999, description="Inclusive; text without a year drops out.")] | None = (
        None
    )
    year_to: Annotated[int, Field(ge=0, le=9999, description="Inclusive; text without a year drops out.")] | None = None
    document_ids: list[Text] = Field(default_factory=list, max_length=1000)

    @model_validator(mode="after")
    def _some_year(self) -> FilterRequest:
        if self.year_from is not None and self.year_to is not None and self.year_from > self.year_to:
            raise ValueError(f"year_from {self.year_from} is after year_to {self.year_to}: no year is between them")
        return self

    def record(self) -> Filter:
        return Filter(
            sources=tuple(self.sources),
            year_from=self.year_from,
            year_to=self.year_to,
            document_ids=tuple(self.document_ids),
        )


class RetrieveRequest(_Body):
    """One query: evidence without reasoning."""

    model_config = ConfigDict(
        json_schema_extra={"examples": [{"query": "fluconazole and warfarin", "k": 3}, {"query": "bats", "k": 1}]}
    )

    query: Text
    k: Annotated[int, Field(ge=1, le=100, description="Chunks of evidence.")] | None = None
    paths: list[Text] | None = Field(None, description=_PATHS)
    entities: list[Text] = Field(default_factory=list, max_length=50, description="Empty: found in the query.")
    filter: FilterRequest | None = None


class Refused(_Body):
    """A published build that is not served."""

    build_id: str
    reason: str


class BuildInfo(_Body):
    """The build that is served."""

    build_id: str
    counts: Counts
    fingerprints: Fingerprints
    paths: list[PathName]
    settings: dict[str, Any]
    """What shapes an answer: linker, graph path, sparse path, fusion, reasoner and loop."""
    refused: Refused | None = None
    """What is published meanwhile, and why it did not take over."""


class Status(_Body):
    status: str
    build_id: str | None = None


class ErrorDetail(_Body):
    """What is wrong."""

    type: str
    """For programs, one for each status: ``invalid_request``, ``unauthorized``, ``too_many_requests``, …"""
    message: str
    """A sentence that says what is wrong and what to do."""
    request_id: str
    """As in the header ``X-Request-ID`` and the service's log."""


class ErrorBody(_Body):
    """Every response that is not 2xx."""

    error: ErrorDetail


class AnswersBody(_Body):
    """One entry a question, in order: its answer, or why there is none."""

    answers: list[Answer | ErrorBody]
