"""Random models of the real architectures, small enough for a test, in the folder layout of the hub."""

import string

import torch
from transformers import (
    BertConfig,
    BertForSequenceClassification,
    BertModel,
    BertTokenizerFast,
    MPNetConfig,
    MPNetModel,
    MPNetTokenizerFast,
)

SHAPE = {"hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 32}
WORDS = "the virus reaches brain iron deficiency causes anaemia rabies how does get into a of".split()
PIECES = [*WORDS, *string.ascii_lowercase, *(f"##{letter}" for letter in string.ascii_lowercase)]


def bert(folder, positions=512, seed=0, labels=0, weights=None):
    """BERT with a WordPiece tokenizer; with ``labels`` a classifier over pairs of texts."""
    vocabulary = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *PIECES]
    _tokenizer(folder, BertTokenizerFast, vocabulary, positions)
    torch.manual_seed(seed)
    config = BertConfig(vocab_size=len(vocabulary), max_position_embeddings=positions, **SHAPE)
    if labels:
        config.num_labels = labels
    return _save(folder, (BertForSequenceClassification if labels else BertModel)(config), weights)


def mpnet(folder, positions=514, seed=0):
    """MPNet, whose positions begin after the padding id, with its own tokenizer."""
    vocabulary = ["<s>", "<pad>", "</s>", "<unk>", "[UNK]", *PIECES, "<mask>"]
    _tokenizer(folder, MPNetTokenizerFast, vocabulary, positions - 2)
    torch.manual_seed(seed)
    config = MPNetConfig(vocab_size=len(vocabulary), max_position_embeddings=positions, pad_token_id=1, **SHAPE)
    return _save(folder, MPNetModel(config), None)


def _tokenizer(folder, kind, vocabulary, longest):
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "vocab.txt").write_text("\n".join(vocabulary))
    kind(vocab=str(folder / "vocab.txt"), model_max_length=longest).save_pretrained(folder)


def _save(folder, model, weights):
    for parameter in model.parameters():
        parameter.data.normal_(0, 0.5) if parameter.dim() > 1 else None  # far enough apart to tell texts apart
    if weights is not None:
        weights(model)
    model.save_pretrained(folder)
    return str(folder)
