"""Counting tokens without the backend's help."""

import string

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tokenizers import Tokenizer, decoders, models, pre_tokenizers
from tokenizers.trainers import BpeTrainer
from transformers import PreTrainedTokenizerFast

from hybrid_ir.errors import BadInput
from hybrid_ir.llm import tokens
from hybrid_ir.llm.records import Message

MEDICAL = """Fluconazole inhibits CYP2C9 (Ki = 7.1 µmol/L) and raises the INR of a patient on warfarin by 38 %.
IL-2Rα, β-blockers, 5-hydroxytryptamine3 antagonists; HLA-B*57:01; NCT01234567; p < 0.0001, 95% CI 1.02-3.45.
Dihydropyrimidine dehydrogenase deficiency; pneumonoultramicroscopicsilicovolcanoconiosis; 患者は発熱した。"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A byte-level tokenizer of a small vocabulary: it cuts finer than any that is in use."""
    path = tmp_path_factory.mktemp("tokenizer")
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = BpeTrainer(vocab_size=2000, initial_alphabet=pre_tokenizers.ByteLevel.alphabet(), special_tokens=["<s>"])
    tokenizer.train_from_iterator([MEDICAL] * 3, trainer)
    fast = PreTrainedTokenizerFast(tokenizer_object=tokenizer)
    fast.chat_template = "{% for m in messages %}<s>{{ m.role }}: {{ m.content }}\n{% endfor %}"
    fast.save_pretrained(path)
    return path


def said(text: str) -> list[Message]:
    return [Message(role="user", content=text)]


def test_the_tokenizer_of_a_folder_counts_with_its_chat_template(folder) -> None:
    count = tokens.tokenizer(str(folder))
    one, two = count(said("fluconazole")), count(said("fluconazole") * 2)
    assert two == 2 * one
    assert count(said("")) >= 3  # the template's own


def test_the_estimate_is_above_a_tokenizer_that_knows_the_text(folder) -> None:
    count = tokens.tokenizer(str(folder))
    for line in MEDICAL.splitlines():
        assert tokens.estimate(said(line)) >= count(said(line))


@given(st.text(string.digits + string.punctuation + "αβ患者é😀 \n", max_size=60))
def test_of_signs_digits_and_other_scripts_every_byte_counts(text: str) -> None:
    solid = "".join(text.split())
    assert tokens.estimate(said(text)) >= len(solid.encode())


@given(st.text(max_size=40), st.text(max_size=40))
def test_more_text_is_never_fewer_tokens(first: str, second: str) -> None:
    assert tokens.estimate(said(first + second)) + 1 >= tokens.estimate(said(first))


def test_a_folder_without_a_tokenizer_and_a_name_that_is_not_fetched(tmp_path) -> None:
    with pytest.raises(BadInput, match="holds no tokenizer"):
        tokens.tokenizer(str(tmp_path))
    with pytest.raises(BadInput, match="models fetch"):
        tokens.tokenizer("nobody/nothing")
