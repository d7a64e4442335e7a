"""Four notes, a retriever by shared words, and the rules of a model that knows how to ask about them."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence

from hybrid_ir.llm.records import Prompt
from hybrid_ir.records import Chunk, Evidence, LoopState, PathHit, Question, Retrieval, Round, SubAnswer, SubQuestion
from hybrid_ir.roles import Query

NOTES = {
    "n1#0": "Marburg virus disease is caused by Marburg virus.",
    "n2#0": "Marburg virus is carried by Egyptian fruit bats. They live in caves.",
    "n3#0": "Gout is treated with allopurinol.",
    "n4#0": "Allopurinol inhibits xanthine oxidase.",
}
QUESTION = Question(text="Which animal carries the virus of Marburg virus disease?")
DRUGS = Question(text="What treats gout?", options={"A": "aspirin", "B": "allopurinol", "C": "warfarin"})
POLAR = Question(text="Is Marburg virus carried by bats?")


def evidence(chunk_id: str, rank: int = 1, text: str | None = None, title: str = "") -> Evidence:
    text = NOTES[chunk_id] if text is None else text
    document, _, position = chunk_id.rpartition("#")
    chunk = Chunk(
        id=chunk_id,
        document_id=document,
        position=int(position),
        title=title,
        text=text,
        start=0,
        end=len(text),
        source="notes.txt",
    )
    return Evidence(chunk=chunk, score=1 / rank, paths={"dense": PathHit(rank=rank, score=1.0)})


def retrieval(*texts: str, titles: Sequence[str] = ()) -> Retrieval:
    """Evidence of these texts, best first, with ids h0#0, h1#0, ..."""
    titles = [*titles, *[""] * (len(texts) - len(titles))]
    found = [evidence(f"h{i}#0", i + 1, text, titles[i]) for i, text in enumerate(texts)]
    return Retrieval(query="q", evidence=tuple(found))


def state(question: Question, *rounds: Sequence[SubAnswer]) -> LoopState:
    made = tuple(Round(number=number, sub_answers=tuple(subs)) for number, subs in enumerate(rounds, start=1))
    return LoopState(question=question, rounds=made)


class Notes:
    """Ranks the notes by words shared with the query."""

    def __init__(self) -> None:
        self.queries: list[Query] = []

    async def retrieve(
        self, query: Query, k: int, paths: Sequence[str] | None = None, timeout_s: float | None = None
    ) -> Retrieval:
        self.queries.append(query)
        words = set(re.findall(r"\w+", query.text.casefold()))
        shared = {note: len(words & set(re.findall(r"\w+", text.casefold()))) for note, text in NOTES.items()}
        ranked = sorted((note for note in NOTES if shared[note]), key=lambda note: (-shared[note], note))[:k]
        found = tuple(evidence(note, rank) for rank, note in enumerate(ranked, start=1))
        return Retrieval(query=query.text, evidence=found)


def task(prompt: Prompt) -> str:
    """Which of our prompts it is, by its schema."""
    fields = set((prompt.json_schema or {}).get("properties", {}))
    for name, field in (
        ("gaps", "missing"),
        ("decompose", "sub_questions"),
        ("entities", "entities"),
        ("final_options", "answer_choice"),
        ("final_polar", "answer"),
        ("final_open", "short"),
        ("sub_answer", "statements"),
    ):
        if field in fields:
            return name
    raise AssertionError(fields)


def block(prompt: Prompt, name: str) -> str:
    """The text of one block of a prompt."""
    match = re.search(rf"<<\w+ {name}>>\n(.*?)\n<<", prompt.messages[1].content, re.DOTALL)
    assert match, name
    return match[1]


def asked(*texts: str, missing: str | None = None) -> str:
    told = {} if missing is None else {"missing": missing}
    return json.dumps({**told, "sub_questions": [{"question": text, "entities": [text.split()[-1]]} for text in texts]})


def first_passage(prompt: Prompt) -> str:
    """A statement that quotes the first passage and cites it."""
    text = block(prompt, "passage E1").split("\n")[-1]
    return json.dumps({"statements": [{"text": text, "citations": ["E1"]}], "enough_evidence": True})


def rules(prompt: Prompt) -> str:
    """Two rounds on the Marburg question: what causes it, then what carries that."""
    kind = task(prompt)
    if kind == "decompose":
        return asked("What causes Marburg virus disease", "What is gout treated with")
    if kind == "gaps":
        history = block(prompt, "found so far")
        return asked(missing="") if "bats" in history else asked("What is Marburg virus carried by", missing="carrier")
    if kind == "entities":
        return json.dumps({"entities": [block(prompt, "sub-question").split()[-1]]})
    if kind == "sub_answer":
        return first_passage(prompt)
    said = json.loads(first_passage(prompt))
    verdict = {
        "final_options": ("answer_choice", "B"),
        "final_polar": ("answer", "yes"),
        "final_open": ("short", "bats"),
    }
    field, value = verdict[kind]
    return json.dumps({**said, field: value})


def sub_answer(text: str, found: Retrieval, *statements: object) -> SubAnswer:
    return SubAnswer(sub_question=SubQuestion(text=text), retrieval=found, statements=tuple(statements))  # type: ignore[arg-type]
