"""The records that flow through Hybrid-IR, from a corpus file to an answer.

Offline: ``SourceFile -> Document -> Chunk -> Extraction``, with an ``ErrorRecord`` in the
place of whatever could not be used.  Online: ``Question -> Round -> Answer``, where every
statement points back at ``Evidence`` and every piece of evidence at its chunk.
"""

from hybrid_ir.records.answer import (
    Answer,
    Basis,
    Conclusion,
    Decomposition,
    Findings,
    LoopState,
    ModelCall,
    Round,
    Statement,
    SubAnswer,
)
from hybrid_ir.records.corpus import (
    Chunk,
    Deletion,
    Document,
    ErrorRecord,
    Extraction,
    Mention,
    Section,
    SectionKind,
    SourceFile,
    Triple,
)
from hybrid_ir.records.query import (
    EntityLink,
    Evidence,
    Filter,
    Match,
    PathHit,
    PathName,
    Question,
    Retrieval,
    SubQuestion,
)
from hybrid_ir.records.record import Record

__all__ = [
    "Answer",
    "Basis",
    "Chunk",
    "Conclusion",
    "Decomposition",
    "Deletion",
    "Document",
    "EntityLink",
    "ErrorRecord",
    "Evidence",
    "Extraction",
    "Filter",
    "Findings",
    "LoopState",
    "Match",
    "Mention",
    "ModelCall",
    "PathHit",
    "PathName",
    "Question",
    "Record",
    "Retrieval",
    "Round",
    "Section",
    "SectionKind",
    "SourceFile",
    "Statement",
    "SubAnswer",
    "SubQuestion",
    "Triple",
]
