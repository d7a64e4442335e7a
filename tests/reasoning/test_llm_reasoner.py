"""The loop with a language model: its calls, how it fails, and what it says then."""

from __future__ import annotations

import asyncio
import json

import pytest
from fake_llm import Fault, ScriptedLLM
from small_world import DRUGS, NOTES, POLAR, QUESTION, Notes, asked, block, retrieval, rules, state, sub_answer, task

from hybrid_ir import render
from hybrid_ir.errors import BadInput, Unavailable
from hybrid_ir.llm.records import Prompt
from hybrid_ir.reasoning.events import Called, Event, Failed, Finished
from hybrid_ir.reasoning.llm_reasoner import LLMReasoner
from hybrid_ir.reasoning.loop import answer, run
from hybrid_ir.records import Answer, LoopState, Question, Statement, SubQuestion
from hybrid_ir.settings import LoopSettings


def ask(
    llm: ScriptedLLM, question: Question = QUESTION, reasoner: LLMReasoner | None = None, **settings: object
) -> Answer:
    return asyncio.run(
        answer(question, Notes(), reasoner or LLMReasoner(llm), LoopSettings.model_validate(settings), build_id="b1")
    )


def events_of(llm: ScriptedLLM, question: Question = QUESTION, **settings: object) -> list[Event]:
    async def collect() -> list[Event]:
        loop = run(question, Notes(), LLMReasoner(llm), LoopSettings.model_validate(settings), build_id="b1")
        return [event async for event in loop]

    return asyncio.run(collect())


def but(**replaced: object):
    """The rules, with other replies to some prompts: a string, an exception, or a list of these in turn."""

    def script(prompt: Prompt):
        said = replaced.get(task(prompt))
        if isinstance(said, list):
            said = said.pop(0) if len(said) > 1 else said[0]
        return rules(prompt) if said is None else said

    return script


def test_two_rounds_and_an_answer_with_its_source() -> None:
    llm = ScriptedLLM(rules)
    found = ask(llm, rounds=3)
    assert (found.short, found.enough_evidence, found.stopped, found.reasoner) == (
        "bats",
        True,
        "nothing missing",
        "fake",
    )
    assert [round_.missing for round_ in found.rounds] == ["", "carrier"]
    assert [sub.sub_question.entities for sub in found.rounds[0].sub_answers] == [("disease",), ("with",)]
    assert found.statements == (Statement(text=NOTES["n1#0"], citations=("n1#0",)),)
    assert (found.dropped_citations, found.unread_replies) == (0, 0)
    kinds = [task(call.prompt) for call in llm.log]
    assert kinds == ["decompose", "sub_answer", "sub_answer", "gaps", "sub_answer", "gaps", "final_open"]


def test_every_call_is_an_event() -> None:
    llm = ScriptedLLM(rules)
    called = [event for event in events_of(llm) if isinstance(event, Called)]
    assert len(called) == len(llm.log)
    assert [(event.round, event.index) for event in called][:4] == [(1, None), (1, 0), (1, 1), (2, None)]
    assert all(event.call.read and event.call.window == 8192 and event.call.prompt_tokens for event in called)
    assert called[1].call.evidence == ("n1#0", "n2#0")
    assert {event.call.prompt for event in called} == {"decompose 1", "gaps 1", "sub_answer 1", "final_open 1"}


def test_the_separate_call_for_entities() -> None:
    llm = ScriptedLLM(rules)
    found = ask(llm, reasoner=LLMReasoner(llm, entities="separate"), rounds=1)
    kinds = [task(call.prompt) for call in llm.log]
    assert kinds == ["decompose", "entities", "entities", "sub_answer", "sub_answer", "final_open"]
    assert "entities" not in json.dumps(llm.log[0].prompt.json_schema)
    assert found.rounds[0].sub_answers[0].sub_question.entities == ("disease",)


@pytest.mark.parametrize(("question", "choice", "short"), [(DRUGS, "B", "allopurinol"), (POLAR, None, "yes")])
def test_the_kind_of_the_question_decides_the_prompt(question: Question, choice: str | None, short: str) -> None:
    found = ask(ScriptedLLM(rules), question, rounds=1)
    assert (found.choice, found.short, found.enough_evidence) == (choice, short, True)


def test_yes_and_no_as_options() -> None:
    question = Question(text="Do bats carry Marburg virus?", options={"A": "no", "B": "yes"})
    llm = ScriptedLLM(rules)
    found = ask(llm, question, rounds=1)
    assert (found.choice, found.short) == ("B", "yes")
    assert "one of: yes, no." in llm.log[-1].prompt.messages[0].content
    assert llm.log[-1].prompt.json_schema["properties"]["answer"]["enum"] == ["yes", "no"]


@pytest.mark.parametrize("size", range(2, 11))
def test_two_to_ten_options(size: int) -> None:
    options = {chr(65 + i): f"drug {i}" for i in range(size)}
    last = max(options)
    llm = ScriptedLLM(but(final_options=f"Several fit; {last} it is.\nThe answer is ({last})."))
    found = ask(llm, Question(text="What is gout treated with?", options=options), rounds=1)
    assert (found.choice, found.short) == (last, options[last])
    assert llm.log[-1].prompt.json_schema["properties"]["answer_choice"]["enum"] == list(options)


def test_equal_options_are_told_apart_by_the_letter_alone() -> None:
    question = Question(text="What is gout treated with?", options={"A": "allopurinol", "B": "allopurinol"})
    assert ask(ScriptedLLM(but(final_options="B")), question, rounds=1).choice == "B"
    found = ask(ScriptedLLM(but(final_options="allopurinol")), question, rounds=1)
    assert (found.choice, found.unread_replies, found.enough_evidence) == (None, 2, False)


def test_another_language() -> None:
    question = Question(text="Welches Tier überträgt das Marburgvirus (Marburg virus)?")
    found = ask(ScriptedLLM(but(decompose=asked("Wer überträgt Marburg virus"))), question, rounds=1)
    assert (found.short, found.enough_evidence) == ("bats", True)


def test_no_evidence_no_call_from_memory() -> None:
    llm = ScriptedLLM(but(decompose=asked("xyzzy"), gaps=asked(missing="")))
    for question in (Question(text="plugh?"), Question(text="plugh?", options={"A": "x", "B": "y"})):
        found = ask(llm, question)
        assert (found.short, found.choice, found.enough_evidence, found.statements) == ("", None, False, ())
    assert {task(call.prompt) for call in llm.log} == {"decompose", "gaps"}


def test_the_model_says_that_it_is_not_enough() -> None:
    said = json.dumps({"statements": [], "enough_evidence": False, "short": ""})
    found = ask(ScriptedLLM(but(final_open=said)), rounds=1)
    assert (found.short, found.enough_evidence, found.unread_replies) == ("", False, 0)


def test_an_unreadable_reply_is_asked_for_once_more() -> None:
    llm = ScriptedLLM(but(decompose=["I would rather not.", asked("What is Marburg virus carried by")]))
    found = ask(llm, rounds=1)
    assert (found.short, found.unread_replies) == ("bats", 1)
    first, second = llm.log[0].prompt, llm.log[1].prompt
    assert second.messages[1].content.startswith(first.messages[1].content)
    assert (first.seed, second.seed) == (None, 1)


@pytest.mark.parametrize(
    "nothing", ["", "   ", "I cannot help with that.", "{" * 2000, "bats " * 2000, "<html></html>"]
)
def test_a_model_that_says_nothing_is_marked(nothing: str) -> None:
    llm = ScriptedLLM(nothing)
    found = ask(llm, DRUGS)
    assert (found.choice, found.short, found.enough_evidence) == (None, "", False)
    # The question itself is asked once; then the loop stops.  Each of the four prompts was asked twice.
    assert (found.stopped, found.unread_replies, len(llm.log)) == ("unreadable", 8, 8)
    assert [sub.sub_question.text for sub in found.rounds[0].sub_answers] == [DRUGS.text]


def test_an_unreadable_conclusion_leaves_the_sub_answers() -> None:
    found = ask(ScriptedLLM(but(final_open="?")), rounds=1)
    assert (found.short, found.enough_evidence, found.unread_replies) == ("", False, 2)
    assert {statement.text for statement in found.statements} == {NOTES["n1#0"], NOTES["n3#0"]}


def test_a_reply_over_the_limit_is_read_as_far_as_it_goes() -> None:
    statements = [{"text": f"Statement {i} on bats.", "citations": ["E1"]} for i in range(400)]
    llm = ScriptedLLM(but(sub_answer=json.dumps({"statements": statements})))
    events = events_of(llm, rounds=1)
    cut = [event.call for event in events if isinstance(event, Called) and event.call.finish == "length"]
    assert cut
    assert all(call.read for call in cut)
    assert isinstance(events[-1], Finished)
    assert events[-1].answer.rounds[0].sub_answers[0].statements[0].text == "Statement 0 on bats."


def test_a_model_that_repeats_itself_is_quoted_once_and_its_question_asked_once() -> None:
    same = {"text": "Bats. Bats. Bats.", "citations": ["E1"]}
    llm = ScriptedLLM(
        but(
            decompose=asked(*["What is Marburg virus carried by"] * 3),
            gaps=asked("What is  marburg virus CARRIED by", missing="all"),
            sub_answer=json.dumps({"statements": [same] * 3, "enough_evidence": True}),
        )
    )
    found = ask(llm)
    assert [len(round_.sub_answers) for round_ in found.rounds] == [1]
    assert [s.text for s in found.rounds[0].sub_answers[0].statements] == ["Bats."]
    assert found.stopped == "nothing missing"


def test_a_failed_sub_question_leaves_the_others() -> None:
    def script(prompt: Prompt):
        gone = task(prompt) == "sub_answer" and "gout" in block(prompt, "sub-question")
        return Fault("status", status=503) if gone else rules(prompt)

    events = events_of(ScriptedLLM(script), rounds=1)
    failed = [event for event in events if isinstance(event, Failed)]
    assert [(event.index, event.stage) for event in failed] == [(1, "answer")]
    assert isinstance(events[-1], Finished)
    found = events[-1].answer
    assert (found.short, found.enough_evidence) == ("bats", True)
    assert [bool(sub.statements) for sub in found.rounds[0].sub_answers] == [True, False]
    assert found.rounds[0].sub_answers[1].retrieval.evidence  # it was found, and counts


def test_a_model_that_is_gone_is_a_clear_error() -> None:
    with pytest.raises(Unavailable, match="does not answer"):
        ask(ScriptedLLM(lambda _: Fault("status", status=503)))
    with pytest.raises(Unavailable, match="cut"):
        ask(ScriptedLLM(but(final_open=Fault("cut"))), rounds=1)


def test_a_cancelled_question_leaves_no_call_running() -> None:
    llm = ScriptedLLM(but(sub_answer=Fault("hang")))

    async def leave() -> None:
        work = asyncio.create_task(answer(QUESTION, Notes(), LLMReasoner(llm), LoopSettings(), build_id="b1"))
        while len(llm.log) < 3:
            await asyncio.sleep(0.01)
        work.cancel()
        with pytest.raises(asyncio.CancelledError):
            await work
        assert llm.log.running() == 0
        await asyncio.sleep(0.05)

    asyncio.run(leave())
    assert llm.log.outcomes() == ["answered", "cancelled", "cancelled"]


@pytest.mark.parametrize("stage", ["decompose", "entities", "sub_answer", "gaps", "final_open"])
def test_the_answer_comes_before_the_deadline(stage: str) -> None:
    llm = ScriptedLLM(but(**{stage: Fault("hang")}))
    reasoner = LLMReasoner(llm, entities="separate")
    found = ask(llm, reasoner=reasoner, deadline_s=0.5)
    assert found.stopped == "deadline"
    assert found.seconds < 2.0  # a busy machine's margin; not one call may be waited for
    assert llm.log.running() == 0
    assert "cancelled" in llm.log.outcomes()
    assert bool(found.rounds) == (stage not in ("decompose", "entities"))


def test_a_call_slower_than_the_others_is_cut_off_alone() -> None:
    def script(prompt: Prompt):
        late = task(prompt) == "sub_answer" and "gout" in block(prompt, "sub-question")
        return Fault("hang") if late else rules(prompt)

    llm = ScriptedLLM(script)
    found = ask(llm, deadline_s=0.6)
    assert (found.stopped, found.short) == ("deadline", "bats")
    assert [bool(sub.statements) for sub in found.rounds[0].sub_answers] == [True, False]
    assert llm.log.outcomes().count("cancelled") == 1


def test_citations_that_are_not_there_are_dropped_and_counted() -> None:
    said = {
        "statements": [
            {"text": "Bats carry it.", "citations": ["E1", "[E2]", "E99", "n2#0", "made up"]},
            {"text": "I remember this one.", "citations": ["E77"]},
            {"text": "And this.", "citations": []},
        ],
        "enough_evidence": True,
        "short": "bats",
    }
    found = ask(ScriptedLLM(but(final_open=json.dumps(said))), rounds=1)
    assert [statement.text for statement in found.statements] == ["Bats carry it."]
    assert set(found.statements[0].citations) <= set(NOTES)
    assert found.dropped_citations == 3


def test_prose_with_marks_is_read_too() -> None:
    found = ask(
        ScriptedLLM(but(final_open="Marburg virus is carried by bats [E1]. They live in caves. [E2, E9]")), rounds=1
    )
    assert [(s.text, len(s.citations)) for s in found.statements] == [
        ("Marburg virus is carried by bats.", 1),
        ("They live in caves.", 1),
    ]
    assert found.dropped_citations == 1


def test_support_is_the_cosine_with_the_best_cited_sentence(word_encoder) -> None:
    said = {
        "statements": [
            {"text": "Gout is treated with allopurinol.", "citations": ["E1"]},
            {"text": "Penguins love warm tropical beaches.", "citations": ["E1"]},
        ],
        "enough_evidence": True,
        "short": "allopurinol",
    }
    llm = ScriptedLLM(but(decompose=asked("What is gout treated with"), final_open=json.dumps(said)))
    found = ask(llm, Question(text="How is gout treated?"), LLMReasoner(llm, encoder=word_encoder()), rounds=1)
    assert [s.citations for s in found.statements] == [("n3#0",), ("n3#0",)]
    good, bad = (statement.support for statement in found.statements)
    assert good == pytest.approx(1.0)
    assert bad is not None
    assert bad < 0.3
    shown = render.answer(found)
    assert "allopurinol. [1]\n" in shown
    assert "beaches. [1] (weakly supported)\n" in shown


def test_what_went_wrong_is_shown() -> None:
    shown = render.answer(ask(ScriptedLLM(but(final_open="?")), rounds=1))
    assert "unread: 2 of the model's replies could not be read" in shown
    late = render.answer(ask(ScriptedLLM(but(decompose=Fault("hang"))), rounds=1, deadline_s=0.3))
    assert "Answer: none in time" in late
    assert "nothing was retrieved by then; --deadline-s" in late


def test_a_question_that_does_not_fit_the_window_is_refused() -> None:
    with pytest.raises(BadInput, match=r"too long for the language model: .* window of 300"):
        ask(ScriptedLLM(rules, window=300), Question(text="why " * 300))


def test_sub_questions_outside_of_json() -> None:
    listed = "Here they are:\n1. What carries Marburg virus?\n2) What causes Marburg virus disease?\nGood luck!"
    llm = ScriptedLLM(but(decompose=listed))
    found = ask(llm, rounds=1)
    assert [sub.sub_question.text for sub in found.rounds[0].sub_answers] == [
        "What carries Marburg virus?",
        "What causes Marburg virus disease?",
    ]


def test_an_answer_without_evidence_makes_no_call() -> None:
    llm = ScriptedLLM([])
    reasoner = LLMReasoner(llm)
    found = asyncio.run(reasoner.answer(LoopState(question=QUESTION), SubQuestion(text="q"), retrieval()))
    assert (found.statements, found.calls, list(llm.log)) == ((), (), [])


def test_the_final_prompt_holds_what_was_found_and_by_which_passages() -> None:
    found = retrieval("Bats carry it.", "Gout hurts.")
    told = sub_answer("Who carries it?", found, Statement(text="Bats do.", citations=("h0#0",)))
    empty = sub_answer("Since when?", retrieval())
    llm = ScriptedLLM(rules)
    asyncio.run(LLMReasoner(llm).conclude(state(QUESTION, [told, empty])))
    history = block(llm.log[0].prompt, "found so far")
    assert history == "Q: Who carries it?\n- Bats do. [E1]\n\nQ: Since when?\n- nothing was found in the documents"


def depth(llm: ScriptedLLM) -> int:
    """How many calls a user waits for: a call that starts when no other runs begins a new layer."""
    layers, until = 0, 0.0
    for call in sorted(llm.log, key=lambda call: call.start):
        layers += call.start >= until
        until = max(until, call.end or 0.0)
    return layers


@pytest.mark.parametrize(("entities", "calls", "deep"), [("with_sub_questions", 13, 7), ("separate", 22, 10)])
def test_three_rounds_of_three_are_seven_calls_deep(entities: str, calls: int, deep: int) -> None:
    notes = iter(f"What is {word} {note}" for note in ("Marburg virus", "gout", "Allopurinol") for word in "abc")

    def script(prompt: Prompt):
        if task(prompt) in ("decompose", "gaps"):
            missing = "more" if task(prompt) == "gaps" else None
            return asked(*(next(notes) for _ in range(3)), missing=missing)
        return rules(prompt)

    llm = ScriptedLLM(script, seconds=0.1)
    found = ask(llm, reasoner=LLMReasoner(llm, entities=entities), rounds=3, sub_questions=3)  # type: ignore[arg-type]
    assert (len(found.rounds), len(llm.log), depth(llm), llm.log.at_once()) == (3, calls, deep, 3)
