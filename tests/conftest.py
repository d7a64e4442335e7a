"""What several test files share: where data lies, tiny real models, an index of the sample corpus."""

import hashlib
import os
import re
import tempfile
from pathlib import Path

import numpy as np
import pytest
from hypothesis import settings as hypothesis_settings

# A machine that is busy with something else must not fail a property.
hypothesis_settings.register_profile("patient", deadline=None)
hypothesis_settings.load_profile("patient")

os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
os.environ.setdefault("HF_HUB_OFFLINE", "1")

PROJECT = Path(__file__).parent.parent


@pytest.fixture(scope="session")
def data():
    """The folder of real data; a test that needs it skips where it is not."""
    folder = Path(os.environ.get("HYBRID_IR_DATA", PROJECT.parent / "shared" / "data"))
    if not folder.is_dir():
        pytest.skip(f"no real data at {folder}; name it with HYBRID_IR_DATA")
    return folder


class WordEncoder:
    """A real, if small, encoder: hashed bags of words of unit length."""

    dimension = 64

    def __init__(self, broken=()):
        self.fingerprint = {"model": "words"}
        self.calls = 0
        self._broken = broken

    def encode_queries(self, texts):
        return self.encode_passages([""] * len(texts), texts)

    def encode_passages(self, titles, texts):
        self.calls += 1
        out = np.zeros((len(texts), self.dimension), np.float32)
        for row, (title, text) in enumerate(zip(titles, texts, strict=True)):
            for word in re.findall(r"\w+", f"{title} {text}".lower()):
                out[row, int.from_bytes(hashlib.blake2b(word.encode(), digest_size=4).digest(), "big") % 64] += 1
            if any(word in text for word in self._broken):
                out[row] = np.nan
        return out / np.maximum(np.linalg.norm(out, axis=1, keepdims=True), 1e-9)


@pytest.fixture
def word_encoder():
    return WordEncoder


@pytest.fixture(scope="session")
def sample_root():
    """The root of an index of examples/corpus, made by the real job with the embedded models."""
    from hybrid_ir.progress import Reporter
    from hybrid_ir.settings import Settings
    from ray_jobs.index import index

    with tempfile.TemporaryDirectory() as folder:
        index([str(PROJECT / "examples" / "corpus")], folder, Settings(), Reporter(quiet=True))
        yield folder
