"""Statements may cite only what retrieval brought."""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence

from hybrid_ir.records import Chunk, Evidence, Statement


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
