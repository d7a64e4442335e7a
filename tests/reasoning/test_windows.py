"""Prompts that fit: what goes, in which order, and that it is said."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import pytest
from fake_llm import ScriptedLLM, count_words
from hypothesis import given
from hypothesis import strategies as st
from small_world import evidence, retrieval, state, sub_answer

from hybrid_ir.errors import BadInput
from hybrid_ir.llm.records import Message
from hybrid_ir.reasoning.llm_reasoner import LLMReasoner
from hybrid_ir.reasoning.windows import Fitted, Pair, fit, messages_hash
from hybrid_ir.records import Evidence, Question, Statement

FOUND = [evidence(f"d{i}#0", i + 1, f"passage {i} " + "word " * 20) for i in range(6)]
PAIRS = [Pair(f"question {i}", (("statement " * 10, ("d0#0",)),)) for i in range(3)]


def render(kept: Sequence[Evidence], told: Sequence[Pair]) -> tuple[Message, ...]:
    lines = ["the question"]
    lines += [item.chunk.text for item in kept]
    lines += [pair.question + " " + " ".join(text for text, _ in pair.statements) for pair in told]
    return (Message(role="user", content="\n".join(lines)),)


def fitted(window: int, found: Sequence[Evidence] = FOUND, pairs: Sequence[Pair] = PAIRS, reply: int = 20) -> Fitted:
    return asyncio.run(fit(ScriptedLLM("", window=window), render, found, pairs, reply))


def test_all_of_it_where_it_fits_counted_once_and_far_from_the_limit_never() -> None:
    for window, counts in ((400, 1), (600, 1), (1000, 0)):
        made = fitted(window)
        assert (len(made.evidence), made.cut_evidence, made.cut_history) == (6, (), 0)
        assert len(made.counted) == counts


def test_evidence_goes_first_from_the_lowest_rank_and_whole() -> None:
    made = fitted(150)
    kept = len(made.evidence)
    assert 1 <= kept < 6
    assert [item.chunk.id for item in made.evidence] == [f"d{i}#0" for i in range(kept)]
    assert made.cut_evidence == tuple(f"d{i}#0" for i in range(kept, 6))
    assert made.cut_history == 0
    assert all(item.chunk.text in made.messages[0].content for item in made.evidence)
    assert "passage 5" not in made.messages[0].content


def test_then_the_detail_of_the_oldest_pair() -> None:
    made = fitted(78)
    assert (len(made.evidence), made.cut_history) == (1, 1)
    text = made.messages[0].content
    assert "question 0" in text
    assert text.count("statement ") == 20


def test_the_window_is_never_passed() -> None:
    sizes = range(40, 260)
    for window in sizes:
        made = fitted(window)
        assert count_words(made.messages) + made.max_tokens <= window
        assert made.max_tokens == 20
        assert made.counted[messages_hash(made.messages)] == count_words(made.messages)
    kept = [(len(fitted(w).evidence), -fitted(w).cut_history) for w in sizes]
    assert kept == sorted(kept)


def test_a_reply_may_claim_half_of_the_window_at_most() -> None:
    assert fitted(100, (), (), reply=4000).max_tokens == 50


def test_a_question_alone_that_is_too_long_is_refused() -> None:
    with pytest.raises(BadInput, match="has 6 tokens, and 5 of the window of 10 are left"):
        fitted(10)


@given(st.integers(0, 12), st.integers(0, 6), st.integers(30, 500))
def test_any_sizes(chunks: int, pairs: int, window: int) -> None:
    found = [evidence(f"d{i}#0", i + 1, "word " * (3 + 7 * i % 11)) for i in range(chunks)]
    told = [Pair(f"question {i}", (("statement " * (2 + 5 * i % 7), ()),)) for i in range(pairs)]
    made = fitted(window, found, told, reply=10)
    assert count_words(made.messages) + made.max_tokens <= window
    assert len(made.evidence) + len(made.cut_evidence) == chunks
    assert len(made.counted) <= 7


def test_the_trace_says_what_was_cut_and_the_schema_forgets_it() -> None:
    texts = [f"Passage {i}. " + "Long words stand here. " * 12 for i in range(12)]
    told = sub_answer("Which?", retrieval(*texts), Statement(text="So it is.", citations=("h0#0",)))
    question = Question(text="What?", options={"A": "x", "B": "y"})
    llm = ScriptedLLM('{"answer_choice": "A", "statements": []}', window=1000)
    made = asyncio.run(LLMReasoner(llm, max_tokens=200).conclude(state(question, [told])))
    (call,) = made.calls
    assert call.evidence + call.cut_evidence == tuple(f"h{i}#0" for i in range(12))
    assert 0 < len(call.evidence) < 12
    prompt = llm.log[0].prompt
    assert count_words(prompt.messages) + prompt.max_tokens <= 1000
    labels = prompt.json_schema["properties"]["statements"]["items"]["properties"]["citations"]["items"]["enum"]
    assert labels == [f"E{i + 1}" for i in range(len(call.evidence))]
    assert (call.window, call.counted[messages_hash(prompt.messages)]) == (1000, count_words(prompt.messages))
