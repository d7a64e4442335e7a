"""What indexing a corpus will come to, from reading and chunking it and trying the models on a sample."""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence

from hybrid_ir.corpus.chunker import chunk
from hybrid_ir.corpus.formats import read
from hybrid_ir.extraction.llm_prompts import Prompts
from hybrid_ir.records import Chunk, Document, ErrorRecord, Record, SourceFile
from hybrid_ir.roles import Encoder, Extractor
from hybrid_ir.settings import BuildSettings, LLMExtractorSettings
from hybrid_ir.settings.llm import VLLMSettings

SAMPLE = 48
"""Chunks that the models are tried on: a few seconds on one core."""
SHOWN = 10
"""Errors whose reasons are told; an index lists all."""
CHARS_PER_TOKEN = 4.0


class Part(Record):
    """What a few files hold."""

    documents: int
    chunks: int
    characters: int
    errors: int
    reasons: tuple[str, ...]
    """Of the first errors, each a sentence."""
    sample: tuple[Chunk, ...]
    """Evenly spread."""


class Estimate(Record):
    """Seconds are of one worker on this machine, start-up apart; a document in several files counts each time."""

    documents: int
    chunks: int
    errors: int
    reasons: tuple[str, ...] = ()
    """What could not be used and why: the first ``SHOWN`` errors."""
    triples: int
    entities: int
    """An upper bound: names met again later count once more."""
    extract_seconds: float
    encode_seconds: float
    llm_calls: int
    llm_tokens: int
    """Of prompts, by four characters each; a server that caches prefixes computes most of them once."""
    bytes: int
    sampled_chunks: int


def survey(files: Sequence[SourceFile], settings: BuildSettings) -> Part:
    """Read and chunk; nothing is written."""
    documents = chunks = characters = errors = 0
    reasons: list[str] = []
    kept: list[Chunk] = []
    step = 1
    for file in files:
        for record in read(file, settings.reader):
            if isinstance(record, ErrorRecord):
                errors += 1
                if len(reasons) < SHOWN:
                    named = record.subject in record.reason
                    reasons.append(record.reason if named else f"{record.subject}: {record.reason}")
            elif isinstance(record, Document):
                documents += 1
                for piece in chunk(record, settings.chunker):
                    if chunks % step == 0:
                        kept.append(piece)
                        if len(kept) >= 2 * SAMPLE:  # thin out, so that the sample stays even and small
                            kept, step = kept[::2], step * 2
                    chunks += 1
                    characters += len(piece.text)
    return Part(
        documents=documents,
        chunks=chunks,
        characters=characters,
        errors=errors,
        reasons=tuple(reasons),
        sample=tuple(kept),
    )


def estimate(parts: Iterable[Part], settings: BuildSettings, extractor: Extractor, encoder: Encoder) -> Estimate:
    """Scale what the models do with a sample to the whole.

    A language model's calls for the sample are real ones.  vLLM, which only the job itself starts, is
    left out: the rules stand for what it would find, and its seconds are not in the estimate.
    """
    chosen, in_job = settings.extractor, False
    if isinstance(chosen, LLMExtractorSettings) and isinstance(chosen.llm, VLLMSettings):
        from hybrid_ir.extraction.rules import RuleExtractor

        extractor, in_job = RuleExtractor(chosen.rules), True
    parts = list(parts)
    chunks = sum(part.chunks for part in parts)
    pool = [piece for part in parts for piece in part.sample]
    sample = pool[:: max(1, len(pool) // SAMPLE)][:SAMPLE]
    errors = sum(part.errors for part in parts)
    reasons = tuple(reason for part in parts for reason in part.reasons)[:SHOWN]
    if not sample:
        return Estimate.model_validate(dict.fromkeys(Estimate.model_fields, 0) | {"errors": errors, "reasons": reasons})
    extractor.extract(sample[:1])  # what is loaded at the first call is start-up
    encoder.encode_passages([""], [sample[0].text])
    start = time.monotonic()
    found = [result for result in extractor.extract(sample) if not isinstance(result, str)]
    extract_seconds = 0.0 if in_job else (time.monotonic() - start) / len(sample)
    start = time.monotonic()
    encoder.encode_passages([piece.title for piece in sample], [piece.text for piece in sample])
    encode_seconds = (time.monotonic() - start) / len(sample)
    triples = sum(len(result.triples) for result in found) / len(sample) * chunks
    names = {name for result in found for name in result.mentions}
    entities = len(names) / len(sample) * chunks
    calls = tokens = 0.0
    if isinstance(chosen, LLMExtractorSettings):
        calls, tokens = _asking(chosen, sample, chunks)
    characters = sum(part.characters for part in parts)
    vector = 4 * encoder.dimension
    return Estimate(
        documents=sum(part.documents for part in parts),
        chunks=chunks,
        errors=errors,
        reasons=reasons,
        triples=round(triples),
        entities=round(entities),
        extract_seconds=round(extract_seconds * chunks, 1),
        encode_seconds=round(encode_seconds * chunks, 1),
        llm_calls=round(calls),
        llm_tokens=round(tokens),
        # A vector lies in the segment, in FAISS and in the cache; text compresses to about half, and
        # triples, mentions and the graph take about 60 bytes each.
        bytes=round(3 * vector * chunks + 2 * vector * entities + characters / 2 + 60 * (3 * triples + 2 * entities)),
        sampled_chunks=len(sample),
    )


def _asking(settings: LLMExtractorSettings, sample: Sequence[Chunk], chunks: int) -> tuple[float, float]:
    """(calls, prompt tokens) for all chunks, retries apart."""
    prompts = Prompts(settings.calls, settings.prompts)
    asked = [[prompts.ask(piece)] for piece in sample]
    if settings.calls == "two":
        asked = [[*first, prompts.ask_triples(piece, ())] for first, piece in zip(asked, sample, strict=True)]
    characters = sum(len(message.content) for some in asked for prompt in some for message in prompt.messages)
    return len(asked[0]) * chunks, characters / CHARS_PER_TOKEN / len(sample) * chunks
