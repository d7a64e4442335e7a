"""Reranking with tiny random cross-encoders of BERT's architecture, and what a retriever makes of one that fails."""

import asyncio

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from tiny_models import WORDS, bert
from transformers import AutoModelForSequenceClassification, AutoTokenizer

from hybrid_ir.encoders.cross_encoder import CrossEncoder, passage
from hybrid_ir.errors import BadInput
from hybrid_ir.records import Chunk, Evidence
from hybrid_ir.retrieval import rerank
from hybrid_ir.retrieval.retriever import FusedRetriever
from hybrid_ir.roles import PathRanking, Query
from hybrid_ir.settings import FusionSettings, RerankSettings, Settings

QUERY = "how does rabies reach the brain"
PASSAGES = ["the virus reaches the brain", "", "iron deficiency causes anaemia " * 300, "rabies"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("rerankers")


@pytest.fixture(scope="module")
def one(folder):
    return bert(folder / "one", labels=1)


def reader(model, **given):
    return CrossEncoder(RerankSettings(model=model, **given))


def logits(model, query, text):
    """As MedCPT's own code calls its cross-encoder, one pair at a time."""
    tokens = AutoTokenizer.from_pretrained(model)([[query, text]], truncation=True, max_length=512, return_tensors="pt")
    with torch.inference_mode():
        return AutoModelForSequenceClassification.from_pretrained(model).eval()(**tokens).logits[0].numpy()


def test_a_score_is_the_logit_of_query_and_passage(one):
    found = reader(one, batch_size=3).scores(QUERY, PASSAGES)
    expected = [float(logits(one, QUERY, text)[0]) for text in PASSAGES]
    assert np.allclose(found, expected, atol=1e-4)
    assert len({round(score, 3) for score in found}) == len(PASSAGES)


def test_of_two_logits_it_is_how_far_relevant_is_above_the_other(folder):
    model = bert(folder / "two", labels=2)
    expected = [float(np.diff(logits(model, QUERY, text))[0]) for text in PASSAGES]
    assert np.allclose(reader(model).scores(QUERY, PASSAGES), expected, atol=1e-4)


def test_what_is_no_cross_encoder_is_refused(folder):
    with pytest.raises(BadInput, match="3 values"):
        reader(bert(folder / "three", labels=3))
    with pytest.raises(BadInput, match="trained for something else"):
        reader(bert(folder / "encoder"))
    with pytest.raises(BadInput, match="local folder"):
        reader(str(folder / "nothing"))


def test_odd_texts(one):
    assert np.isfinite(reader(one).scores("\ud800", ["\udfff", "", "rabies " * 10_000])).all()
    assert np.isfinite(reader(one, max_tokens=16).scores("rabies " * 10_000, ["iron"])).all()
    assert reader(one).scores(QUERY, []) == ()


@settings(max_examples=10, deadline=None)
@given(texts=st.lists(st.lists(st.sampled_from(WORDS), max_size=9).map(" ".join), min_size=1, max_size=5))
def test_the_order_and_company_of_passages_do_not_matter(one, texts):
    encoder = reader(one, batch_size=2)
    together = encoder.scores(QUERY, texts)
    assert np.allclose(together[::-1], encoder.scores(QUERY, texts[::-1]), atol=1e-4)
    assert np.allclose(together, [encoder.scores(QUERY, [text])[0] for text in texts], atol=1e-4)


@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
def test_half_precision_on_a_cpu(one, dtype):
    half, full = (reader(one, dtype=d, device="cpu").scores(QUERY, PASSAGES) for d in (dtype, "float32"))
    assert np.allclose(half, full, atol=0.3)


def chunk(number, text="", title=""):
    text = text or f"text {number}"
    return Chunk(
        id=f"d#{number}",
        document_id="d",
        position=number,
        title=title,
        text=text,
        start=0,
        end=len(text),
        source="s",
    )


def test_a_passage_is_title_and_text():
    assert passage(chunk(0, "Bats fly.", "Bats")) == "Bats. Bats fly."
    assert passage(chunk(0, "Bats fly.")) == "Bats fly."


def evidence(count):
    return [Evidence(chunk=chunk(i), score=1 / (i + 1), paths={}) for i in range(count)]


@given(st.lists(st.integers(-3, 3), max_size=8))
def test_reordering_is_a_stable_sort_that_keeps_the_fused_score(scores):
    found = rerank.reordered(evidence(len(scores)), [float(score) for score in scores])
    expected = sorted(range(len(scores)), key=lambda i: (-scores[i], i))
    assert [item.chunk.position for item in found] == expected
    assert [item.score for item in found] == [1 / (i + 1) for i in expected]
    assert [item.rerank for item in found] == [scores[i] for i in expected]


@pytest.mark.parametrize("scores", [(1.0,), (1.0, float("nan")), (1.0, float("inf"))])
def test_scores_that_are_no_order_are_refused(scores):
    with pytest.raises(RuntimeError, match="2 chunks"):
        rerank.reordered(evidence(2), scores)


class Chunks:
    def by_number(self, number):
        return chunk(number)

    def __len__(self):
        return 1000


class Listed:
    def __init__(self, *chunks, wait=0.0):
        self.chunks, self.wait = chunks, wait

    async def rank(self, query, k):
        await asyncio.sleep(self.wait)
        return PathRanking(chunks=self.chunks[:k], scores=tuple(1.0 for _ in self.chunks[:k]))


class Backwards:
    """The later in the list the better."""

    def __init__(self, error=None, wait=0.0, scores=None):
        self.error, self.wait, self.scores, self.read = error, wait, scores, []

    async def rerank(self, query, chunks):
        self.read = [chunk.position for chunk in chunks]
        await asyncio.sleep(self.wait)
        if self.error:
            raise self.error
        return self.scores if self.scores is not None else tuple(float(i) for i in range(len(chunks)))


def retrieve(reranker, k, top_n, path=None, **given):
    paths = {"dense": path or Listed(*range(10))}
    retriever = FusedRetriever(paths, Chunks(), FusionSettings(paths=("dense",)), reranker, top_n)
    return asyncio.run(retriever.retrieve(Query(text="how?"), k, **given))


def test_the_top_n_are_put_in_a_new_order_and_the_others_follow():
    reranker = Backwards()
    found = retrieve(reranker, k=6, top_n=4)
    assert reranker.read == [0, 1, 2, 3]
    assert [item.chunk.position for item in found.evidence] == [3, 2, 1, 0, 4, 5]
    assert [item.rerank for item in found.evidence] == [3, 2, 1, 0, None, None]
    assert found.degraded == ()
    assert set(found.seconds) == {"dense", "rerank"}


def test_more_than_k_are_read_so_that_a_late_one_may_come_first():
    found = retrieve(Backwards(), k=2, top_n=8)
    assert [item.chunk.position for item in found.evidence] == [7, 6]


@pytest.mark.parametrize(
    "reranker", [Backwards(error=RuntimeError("gone")), Backwards(wait=5), Backwards(scores=(1.0,))]
)
def test_a_reranker_that_fails_or_is_late_leaves_the_fused_order(reranker):
    found = retrieve(reranker, k=3, top_n=4, timeout_s=0.3)
    assert [item.chunk.position for item in found.evidence] == [0, 1, 2]
    assert all(item.rerank is None for item in found.evidence)
    assert found.degraded == ("rerank",)


def test_a_late_path_leaves_time_for_the_reranker():
    paths = {"dense": Listed(0, 1), "graph": Listed(2, wait=5)}
    retriever = FusedRetriever(paths, Chunks(), FusionSettings(), Backwards(), 2)
    found = asyncio.run(retriever.retrieve(Query(text="how?"), 2, timeout_s=0.5))
    assert [item.chunk.position for item in found.evidence] == [1, 0]
    assert found.degraded == ("graph",)


def test_nothing_found_is_nothing_to_read():
    reranker = Backwards()
    assert retrieve(reranker, k=3, top_n=4, path=Listed()).evidence == ()
    assert reranker.read == []


def test_cancelling_cancels_the_reranker():
    async def run():
        retriever = FusedRetriever({"dense": Listed(0)}, Chunks(), FusionSettings(), Backwards(wait=30), 2)
        task = asyncio.create_task(retriever.retrieve(Query(text="how?"), 1))
        await asyncio.sleep(0.05)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(run())


def test_the_whole_way_from_settings(one):
    assert Settings().rerank is None
    made = Settings.model_validate({"rerank": {"model": one, "top_n": 3, "batch_size": 2}}).rerank
    reranker = rerank.load(made)
    found = retrieve(reranker, k=3, top_n=made.top_n)
    texts = [f"text {i}" for i in range(3)]
    scores = CrossEncoder(made).scores("how?", texts)
    assert [item.chunk.text for item in found.evidence] == [
        texts[i] for i in sorted(range(3), key=lambda i: -scores[i])
    ]
