"""How indexing grows with the corpus, and what an update costs against a rebuild.

    python benchmarks/index_scale.py --pubmed 'data/*.xml.gz' --out FOLDER [--sizes 1000 2000 4000 8000] [--update 100]

Every size is a job of its own on an empty root (cold cache).  Then as many new documents as
--update says go into the largest index; the rebuild it is compared with is that of the largest size.
A size whose result already lies in FOLDER is not run again.  Memory is the sum of the proportional
set sizes of the job's processes, sampled every two seconds.  The number of shards is the same for
all sizes: otherwise the small ones would keep fewer workers busy.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import machine
import numpy as np
import pubmed_corpus

SECONDS_BETWEEN_SAMPLES = 2.0
GRAPH_ARRAYS = ("number entities", "write graph")


def run(arguments: Sequence[str]) -> tuple[dict[str, Any], float, float]:
    """A command's JSON, its seconds, and the most GiB that it and its children held."""
    start = time.monotonic()
    process = subprocess.Popen(  # noqa: S603
        [sys.executable, "-m", *arguments],
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
    )
    most = 0
    while process.poll() is None:
        most = max(most, sum(map(_held, _family(process.pid))))
        time.sleep(SECONDS_BETWEEN_SAMPLES)
    seconds = time.monotonic() - start
    if process.returncode or process.stdout is None:
        raise SystemExit(f"{' '.join(arguments)} ended with {process.returncode}")
    return json.loads(process.stdout.read().splitlines()[-1]), seconds, most / 2**30


def _family(root: int) -> list[int]:
    """A process and all its descendants."""
    children: dict[int, list[int]] = {}
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            after_name = stat.read_text().rpartition(")")[2].split()
        except OSError:
            continue
        children.setdefault(int(after_name[1]), []).append(int(stat.parent.name))
    found, todo = [], [root]
    while todo:
        found.append(pid := todo.pop())
        todo += children.get(pid, [])
    return found


def _held(pid: int) -> int:
    """Bytes, memory shared by several processes divided among them."""
    try:
        for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines():
            if line.startswith("Pss:"):
                return int(line.split()[1]) * 1024
    except OSError:
        pass
    return 0


def size_of(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())


def measure(name: str, arguments: Sequence[str], root: Path, out: Path) -> dict[str, Any]:
    """Run a job once, keep what it came to as ``FOLDER/<name>.json``."""
    kept = out / f"{name}.json"
    if kept.exists():
        return json.loads(kept.read_text())
    done, seconds, memory = run(arguments)
    report = json.loads((root / "builds" / done["build_id"] / "report.json").read_text())
    result = {
        "name": name,
        "seconds": seconds,
        "memory_gib": memory,
        "stages": report["stages"],
        "counts": report["counts"],
        "index_bytes": size_of(root / "segments") + size_of(root / "builds"),
        "cache_bytes": size_of(root / "cache"),
    }
    kept.write_text(json.dumps(result))
    return result


def slope(sizes: Sequence[int], values: Sequence[float]) -> float:
    """Of the line through the logarithms: 1 is linear growth."""
    return float(np.polyfit(np.log(sizes), np.log(np.maximum(values, 1e-3)), 1)[0])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pubmed", nargs="+", required=True)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--sizes", type=int, nargs="+", default=[1000, 2000, 4000, 8000])
    parser.add_argument("--shards", type=int, default=32)
    parser.add_argument("--update", type=int, default=100, help="new documents for the largest index")
    given = parser.parse_args()
    given.out.mkdir(parents=True, exist_ok=True)
    print(machine.describe())
    sizes = sorted(given.sizes)
    documents = pubmed_corpus.load(given.pubmed)[: sizes[-1] + given.update]
    if len(documents) < sizes[-1] + given.update:
        raise SystemExit(f"The files hold {len(documents)} abstracts; ask for fewer.")
    config = given.out / "settings.yaml"
    config.write_text(f"build: {{shards: {given.shards}}}\n")
    results = []
    for size in sizes:
        corpus = pubmed_corpus.write(documents[:size], given.out / f"corpus-{size}")
        root = given.out / f"root-{size}"
        job = ["ray_jobs.index", "--corpus", str(corpus), "--root", str(root), "--config", str(config)]
        results.append(measure(f"index-{size}", job, root, given.out))
        print(f"{size}: {results[-1]['seconds']:.0f} s", flush=True)
    new = pubmed_corpus.write(documents[sizes[-1] :], given.out / f"new-{given.update}")
    root = given.out / f"root-{sizes[-1]}"
    job = ["ray_jobs.index", "--update", "--add", str(new), "--root", str(root)]
    update = measure(f"update-{given.update}-into-{sizes[-1]}", job, root, given.out)
    show(sizes, results, update)


def show(sizes: Sequence[int], results: Sequence[dict[str, Any]], update: dict[str, Any]) -> None:
    """The tables."""
    print(f"\n{'documents':<34}" + "".join(f"{size:>10}" for size in sizes) + f"{'slope':>8}")

    def line(name: str, values: Sequence[float], digits: int = 1, slopes: bool = True) -> None:
        end = f"{slope(sizes, values):>8.2f}" if slopes and len(sizes) > 1 else ""
        print(f"{name:<34}" + "".join(f"{value:>10.{digits}f}" for value in values) + end)

    for stage in results[-1]["stages"]:
        line(f"  {stage}, s", [r["stages"].get(stage, 0.0) for r in results])
    line("whole job, s", [r["seconds"] for r in results])
    line("peak memory, GiB", [r["memory_gib"] for r in results], 2)
    for what in ("index", "cache"):
        line(
            f"{what}, MB for 1,000 documents",
            [r[f"{what}_bytes"] / s / 1e3 for r, s in zip(results, sizes, strict=True)],
        )
    for what in ("chunks", "triples", "entities", "synonym_edges"):
        line(what.replace("_", " "), [r["counts"][what] for r in results], 0)
    arrays = sum(update["stages"].get(stage, 0.0) for stage in GRAPH_ARRAYS)
    largest = results[-1]
    print(
        f"\n{update['name']}: {update['seconds']:.1f} s, {update['seconds'] / largest['seconds']:.1%} of the rebuild's "
    )
    print(f"{largest['seconds']:.0f} s (goal 5 %); {arrays:.1f} s of it the graph's arrays; its stages:")
    for stage, seconds in update["stages"].items():
        print(f"  {stage:<32} {seconds:8.1f} s")


if __name__ == "__main__":
    main()
