"""What models write, with what is read: ours, and what MIRAGE's evaluation makes of it."""

from __future__ import annotations

import pytest

from hybrid_ir.reasoning.parsing import mirage_choice, read_choice

OPTIONS = {"A": "Lisinopril", "B": "metformin", "C": "Insulin glargine", "D": "Vitamin D"}

REPLIES = [
    ('{"statements": [], "enough_evidence": false, "answer_choice": "B"}', "B", "B"),
    (
        '{"statements": [{"text": "Option A is weaker.", "citations": ["E1"]}], "answer_choice": "B"}',
        "B",
        "B",
    ),
    ('```json\n{"answer_choice": "b"}\n```\nI hope this helps.', "B", "A"),
    ('{"answer_choice": "B", "step_by_step_thinking": "not A, as the answer is n', "B", "B"),
    ("Let us see. A lowers pressure, C is for type 1, D is a vitamin. So B.", None, "A"),
    ("A) is an ACE inhibitor. C) is insulin. D) is a vitamin.\n\nTherefore, the answer is B) metformin.", "B", "A"),
    ("<think>Could be A. Or C? The answer is A maybe.</think>\nB", "B", "A"),
    ('<think>The answer is A.</think>{"answer_choice": "B"}', "B", "B"),
    ("Answer: B\nAnswer: B\nAnswer: B\nAnswer: B", "B", "B"),
    ("B\nB\nB\nB", "B", "A"),
    ("Option B: metformin", "B", "B"),
    ("Choice B", "B", "A"),
    ("The correct option is B.", "B", "A"),
    ("The correct choice is (B) metformin.", "B", "A"),
    ("My final answer is B", "B", "A"),
    ("ANSWER: B", "B", "B"),
    ("Ans: B", "B", "B"),
    ("Answer - B", "B", "A"),
    ("Answer is: B", "B", "B"),
    ("answer=B", "B", "A"),
    ("I would choose B.", "B", "A"),
    ("I choose option B", "B", "B"),
    ("The best answer is B: metformin.", "B", "A"),
    ("It is B.", None, "A"),
    ("Correct answer: **B) metformin**", "B", "A"),
    ("**Answer: B**", "B", "B"),
    ("**B) metformin**", "B", "A"),
    ("*B*", "B", "A"),
    ("__B__", "B", "A"),
    ("<b>B</b>", "B", "A"),
    ("“B”", "B", "A"),
    ("(B", "B", "A"),
    ("B ) metformin", "B", "A"),
    ("B– metformin", "B", "A"),
    ("B — metformin", "B", "A"),
    ("Die Antwort ist B.", "B", "A"),
    ("Antwort: (B)", "B", "A"),
    ("La respuesta es B", "B", "A"),
    ("La réponse est B.", "B", "A"),
    ("Réponse : B", "B", "B"),
    ("La risposta è B", "B", "A"),
    ("Respuesta correcta: B", "B", "B"),
    ("正确答案是B", "B", "A"),
    ("答案是 B。", "B", "A"),
    ("答案：B. metformin", "B", "A"),
    ("Ответ: B", "B", "B"),
    ("回答：B", "B", "A"),
    ("A resposta é B", "B", "A"),
    ("Sorry, I cannot answer medical questions.", None, "A"),
    ("As an AI language model, I cannot give medical advice.", None, "A"),
    ("I'm unable to determine the answer.", None, "A"),
    ("No answer", None, "A"),
    ("N/A", None, "A"),
    ("None", None, "A"),
    ("I do not know. D", None, "A"),
    ("Insufficient evidence.", None, "A"),
    ("Antwort", None, "A"),
    ("A patient", None, "A"),
    ("Die Antwort hängt vom Alter ab.", None, "A"),
    ("Aucune", None, "A"),
    ("A.", "A", "A"),
    ("Both B and C are possible.", None, "A"),
    ("B, C", None, "B"),
    ("B & C", None, "A"),
    ("B/C", None, "B"),
    ("B and D", None, "B"),
    ("Either A or B", None, "A"),
    ("A, B, and C", None, "A"),
    ("(A) and (B)", None, "A"),
    ('{"answer_choice": "A or B"}', None, "A"),
    ('{"answer_choice": "B, C"}', None, "B"),
    ('{"answer_choice": ["B", "C"]}', None, "A"),
    ('{"answer_choice": "none"}', None, "A"),
    ('{"answer_choice": 2}', None, "A"),
    ('{"answer_choice":', None, "A"),
    ('{"answer_choice', None, "A"),
    ('{"answer": "B', "B", "A"),
    ("{'answer_choice': 'B', 'x': 1}", "B", "A"),
    ('{answer_choice: "B"}', "B", "A"),
    ('{"Answer": "B"}', "B", "A"),
    ('{"answer_choice": "Option B"}', "B", "B"),
    ('{"answer_choice": "(B)"}', "B", "A"),
    ('{"answer_choice": "B) metformin"}', "B", "A"),
    ('{"answer_choice": "metformin"}', "B", "A"),
    ('{"answer_choice": "The answer is B"}', "B", "A"),
    ('[{"answer_choice": "B"}]', "B", "B"),
    ('{"result": {"answer_choice": "B"}}', "B", "B"),
    ('json\n{"answer_choice": "B"}', "B", "B"),
    ('{"answer_choice": "A"}\nWait, that is wrong.\n{"answer_choice": "B"}', "B", "B"),
    ("The answer is not A but B.", None, "A"),
    ("A is wrong, C is wrong, D is wrong.", None, "A"),
    ("It cannot be A. The answer must be B.", "B", "A"),
    ("Vitamin D deficiency is common. The answer is B.", "B", "A"),
    ("vitamin d", "D", "A"),
    ("Vitamin B", None, "A"),
    ("Hepatitis B", None, "A"),
    ("Group A streptococcus", None, "A"),
    ("A. fib is common", None, "A"),
    ("b. metformin", "B", "A"),
    ("Answer\n\nB", "B", "A"),
    ("Final Answer\nB) metformin", "B", "A"),
    ("\\boxed{B}", "B", "A"),
    ("$\\boxed{\\text{B}}$", "B", "A"),
    ("The final answer is $\\boxed{B}$.", "B", "A"),
    ("####B", "B", "A"),
    ("#### B", "B", "A"),
    ("> B", "B", "A"),
    ("- B", "B", "A"),
    ("1. B", None, "A"),
    ("B.\n\nExplanation: A would be wrong.", "B", "A"),
    ("B (metformin)", "B", "A"),
    ("B because A is contraindicated", "B", "A"),
    ("metformin (B)", "B", "A"),
    ("Metformin (option B)", "B", "B"),
    ("The answer: metformin (B).", "B", "A"),
]


@pytest.mark.parametrize(("reply", "letter", "compatible"), REPLIES)
def test_reply(reply: str, letter: str | None, compatible: str) -> None:
    assert read_choice(reply, OPTIONS) == letter
    assert mirage_choice(reply) == compatible


def test_the_table_is_long_enough_to_mean_something() -> None:
    assert len(REPLIES) >= 80
    assert len({reply for reply, _, _ in REPLIES}) == len(REPLIES)
    assert {letter for _, letter, _ in REPLIES} == {None, "A", "B", "D"}


def test_a_list_of_the_options_is_no_answer() -> None:
    assert read_choice("A) lowers pressure\nB) is first choice\nC) comes later\nD) no", OPTIONS) is None
    assert read_choice("B) is first choice\nA) lowers pressure", OPTIONS) == "B"


def test_an_article_is_no_option() -> None:
    assert read_choice("A patient", {"A": "patient", "B": "doctor"}) is None
    assert read_choice("A (patient)", {"A": "patient", "B": "doctor"}) == "A"
    assert read_choice("A given patient may need it", {"A": "patient", "B": "doctor"}) is None
