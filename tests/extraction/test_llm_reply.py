"""What models really write, and what is read from it."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hybrid_ir.extraction.llm_reply import Unreadable, read_both, read_entities, read_triples
from hybrid_ir.llm.json_text import values

ABC, DEF = ("aspirin", "treats", "fever"), ("ibuprofen", "treats", "pain")
TWO = '[["aspirin", "treats", "fever"], ["ibuprofen", "treats", "pain"]]'


@pytest.mark.parametrize(
    ("reply", "facts", "whole"),
    [
        # as asked
        (f'{{"triples": {TWO}}}', [ABC, DEF], True),
        (f'{{\n  "triples": {TWO}\n}}\n', [ABC, DEF], True),
        ('{"triples": []}', [], True),
        # fences, prose, thinking
        (f'```json\n{{"triples": {TWO}}}\n```', [ABC, DEF], True),
        (f'```\n{{"triples": {TWO}}}\n```', [ABC, DEF], True),
        (f'The triples [as asked]:\n\n```json\n{{"triples": {TWO}}}\n```\nI hope {{this}} helps!', [ABC, DEF], True),
        (f'Sure! {{"triples": {TWO}}} Let me know.', [ABC, DEF], True),
        (f'<think>Maybe {{"triples": [["x", "y", "z"]]}}?</think>{{"triples": {TWO}}}', [ABC, DEF], True),
        (f'```json\n{{"triples": {TWO}}}', [ABC, DEF], True),
        # a list instead of an object, other keys
        (TWO, [ABC, DEF], True),
        ("[]", [], True),
        ("```json\n[]\n```", [], True),
        (f'{{"Triples": {TWO}}}', [ABC, DEF], True),
        (f'{{"knowledge_graph": {TWO}}}', [ABC, DEF], True),
        (f'{{"output": {TWO}}}', [ABC, DEF], True),
        (f'{{"result": {{"triplets": {TWO}}}}}', [ABC, DEF], True),
        (f'{{"entities": ["aspirin"], "triples": {TWO}}}', [ABC, DEF], True),
        # objects for triples
        ('{"triples": [{"head": "aspirin", "relation": "treats", "tail": "fever"}]}', [ABC], True),
        ('{"triples": [{"subject": "aspirin", "predicate": "treats", "object": "fever"}]}', [ABC], True),
        ('[{"source": "aspirin", "relationship": "treats", "target": "fever"}]', [ABC], True),
        ('[{"Subject": {"name": "aspirin", "type": "Drug"}, "Predicate": "treats", "Object": "fever"}]', [ABC], True),
        ('{"head": "aspirin", "relation": "treats", "tail": "fever"}', [ABC], True),
        ('{"triples": {"head": "aspirin", "relation": "treats", "tail": "fever"}}', [ABC], True),
        ('{"triples": [{"triple": ["aspirin", "treats", "fever"]}]}', [ABC], True),
        ('{"triples": {"1": ["aspirin", "treats", "fever"]}}', [], None),
        # one a line, flat, tails in a list, texts with bars
        ('["aspirin", "treats", "fever"]\n["ibuprofen", "treats", "pain"]', [ABC, DEF], True),
        ('{"triples": ["aspirin", "treats", "fever"]}', [ABC], True),
        ('{"triples": [["aspirin", "treats", ["fever", "pain"]]]}', [ABC, ("aspirin", "treats", "pain")], True),
        ('{"triples": ["aspirin | treats | fever", "(ibuprofen | treats | pain)"]}', [ABC, DEF], True),
        # not quite JSON
        ("{'triples': [('aspirin', 'treats', 'fever'), ('ibuprofen', 'treats', 'pain')]}", [ABC, DEF], True),
        ('{"triples": [["aspirin", "treats", "fever"], ["ibuprofen", "treats", "pain"],]}', [ABC, DEF], True),
        ('{"triples": [["aspirin", "treats", "fever"] ["ibuprofen", "treats", "pain"]]}', [ABC, DEF], True),
        ("{“triples”: [[“aspirin”, “treats”, “fever”]]}", [ABC], True),
        ('{"triples": [["the "old" drug", "treats", "Crohn\'s"]]}', [('the "old" drug', "treats", "Crohn's")], True),
        ('{"triples": [["IL-2R\\u03b1", "has\\nlevel", 50]]}', [("IL-2Rα", "has level", "50")], True),
        # said twice
        (f'{{"triples": {TWO}, "triples": [["aspirin", "treats", "fever"]]}}', [ABC, DEF], True),
        # some of its triples are none
        ('{"triples": [["aspirin", "treats", "fever"], ["aspirin", "fever"]]}', [ABC], True),
        ('{"triples": [["aspirin", "treats", "fever"], ["a", "b", "c", "d"]]}', [ABC], True),
        ('{"triples": [["aspirin", "treats", "fever"], ["", "treats", "x"]]}', [ABC], True),
        # cut
        ('{"triples": [["aspirin", "treats", "fever"], ["ibuprofen", "treats"', [ABC], False),
        ('{"triples": [["aspirin", "treats", "fever"], ["ibuprofen", "treats", "pain"', [ABC], False),
        ('```json\n{"triples": [["aspirin", "treats", "fever"], {"head": "ibu', [ABC], False),
        ('{"triples": [["aspirin", "treats", "fever"]', [ABC], False),
        ('{"triples": [["aspirin", "treats", "fever"], oops and then prose', [ABC], False),
        ('[{"head": "aspirin", "relation": "treats", "tail": "fever"}, {"head": "a", "tail": "c', [ABC], False),
        ('{"triples": [' + '["aspirin", "treats", "fever"], ' * 300, [ABC], False),
        # nothing readable
        ("", [], None),
        ("   \n", [], None),
        ("I'm sorry, but I can't help with medical questions.", [], None),
        ("There are no triples in this passage.", [], None),
        ("None", [], None),
        ("null", [], None),
        ("{}", [], None),
        ('{"triples": null}', [], None),
        ('{"triples": "none"}', [], None),
        ('{"error": []}', [], None),
        ('I cannot do that. []', [], None),
        ('{"triples": [["aspirin", "fever"]]}', [], None),
        ('{"triples": [["a", "b"], ["c", "d"], ["aspirin", "treats", "fever"]]}', [], None),
        ('{"triples": [[1, 2', [], None),
        ('{"triples": [', [], None),
        ('{"tri', [], None),
        ('{"type": "object", "properties": {"triples": {"type": "array"}}, "required": ["triples"]}', [], None),
        ("aaaa" * 5000, [], None),
        ("[" * 10000, [], None),
        ('{"a":' * 10000, [], None),
    ],
)  # fmt: skip
def test_triples(reply, facts, whole):
    if whole is None:
        with pytest.raises(Unreadable):
            read_triples(reply)
        return
    found = read_triples(reply)
    assert (list(found.triples), found.whole) == (facts, whole)


@pytest.mark.parametrize(
    ("reply", "names", "whole"),
    [
        ('{"entities": ["aspirin", "fever"]}', ["aspirin", "fever"], True),
        ('{"entities": []}', [], True),
        ("[]", [], True),
        ('```json\n{"named_entities": ["aspirin", "fever"]}\n```', ["aspirin", "fever"], True),
        ('["aspirin", "fever", "aspirin"]', ["aspirin", "fever"], True),
        ('{"entities": [{"name": "aspirin", "type": "Drug"}, {"entity": "fever"}]}', ["aspirin", "fever"], True),
        ('{"entities": {"aspirin": "Drug", "fever": "Symptom"}}', ["aspirin", "fever"], True),
        ('{"entities": {"drugs": ["aspirin"], "symptoms": ["fever"]}}', ["aspirin", "fever"], True),
        ('{"drugs": ["aspirin"], "symptoms": ["fever"]}', ["aspirin", "fever"], True),
        ('{"list": ["aspirin"]}', ["aspirin"], True),
        ('{"entities": ["aspirin", "fev', ["aspirin"], False),
        ('{"entities": ["asp', [], None),
        ('{"list": []}', [], None),
        ("", [], None),
        ("As an AI model I cannot name entities.", [], None),
        ('{"entities": "aspirin and fever"}', [], None),
        ('{"entities": [1.5, null, ["x"]]}', [], None),
        ('{"entities": ["' + "long " * 100 + '"]}', [], None),
    ],
)
def test_entities(reply, names, whole):
    if whole is None:
        with pytest.raises(Unreadable):
            read_entities(reply)
        return
    found = read_entities(reply)
    assert (list(found.entities), found.whole) == (names, whole)


@pytest.mark.parametrize(
    ("reply", "names", "facts", "whole"),
    [
        ('{"entities": ["aspirin"], "triples": [["aspirin", "treats", "fever"]]}', ["aspirin"], [ABC], True),
        ('{"triples": [["aspirin", "treats", "fever"]], "entities": ["aspirin"]}', ["aspirin"], [ABC], True),
        ('{"entities": [], "triples": []}', [], [], True),
        ('{"entities": ["aspirin"], "triples": []}', ["aspirin"], [], True),
        ('{"entities": ["aspirin"]}\n{"triples": [["aspirin", "treats", "fever"]]}', ["aspirin"], [ABC], True),
        ('{"triples": [["aspirin", "treats", "fever"]]}', [], [ABC], True),
        ('{"entities": ["aspirin", "fe', ["aspirin"], [], False),
        ('{"entities": ["aspirin"], "triples": [["aspirin", "treats", "fever"], ["ib', ["aspirin"], [ABC], False),
        ('{"entities": ["aspirin"]}', [], [], None),
        ("I cannot.", [], [], None),
    ],
)
def test_both(reply, names, facts, whole):
    if whole is None:
        with pytest.raises(Unreadable):
            read_both(reply)
        return
    found = read_both(reply)
    assert (list(found.entities), list(found.triples), found.whole) == (names, facts, whole)


@pytest.mark.parametrize(
    ("reply", "reason"),
    [
        ("", "it is empty."),
        ("I'm sorry.", 'it is no JSON: "I\'m sorry.".'),
        ('{"tri', "it is no JSON"),
        ('{"triples": [["a"', "it was cut before its first triple"),
        ('{"triples": [["a", "b"]]}', "none of its 1 triples has a head, a relation and a tail."),
        ('{"answer": 1}', "it is JSON without triples"),
    ],
)
def test_the_reason_says_what_is_wrong(reply, reason):
    with pytest.raises(Unreadable) as raised:
        read_triples(reply)
    assert reason in str(raised.value)


MESSY = st.text(st.sampled_from("{}[]()\",:;'“”`\\ntrue0-9.|abc αé\n\ud800"), max_size=60)


@given(st.one_of(st.text(max_size=60), MESSY))
def test_no_text_raises_anything_else(text):
    values(text)
    for read in (read_entities, read_triples, read_both):
        try:
            found = read(text)
        except Unreadable as error:
            str(error).encode("utf-8", "surrogatepass")
        else:
            assert all(isinstance(name, str) and name for name in found.entities)
            assert all(len(fact) == 3 and all(fact) for fact in found.triples)
            "".join(found.entities).encode()


NAME = st.text(min_size=1, max_size=12).filter(lambda text: text.split())
FACTS = st.lists(st.tuples(NAME, NAME, NAME), max_size=5)


def clean(part):
    """As the reader has it: white space folded, lone surrogates replaced."""
    return " ".join(part.encode("utf-16", "surrogatepass").decode("utf-16", "replace").split())


@given(FACTS, st.sampled_from([None, 1]), st.booleans(), st.booleans(), st.data())
def test_any_cut_of_a_valid_reply_gives_a_prefix_of_its_triples(facts, indent, escaped, as_objects, data):
    rows = [dict(zip(("head", "relation", "tail"), fact, strict=True)) for fact in facts] if as_objects else facts
    reply = json.dumps({"triples": rows}, indent=indent, ensure_ascii=escaped)
    all_of_them = read_triples(reply)
    assert all_of_them.whole
    assert list(all_of_them.triples) == list(dict.fromkeys(tuple(map(clean, fact)) for fact in facts))
    cut = reply[: data.draw(st.integers(0, len(reply) - 1))]
    try:
        found = read_triples(cut)
    except Unreadable:
        return
    assert not found.whole
    assert found.triples == all_of_them.triples[: len(found.triples)]
