from collections.abc import Callable
from pathlib import Path

import pytest

from hybrid_ir.corpus.formats import read
from hybrid_ir.records import Deletion, Document, ErrorRecord, SourceFile
from hybrid_ir.settings import ReaderSettings

Reading = Callable[..., list[Document | Deletion | ErrorRecord]]


@pytest.fixture
def read_file(tmp_path: Path) -> Reading:
    """Write a corpus file and read it: (name, content, settings) -> its records."""

    def reading(
        name: str, content: str | bytes, settings: ReaderSettings | None = None
    ) -> list[Document | Deletion | ErrorRecord]:
        path = tmp_path / "corpus" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        data = content.encode() if isinstance(content, str) else content
        path.write_bytes(data)
        return list(read(SourceFile(path=path.as_posix(), size=len(data)), settings or ReaderSettings()))

    return reading
