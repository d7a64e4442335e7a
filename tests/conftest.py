"""What several test files share: where data lies, tiny real models, an index of the sample corpus."""

import fcntl
import hashlib
import os
import re
from contextlib import ExitStack
from pathlib import Path

import numpy as np
import pytest
from hypothesis import settings as hypothesis_settings

# A machine that is busy with something else must not fail a property.
hypothesis_settings.register_profile("patient", deadline=None)
hypothesis_settings.load_profile("patient")

os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
os.environ.setdefault("HF_HUB_OFFLINE", "1")
# Ray lets its workers stand behind all else (15 by default); beside a second process of tests they would hardly run.
os.environ.setdefault("RAY_worker_niceness", "0")

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


_shared_ray = ExitStack()


def _start_shared_ray():
    import ray

    from hybrid_ir.settings import JobSettings
    from ray_jobs.cluster import connected

    if not ray.is_initialized():
        _shared_ray.enter_context(connected(JobSettings()))


@pytest.fixture(scope="module")
def shared_ray():
    """The Ray of all files of this process that need one and do not harm it: it stays for the next file."""
    _start_shared_ray()


@pytest.fixture(scope="module")
def no_ray():
    """For a file whose tests start a Ray of their own: the shared one is ended."""
    _shared_ray.close()


def pytest_sessionfinish():
    _shared_ray.close()


@pytest.hookimpl(tryfirst=True)  # before -m chooses
def pytest_collection_modifyitems(items):
    """First the files that share a Ray, then those with one of their own, then all others."""
    sharing = {item for item in items if {"shared_ray", "sample_root"} & set(item.fixturenames)}
    for item in sharing:
        item.add_marker(pytest.mark.cluster)
    shared = {item.path for item in sharing}
    cluster = {item.path for item in items if item.get_closest_marker("cluster")}
    for item in items:
        if item.get_closest_marker("cluster") and not item.get_closest_marker("timeout"):
            item.add_marker(pytest.mark.timeout(600))  # two Rays share the cores
    items.sort(key=lambda item: (item.path not in shared, item.path not in cluster))


@pytest.fixture(scope="session")
def sample_root(tmp_path_factory):
    """The root of an index of examples/corpus, made by the real job with the embedded models; not to be changed.

    With several processes (pytest -n) the first makes it for all.
    """
    from hybrid_ir.progress import Reporter
    from hybrid_ir.settings import Settings
    from ray_jobs.index import index

    base = tmp_path_factory.getbasetemp()
    root = (base.parent if "PYTEST_XDIST_WORKER" in os.environ else base) / "sample-root"
    with (root.parent / "sample-root.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        _start_shared_ray()
        index([str(PROJECT / "examples" / "corpus")], str(root), Settings(), Reporter(quiet=True))
    return str(root)
