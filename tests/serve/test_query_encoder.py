"""Texts that are encoded together, and an encoder behind a handle."""

from __future__ import annotations

import asyncio

import numpy as np
import pytest
from ray import serve

from hybrid_ir.errors import BadInput
from serve.query_encoder import Call, HandleEncoder, encoded

BUILD = "0123456789ab"


def queries(encoder, *texts: str) -> Call:
    return encoder, "queries", [("", text) for text in texts]


def test_calls_of_one_model_are_encoded_in_one_and_equal_texts_once(word_encoder):
    encoder = word_encoder()
    seen: list[list[str]] = []
    whole = encoder.encode_queries
    encoder.encode_queries = lambda texts: (seen.append(list(texts)), whole(texts))[1]
    found = encoded([queries(encoder, "bats"), queries(encoder, "rabies", "bats"), queries(encoder, "warfarin")])
    assert seen == [["bats", "rabies", "warfarin"]]
    for vectors, texts in zip(found, [["bats"], ["rabies", "bats"], ["warfarin"]], strict=True):
        assert np.array_equal(vectors, whole(texts))


def test_models_and_sides_are_not_mixed_and_order_is_kept(word_encoder):
    one, other = word_encoder(), word_encoder()
    calls = [queries(one, "a b"), (other, "passages", [("", "a b")]), (one, "passages", [("t", "a b")])]
    found = encoded([*calls, queries(one, "c")])
    assert (one.calls, other.calls) == (2, 1)  # queries of one together; a word encoder's queries are passages
    assert np.array_equal(found[2], one.encode_passages(["t"], ["a b"]))
    assert np.array_equal(found[3], one.encode_queries(["c"]))


def test_a_call_that_fails_costs_no_other(word_encoder):
    class Picky(word_encoder):
        def encode_queries(self, texts):
            if "bad" in texts:
                raise BadInput("bad text")
            return super().encode_queries(texts)

    encoder = Picky()
    found = encoded([queries(encoder, "bats"), queries(encoder, "bad"), queries(encoder, "rabies")])
    assert isinstance(found[1], BadInput)
    assert np.array_equal(found[0], encoder.encode_queries(["bats"]))
    assert np.array_equal(found[2], encoder.encode_queries(["rabies"]))


class Encoding:
    """As the deployment, without a model."""

    def __init__(self, encoder) -> None:
        self.encoder, self.asked = encoder, []

    async def encode(self, build_id, part, side, texts):
        self.asked.append((build_id, part, side))
        (found,) = encoded([(self.encoder, side, texts)])
        if isinstance(found, Exception):
            raise found
        return found


def test_an_encoder_behind_a_handle(word_encoder):
    handle = serve.run(serve.deployment(Encoding).bind(word_encoder()), _local_testing_mode=True)
    remote = HandleEncoder(handle, BUILD, "entity_encoder", {"model": "words"})
    here = word_encoder()
    assert np.array_equal(remote.encode_queries(["bats", "rabies"]), here.encode_queries(["bats", "rabies"]))
    assert np.array_equal(remote.encode_passages(["", "t"], ["x", "y"]), here.encode_passages(["", "t"], ["x", "y"]))
    assert np.array_equal(asyncio.run(remote.queries(["bats"])), here.encode_queries(["bats"]))
    assert remote.dimension == here.dimension
    with pytest.raises(ValueError, match="nothing to encode"):
        remote.encode_queries([])
