"""Two processes run the tests, and each collects them anew: both must find the same ones, in one order."""

import os
import subprocess
import sys
from pathlib import Path

import pytest


@pytest.mark.slow
def test_no_name_of_a_test_hangs_on_the_time_or_the_hash_seed() -> None:
    """A parameter made at collection, such as a compressed file, can hold the time of day."""
    command = [sys.executable, "-m", "pytest", "--collect-only", "-q", "--no-header"]
    found = []
    for seed in ("1", "2"):
        env = {**os.environ, "PYTHONHASHSEED": seed}
        env = {name: value for name, value in env.items() if not name.startswith("PYTEST_")}
        done = subprocess.run(command, cwd=Path(__file__).parents[1], env=env, capture_output=True, text=True)
        assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
        found.append([line for line in done.stdout.splitlines() if "::" in line])
    assert len(found[0]) > 1000
    assert found[0] == found[1]
