"""What a table of timings must say about the machine it was made on."""

from __future__ import annotations

import os
import platform
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

PACKAGES = ("ray", "torch", "faiss-cpu", "numpy", "pyarrow")


def describe() -> str:
    """Processor, cores, memory and the versions that matter, in one line."""
    processor = platform.processor() or platform.machine()
    for line in Path("/proc/cpuinfo").read_text().splitlines() if Path("/proc/cpuinfo").exists() else []:
        if line.startswith("model name"):
            processor = line.partition(":")[2].strip()
            break
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    load = os.getloadavg()[0]
    return (
        f"{processor}, {len(os.sched_getaffinity(0))} cores, {memory:.0f} GiB, load {load:.1f} at the start; "
        f"Python {platform.python_version()}, {', '.join(filter(None, map(_version, PACKAGES)))}"
    )


def _version(package: str) -> str:
    try:
        return f"{package} {version(package)}"
    except PackageNotFoundError:
        return ""
