import json
from itertools import pairwise

from hybrid_ir.index.estimate import SAMPLE, estimate, survey
from hybrid_ir.records import Extraction, SourceFile, Triple
from hybrid_ir.settings import BuildSettings, LLMExtractorSettings

ENDPOINT = {"backend": "openai", "model": "m", "base_url": "http://127.0.0.1:1/v1"}


class OneTriple:
    """Three mentions and one triple a chunk."""

    def extract(self, chunks):
        return [
            Extraction(
                chunk_id=c.id,
                mentions=(c.id, "liver", "enzyme"),
                triples=(Triple(chunk_id=c.id, head="a", relation="r", tail="b"),),
            )
            for c in chunks
        ]


def corpus(tmp_path, documents):
    path = tmp_path / "c.jsonl"
    path.write_text(
        "".join(json.dumps({"id": f"d{i}", "text": f"Text {i}."}) + "\n" for i in range(documents)) + "{bad\n"
    )
    return [SourceFile(path=str(path), size=path.stat().st_size)]


def test_counts_are_counted_and_the_rest_is_scaled_from_an_even_sample(tmp_path, word_encoder):
    part = survey(corpus(tmp_path, 1000), BuildSettings())
    assert (part.documents, part.chunks, part.errors) == (1000, 1000, 1)
    assert SAMPLE <= len(part.sample) <= 2 * SAMPLE
    places = [int(chunk.document_id[1:]) for chunk in part.sample]
    assert len({b - a for a, b in pairwise(places)}) == 1
    found = estimate([part, part], BuildSettings(), OneTriple(), word_encoder())
    assert (found.documents, found.chunks, found.triples) == (2000, 2000, 2000)
    assert found.llm_calls == found.llm_tokens == 0
    assert found.bytes > 3 * 4 * 64 * 2000


def test_a_language_model_is_counted_in_calls_and_tokens(tmp_path, word_encoder):
    settings = BuildSettings(extractor=LLMExtractorSettings(kind="llm", llm=ENDPOINT))
    found = estimate([survey(corpus(tmp_path, 10), settings)], settings, OneTriple(), word_encoder())
    assert found.llm_calls == 20
    assert found.llm_tokens > 20 * 600
    once = settings.model_copy(update={"extractor": LLMExtractorSettings(kind="llm", llm=ENDPOINT, calls="one")})
    found = estimate([survey(corpus(tmp_path, 10), once)], once, OneTriple(), word_encoder())
    assert found.llm_calls == 10


def test_an_empty_corpus_is_an_estimate_of_nothing(tmp_path, word_encoder):
    found = estimate([survey(corpus(tmp_path, 0), BuildSettings())], BuildSettings(), OneTriple(), word_encoder())
    assert (found.chunks, found.errors, found.bytes) == (0, 1, 0)
    assert len(found.reasons) == 1
    assert "c.jsonl" in found.reasons[0]
    assert "Line 1 " in found.reasons[0]


def test_the_first_reasons_are_told_and_all_errors_counted(tmp_path, word_encoder):
    path = tmp_path / "c.jsonl"
    path.write_text('{"id": "d", "text": "Text."}\n' + "{bad\n" * 15)
    part = survey([SourceFile(path=str(path), size=path.stat().st_size)], BuildSettings())
    found = estimate([part, part], BuildSettings(), OneTriple(), word_encoder())
    assert (found.errors, len(found.reasons)) == (30, 10)
    assert "Line 2 " in found.reasons[0]
