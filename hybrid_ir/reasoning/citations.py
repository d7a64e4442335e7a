"""Statements may cite only what retrieval brought."""

from __future__ import annotations

import re
from collections.abc import Container, Mapping, Sequence

import numpy as np

from hybrid_ir.reasoning.sentences import MAX_SENTENCE_CHARS
from hybrid_ir.records import Chunk, Evidence, Statement
from hybrid_ir.roles import Encoder
from hybrid_ir.text import sentence_spans

MAX_SENTENCES = 60
"""Of one chunk: a longer one is a table."""
WEAK_SUPPORT = 0.45
"""A statement whose support is below this is shown as weakly supported.  With MiniLM, of 120 conclusions of PubMedQA
118 lay above it against their own abstract, and all below it against another's.  A cosine does not see a denial.
"""


def checked(statements: Sequence[Statement], evidence: Container[str]) -> tuple[tuple[Statement, ...], int]:
    """Keep the citations of chunks in ``evidence``, each once a statement, and count the others.

    A statement that is left with no citation, or that says nothing, goes.
    Returns the statements and the number of citations dropped.
    """
    kept: list[Statement] = []
    dropped = 0
    for statement in statements:
        cited = tuple(dict.fromkeys(statement.citations))
        valid = tuple(chunk_id for chunk_id in cited if chunk_id in evidence)
        dropped += len(cited) - len(valid)
        if valid and statement.text.strip():
            kept.append(
                statement if valid == statement.citations else statement.model_copy(update={"citations": valid})
            )
    return tuple(kept), dropped


def cited_chunks(statements: Sequence[Statement], evidence: Mapping[str, Evidence]) -> tuple[Chunk, ...]:
    """The chunks that checked statements cite, in order of first mention."""
    ids = dict.fromkeys(chunk_id for statement in statements for chunk_id in statement.citations)
    return tuple(evidence[chunk_id].chunk for chunk_id in ids)


def with_support(
    statements: Sequence[Statement], chunks: Mapping[str, Chunk], encoder: Encoder
) -> tuple[Statement, ...]:
    """Each statement with its support: the highest cosine between it and a sentence of a chunk that it cites.

    0 where none of its chunks is known.  A sentence is read under its chunk's title, as chunks were indexed.  Costs
    the encoding of the cited chunks' sentences.
    """
    cited = {chunk_id: chunks[chunk_id] for s in statements for chunk_id in s.citations if chunk_id in chunks}
    sentences = [
        (chunk_id, chunk.title, chunk.text[start:end][:MAX_SENTENCE_CHARS])
        for chunk_id, chunk in cited.items()
        for start, end in sentence_spans(chunk.text)[:MAX_SENTENCES]
    ]
    if not sentences:
        return tuple(statement.model_copy(update={"support": 0.0}) for statement in statements)
    said = encoder.encode_queries([statement.text for statement in statements])
    found = encoder.encode_passages([title for _, title, _ in sentences], [text for _, _, text in sentences])
    lengths = np.linalg.norm(said, axis=1)[:, None] * np.linalg.norm(found, axis=1)[None, :]
    cosines = said @ found.T / np.maximum(lengths, 1e-12)
    of_chunk: dict[str, list[int]] = {}
    for column, (chunk_id, _, _) in enumerate(sentences):
        of_chunk.setdefault(chunk_id, []).append(column)
    checked_ = []
    for row, statement in enumerate(statements):
        columns = [column for chunk_id in statement.citations for column in of_chunk.get(chunk_id, ())]
        support = float(cosines[row, columns].max()) if columns else 0.0
        checked_.append(statement.model_copy(update={"support": round(support, 4)}))
    return tuple(checked_)


def by_id(statements: Sequence[Statement], shown: Sequence[str]) -> tuple[Statement, ...]:
    """Labels (``E1``) to chunk ids; ``shown``: the ids that a prompt showed, in its order.

    What is no label stays, for ``checked`` to drop and count.
    """
    ids = {f"E{number}": chunk_id for number, chunk_id in enumerate(shown, start=1)}

    def chunk_id(label: str) -> str:
        number = re.fullmatch(r"(?:passage\s+)?E?(\d{1,4})", label, re.IGNORECASE)
        return ids.get(f"E{number[1]}", label) if number else label

    return tuple(
        statement.model_copy(update={"citations": tuple(dict.fromkeys(map(chunk_id, statement.citations)))})
        for statement in statements
    )
