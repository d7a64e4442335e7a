"""What a job did and what it made, as JSON for programs and a page for people."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape

import numpy as np

from hybrid_ir.graph.store import open_graph
from hybrid_ir.index import inspection, layout
from hybrid_ir.index.manifest import Counts, Manifest
from hybrid_ir.records import Record
from hybrid_ir.store import Store

TOP = 20


class Report(Record):
    """Beside the manifest, and not part of it: two runs of one job differ in their times."""

    build_id: str
    seconds: float
    stages: dict[str, float]
    """Seconds of each."""
    chunks_extracted: int
    chunks_encoded: int
    names_encoded: int
    """What the models were run on; the rest was in the cache or done before."""
    counts: Counts


def write(store: Store, made: Manifest, report: Report) -> None:
    """``report.json`` and ``report.html``."""
    store.write(layout.report(made.build_id), (report.model_dump_json(indent=1) + "\n").encode())
    name = layout.report(made.build_id).replace(".json", ".html")
    store.write(name, page(store, made, report).encode("utf-8", "replace"))


def page(store: Store, made: Manifest, report: Report) -> str:
    """A page without scripts or anything from elsewhere."""
    graph = open_graph(store, layout.build(made.build_id))
    degree = np.diff(graph.edge_indptr) + np.bincount(np.asarray(graph.edge_source), minlength=graph.entities)
    top = np.argsort(-graph.document_counts, kind="stable")[:TOP]
    entities = [(graph.entity_names[int(i)].as_py(), int(graph.document_counts[i])) for i in top]
    kinds = inspection.error_kinds(inspection.errors(store, made))[:TOP]
    unusable = [(f"{kind.count} × {kind.stage}", f"{kind.reason} (such as {kind.example})") for kind in kinds]
    stages = sorted(report.stages.items(), key=lambda item: -item[1])
    ran = [
        ("chunks extracted", report.chunks_extracted),
        ("chunks encoded", report.chunks_encoded),
        ("names encoded", report.names_encoded),
    ]
    sections = [
        ("Counts", _table([(name.replace("_", " "), f"{value:,}") for name, value in made.counts])),
        ("Models were run on", _table([(name, f"{value:,}") for name, value in ran])),
        ("Seconds of each stage", _bars(stages)),
        ("Edges of an entity", _bars(_histogram(degree))),
        ("Entities in most chunks", _bars(entities)),
        ("What could not be used", _table(unusable) or "Nothing."),
    ]
    body = "".join(f"<section><h2>{escape(title)}</h2>{content}</section>" for title, content in sections)
    return (
        f'<!doctype html><html lang="en"><meta charset="utf-8"><title>Build {escape(made.build_id)}</title>'
        "<style>body{font:15px/1.5 sans-serif;margin:2rem auto;max-width:60rem;padding:0 1rem;color:#223}"
        "section{margin:2rem 0}table{border-collapse:collapse}td{padding:.15rem .8rem .15rem 0;vertical-align:top}"
        "td.n{text-align:right;font-variant-numeric:tabular-nums}i{display:block;height:.8rem;background:#3a5a9b}"
        f"</style><h1>Build {escape(made.build_id)}</h1><p>{report.seconds:,.1f} seconds.</p>{body}</html>\n"
    )


def _table(rows: Sequence[tuple[str, str]]) -> str:
    if not rows:
        return ""
    cells = "".join(f'<tr><td>{escape(name)}</td><td class="n">{escape(value)}</td></tr>' for name, value in rows)
    return f"<table>{cells}</table>"


def _bars(rows: Iterable[tuple[str, float]]) -> str:
    rows = list(rows)
    most = max((value for _, value in rows), default=0) or 1
    return "<table>{}</table>".format(
        "".join(
            f'<tr><td>{escape(name)}</td><td class="n">{value:,.10g}</td>'
            f'<td><i style="width:{300 * value / most:.0f}px"></i></td></tr>'
            for name, value in rows
        )
    )


def _histogram(degree: np.ndarray[tuple[int], np.dtype[np.int64]]) -> list[tuple[str, float]]:
    """Entities by their number of edges: 0, 1, 2 to 3, 4 to 7, …"""
    bins = np.where(degree > 0, np.floor(np.log2(np.maximum(degree, 1))).astype(np.int64) + 1, 0)
    counts = np.bincount(bins) if len(bins) else np.zeros(0, np.int64)
    rows = []
    for number, count in enumerate(counts.tolist()):
        low, high = (1 << number) >> 1, (1 << number) - 1
        rows.append((f"{low}" if high <= low else f"{low} to {high}", float(count)))
    return rows
