"""The reranker deployment's object and its handle's role in the service, with a tiny cross-encoder."""

import asyncio

import pytest
from small_service import Quoting, SharedWords, chunks, small_manifest, small_store
from tiny_models import bert

from hybrid_ir.encoders.cross_encoder import CrossEncoder, passage
from hybrid_ir.errors import BadInput
from hybrid_ir.index.chunk_store import ChunkStore
from hybrid_ir.settings import FusionSettings, RerankSettings, Settings
from serve.reranker import Reranker
from serve.schemas import RetrieveRequest
from serve.service import Service


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    return bert(tmp_path_factory.mktemp("reranker"), labels=1)


def test_a_replica_answers_for_any_build(model):
    settings = Settings(rerank=RerankSettings(model=model))
    replica = Reranker("unused", "build", settings)
    asyncio.run(replica.ready("build"))
    found = asyncio.run(replica.rerank("build", "rabies", chunks()))
    assert found == CrossEncoder(settings.rerank).scores("rabies", [passage(chunk) for chunk in chunks()])
    assert asyncio.run(replica.rerank("another", "rabies", chunks())) == found
    with pytest.raises(BadInput, match="no model"):
        Reranker("unused", "build", Settings())


def test_the_service_gives_the_rerankers_order_and_says_when_it_is_down(tmp_path, model):
    settings = Settings(rerank=RerankSettings(model=model, top_n=3), fusion=FusionSettings(paths=("dense",)))
    manifest = small_manifest()

    def retrieve(reranker):
        held = ChunkStore(small_store(tmp_path), manifest)
        service = Service(manifest, settings, held, {"dense": SharedWords(chunks())}, Quoting(), {}, reranker)
        asked = RetrieveRequest(query="bats carry the heart", k=2)
        return asyncio.run(service.retrieve(asked))

    encoder = CrossEncoder(settings.rerank)
    found = retrieve(encoder)
    scores = [item.rerank for item in found.evidence]
    assert scores == sorted(
        encoder.scores("bats carry the heart", [passage(i.chunk) for i in found.evidence]), reverse=True
    )
    assert found.degraded == ()

    class Down:
        async def rerank(self, query, chunks):
            raise RuntimeError("its replica died")

    found = retrieve(Down())
    assert [item.rerank for item in found.evidence] == [None, None]
    assert found.degraded == ("rerank",)
