"""Algorithm 1: order, parallelism, deadline, failures, cancellation, citations."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence

import pytest

from hybrid_ir.reasoning.events import EVENT, Event, Failed, Finished, RoundStarted, state_of
from hybrid_ir.reasoning.loop import answer, run
from hybrid_ir.records import (
    Answer,
    Chunk,
    Conclusion,
    Decomposition,
    Evidence,
    Findings,
    LoopState,
    PathHit,
    Question,
    Retrieval,
    Statement,
    SubQuestion,
)
from hybrid_ir.roles import Query
from hybrid_ir.settings import LoopSettings

NOTES = {
    "n1#0": "Marburg virus disease is caused by Marburg virus.",
    "n2#0": "Marburg virus is carried by Egyptian fruit bats.",
    "n3#0": "Gout is treated with allopurinol.",
}
QUESTION = Question(text="Which animal carries the virus of Marburg virus disease?")


def evidence(chunk_id: str, rank: int) -> Evidence:
    chunk = Chunk(
        id=chunk_id,
        document_id=chunk_id.partition("#")[0],
        position=0,
        title="",
        text=NOTES[chunk_id],
        start=0,
        end=len(NOTES[chunk_id]),
        source="notes.txt",
    )
    return Evidence(chunk=chunk, score=1 / rank, paths={"dense": PathHit(rank=rank, score=1.0)})


class WordRetriever:
    """Ranks the notes by words shared with the query; can be slow, broken or degraded for some queries."""

    def __init__(self, before: Callable[[str], object] | None = None, delay: float = 0.0) -> None:
        self.before = before
        self.delay = delay
        self.degraded: tuple[str, ...] = ()
        self.queries: list[str] = []
        self.timeouts: list[float | None] = []
        self.running = 0
        self.most_at_once = 0
        self.cancelled = 0

    async def retrieve(
        self, query: Query, k: int, paths: Sequence[str] | None = None, timeout_s: float | None = None
    ) -> Retrieval:
        self.queries.append(query.text)
        self.timeouts.append(timeout_s)
        self.running += 1
        self.most_at_once = max(self.most_at_once, self.running)
        try:
            await asyncio.sleep(self.delay)
            if self.before:
                self.before(query.text)
        except asyncio.CancelledError:
            self.cancelled += 1
            raise
        finally:
            self.running -= 1
        words = set(query.text.casefold().rstrip("?").split())
        shared = {note: len(words & set(text.casefold().rstrip(".").split())) for note, text in NOTES.items()}
        ranked = sorted((note for note in NOTES if shared[note]), key=lambda note: (-shared[note], note))[:k]
        found = tuple(evidence(note, rank) for rank, note in enumerate(ranked, start=1))
        return Retrieval(query=query.text, evidence=found, degraded=self.degraded)


class ScriptedReasoner:
    """Asks what the script says, quotes the best note, concludes with all that was said."""

    name = "scripted"

    def __init__(self, *script: Sequence[str]) -> None:
        self.script = script
        self.answer_delay = 0.0
        self.conclude_delay = 0.0
        self.decompose_delay = 0.0
        self.conclusion: Conclusion | None = None
        self.extra_citations: tuple[str, ...] = ()
        self.states: list[LoopState] = []

    async def decompose(self, state: LoopState, limit: int) -> Decomposition:
        await asyncio.sleep(self.decompose_delay)
        self.states.append(state)
        number = len(state.rounds)
        texts = self.script[number] if number < len(self.script) else ()
        return Decomposition(
            sub_questions=tuple(SubQuestion(text=text) for text in texts), missing="more" if texts else ""
        )

    async def answer(self, state: LoopState, sub_question: SubQuestion, retrieval: Retrieval) -> Findings:
        await asyncio.sleep(self.answer_delay)
        return Findings(
            statements=tuple(
                Statement(text=item.chunk.text, citations=(item.chunk.id, *self.extra_citations))
                for item in retrieval.evidence[:1]
            )
        )

    async def conclude(self, state: LoopState) -> Conclusion:
        await asyncio.sleep(self.conclude_delay)
        if self.conclusion:
            return self.conclusion
        said = tuple(s for r in state.rounds for a in r.sub_answers for s in a.statements)
        return Conclusion(short="bats", statements=said, enough_evidence=bool(said))


def ask(
    retriever: WordRetriever, reasoner: ScriptedReasoner, question: Question = QUESTION, **settings: object
) -> Answer:
    return asyncio.run(answer(question, retriever, reasoner, LoopSettings.model_validate(settings), build_id="b1"))


def events_of(retriever: WordRetriever, reasoner: ScriptedReasoner, **settings: object) -> list[Event]:
    async def collect() -> list[Event]:
        loop = run(QUESTION, retriever, reasoner, LoopSettings.model_validate(settings), build_id="b1")
        return [event async for event in loop]

    return asyncio.run(collect())


def test_one_round_is_plain_retrieval() -> None:
    retriever = WordRetriever()
    found = ask(retriever, ScriptedReasoner(["marburg virus carried"], ["never asked"]), rounds=1)
    assert retriever.queries == ["marburg virus carried"]
    assert (found.stopped, found.short, len(found.rounds)) == ("rounds", "bats", 1)
    assert [chunk.id for chunk in found.citations] == ["n2#0"]
    assert (found.build_id, found.reasoner) == ("b1", "scripted")


def test_the_state_grows_round_by_round() -> None:
    reasoner = ScriptedReasoner(["marburg virus disease"], ["egyptian bats"])
    found = ask(WordRetriever(), reasoner, rounds=3)
    assert [len(state.rounds) for state in reasoner.states] == [0, 1, 2]
    assert found.stopped == "nothing missing"
    assert [round_.number for round_ in found.rounds] == [1, 2]
    assert state_of(found) == reasoner.states[-1]


def test_sub_questions_of_a_round_overlap_in_time() -> None:
    retriever = WordRetriever(delay=0.05)
    found = ask(retriever, ScriptedReasoner(["marburg", "virus", "gout"]), rounds=1)
    assert retriever.most_at_once == 3
    assert [sub.sub_question.text for sub in found.rounds[0].sub_answers] == ["marburg", "virus", "gout"]


def test_a_repeated_sub_question_is_not_asked_again() -> None:
    retriever = WordRetriever()
    found = ask(retriever, ScriptedReasoner(["Marburg  virus", "marburg virus", " "], ["MARBURG virus"]), rounds=3)
    assert retriever.queries == ["Marburg  virus"]
    assert found.stopped == "nothing missing"


def test_not_more_sub_questions_than_the_settings_allow() -> None:
    retriever = WordRetriever()
    ask(retriever, ScriptedReasoner(["marburg", "Marburg", "virus", "gout"]), rounds=1, sub_questions=2)
    assert sorted(retriever.queries) == ["marburg", "virus"]


def test_without_sub_questions_the_question_itself_is_asked() -> None:
    retriever = WordRetriever()
    found = ask(retriever, ScriptedReasoner(), rounds=3)
    assert retriever.queries == [QUESTION.text]
    assert found.stopped == "nothing missing"


def test_stop_early_off_asks_the_question_itself_once() -> None:
    retriever = WordRetriever()
    found = ask(retriever, ScriptedReasoner(["marburg"]), rounds=5, stop_early=False)
    assert retriever.queries == ["marburg", QUESTION.text]
    assert (len(found.rounds), found.stopped) == (2, "nothing missing")


def test_a_failing_sub_question_does_not_take_the_answer_with_it() -> None:
    def broken(query: str) -> None:
        if query == "gout":
            raise ConnectionError("scorer is gone")

    events = events_of(WordRetriever(broken), ScriptedReasoner(["marburg", "gout"]), rounds=1)
    (failed,) = [event for event in events if isinstance(event, Failed)]
    assert (failed.index, failed.stage, failed.reason) == (1, "retrieve", "ConnectionError: scorer is gone")
    assert isinstance(events[-1], Finished)
    found = events[-1].answer
    assert found.enough_evidence
    assert found.degraded == ("retrieval",)
    assert [len(sub.retrieval.evidence) for sub in found.rounds[0].sub_answers] == [2, 0]


def test_all_failing_raises() -> None:
    def broken(query: str) -> None:
        raise ConnectionError("scorer is gone")

    with pytest.raises(ConnectionError, match="scorer is gone"):
        ask(WordRetriever(broken), ScriptedReasoner(["marburg", "gout"]), rounds=1)


def test_degraded_is_the_union() -> None:
    retriever = WordRetriever()
    retriever.degraded = ("graph",)
    assert ask(retriever, ScriptedReasoner(["marburg"], ["gout"])).degraded == ("graph",)


def test_deadline_in_retrieval_keeps_what_there_is() -> None:
    class SlowForGout(WordRetriever):
        async def retrieve(
            self, query: Query, k: int, paths: Sequence[str] | None = None, timeout_s: float | None = None
        ) -> Retrieval:
            self.delay = 30.0 if query.text == "gout" else 0.0
            return await super().retrieve(query, k, paths, timeout_s)

    retriever = SlowForGout()
    found = ask(retriever, ScriptedReasoner(["marburg", "gout"], ["virus"]), deadline_s=0.5)
    assert found.stopped == "deadline"
    assert found.seconds < 5.0
    assert retriever.cancelled == 1
    assert [sub.sub_question.text for sub in found.rounds[0].sub_answers] == ["marburg"]
    assert found.enough_evidence
    assert all(timeout is not None and 0 < timeout < 0.4 for timeout in retriever.timeouts)


def test_deadline_in_sub_answers_keeps_the_evidence() -> None:
    reasoner = ScriptedReasoner(["marburg"])
    reasoner.answer_delay = 30.0
    found = ask(WordRetriever(), reasoner, deadline_s=0.4)
    assert found.stopped == "deadline"
    assert len(found.rounds[0].sub_answers[0].retrieval.evidence) == 2


def test_deadline_in_decompose() -> None:
    reasoner = ScriptedReasoner(["marburg"])
    reasoner.decompose_delay = 30.0
    found = ask(WordRetriever(), reasoner, deadline_s=0.3)
    assert (found.stopped, found.rounds, found.enough_evidence, found.short) == ("deadline", (), False, "")


def test_deadline_in_the_conclusion_gives_the_sub_answers() -> None:
    reasoner = ScriptedReasoner(["marburg"])
    reasoner.conclude_delay = 30.0
    found = ask(WordRetriever(), reasoner, deadline_s=0.4)
    assert (found.stopped, found.enough_evidence, found.short) == ("deadline", False, "")
    assert found.statements
    assert found.citations


def test_a_retriever_that_keeps_to_its_time_and_gives_up_is_a_deadline() -> None:
    def gives_up(query: str) -> None:
        raise TimeoutError

    assert ask(WordRetriever(gives_up), ScriptedReasoner(["marburg"])).stopped == "deadline"


def test_a_reasoner_whose_backend_times_out_is_an_error() -> None:
    class Broken(ScriptedReasoner):
        async def decompose(self, state: LoopState, limit: int) -> Decomposition:
            raise TimeoutError("backend")

    with pytest.raises(TimeoutError, match="backend"):
        ask(WordRetriever(), Broken())


def test_cancelling_cancels_the_children() -> None:
    retriever = WordRetriever(delay=30.0)

    async def leave() -> None:
        task = asyncio.create_task(
            answer(QUESTION, retriever, ScriptedReasoner(["marburg", "gout"]), LoopSettings(), build_id="b1")
        )
        await asyncio.sleep(0.05)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert asyncio.all_tasks() == {asyncio.current_task()}

    asyncio.run(leave())
    assert (retriever.cancelled, retriever.running) == (2, 0)


def test_closing_the_stream_cancels_the_children() -> None:
    retriever = WordRetriever(delay=30.0)

    async def leave() -> None:
        events = run(QUESTION, retriever, ScriptedReasoner(["marburg", "gout"]), LoopSettings(), build_id="b1")
        assert isinstance(await anext(events), RoundStarted)
        waiting = asyncio.ensure_future(anext(events))
        await asyncio.sleep(0.05)
        waiting.cancel()
        await asyncio.gather(waiting, return_exceptions=True)
        await events.aclose()
        assert asyncio.all_tasks() == {asyncio.current_task()}

    asyncio.run(leave())
    assert (retriever.cancelled, retriever.running) == (2, 0)


def test_citations_outside_the_evidence_are_dropped_and_counted() -> None:
    reasoner = ScriptedReasoner(["marburg virus carried"])
    reasoner.conclusion = Conclusion(
        short="bats",
        statements=(
            Statement(text="Bats carry it.", citations=("n9#0", "n2#0", "n2#0", "n1#0")),
            Statement(text="I remember it.", citations=("made up",)),
            Statement(text="No source.", citations=()),
        ),
        enough_evidence=True,
    )
    found = ask(WordRetriever(), reasoner, rounds=1)
    assert [statement.citations for statement in found.statements] == [("n2#0", "n1#0")]
    assert found.dropped_citations == 2
    assert [chunk.id for chunk in found.citations] == ["n2#0", "n1#0"]


def test_sub_answers_may_cite_only_their_own_evidence() -> None:
    reasoner = ScriptedReasoner(["gout"])
    reasoner.extra_citations = ("n1#0",)
    found = ask(WordRetriever(), reasoner, rounds=1)
    assert found.rounds[0].sub_answers[0].statements == (Statement(text=NOTES["n3#0"], citations=("n3#0",)),)
    assert found.dropped_citations == 1


def test_an_open_answer_without_support_is_no_answer() -> None:
    reasoner = ScriptedReasoner(["gout"])
    reasoner.conclusion = Conclusion(
        short="bats", statements=(Statement(text="I remember.", citations=("n9#0",)),), enough_evidence=True
    )
    found = ask(WordRetriever(), reasoner, rounds=1)
    assert (found.short, found.enough_evidence, found.statements) == ("", False, ())


def test_a_choice_without_support_stands_but_is_marked() -> None:
    reasoner = ScriptedReasoner(["gout"])
    reasoner.conclusion = Conclusion(choice="B", short="bats", enough_evidence=True)
    question = Question(text="Who?", options={"A": "rats", "B": "bats"})
    found = ask(WordRetriever(), reasoner, question)
    assert (found.choice, found.enough_evidence) == ("B", False)
    reasoner.conclusion = Conclusion(choice="E", short="bats", enough_evidence=True)
    assert ask(WordRetriever(), reasoner, question).choice is None


def test_events_are_in_order_and_survive_json() -> None:
    events = events_of(WordRetriever(), ScriptedReasoner(["marburg"], ["gout"]), rounds=2)
    one_round = ["round_started", "retrieved", "sub_answered", "round_finished"]
    assert [event.kind for event in events] == [*one_round, *one_round, "concluding", "finished"]
    assert [event.seconds for event in events] == sorted(event.seconds for event in events)
    assert [EVENT.validate_json(event.model_dump_json()) for event in events] == events
