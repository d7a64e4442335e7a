"""Plots of a run as PNG bytes; they need matplotlib (extra ``bench``)."""

from __future__ import annotations

import io
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from hybrid_ir.evaluation.statistics import CellSummary, Summary

if TYPE_CHECKING:
    from matplotlib.axes import Axes

COLOURS = ("#2f6f9f", "#c8553d", "#4f8f4f", "#8a5fa8", "#b8862b", "#3d9a9a", "#7a7a7a", "#a8456f")
MARKERS = "os^vD*Px"
JUDGED = "recall@5"
"""The measure of retrieval that is drawn."""


def plots(summary: Summary) -> list[tuple[str, bytes]]:
    """(caption, PNG) of what the run can show.  Raises ModuleNotFoundError without matplotlib."""
    made: list[tuple[str, bytes]] = []
    series = _over_rounds(summary) if summary.answers else {}
    if series:
        made.append(
            ("Accuracy over the rounds of the loop, with 95 % bands", _drawn(lambda axes: _rounds(axes, series)))
        )
    for dataset, measured in _measured(summary).items():
        caption = f"{JUDGED} on {dataset}, with 95 % bootstrap intervals"
        made.append((caption, _drawn(_bars_of(measured), "", 1.2 + 0.36 * len(measured))))
    if not summary.answers:
        return made
    for title, axis, value in (
        ("Accuracy against seconds a question", "seconds a question", "seconds"),
        ("Accuracy against tokens a question", "tokens a question", "tokens"),
    ):
        cells = [one for one in summary.cells if getattr(one, value) > 0 and one.strict.asked]
        if cells:
            made.append((title, _drawn(_scatter_of(cells, axis, value))))
    return made


def _scatter_of(cells: list[CellSummary], axis: str, value: str) -> Callable[[Axes], None]:
    return lambda axes: _scatter(axes, cells, axis, value)


def _over_rounds(summary: Summary) -> dict[str, list[CellSummary]]:
    """The cells that differ in rounds alone, where there are two or more."""
    varied = [one for one in summary.cells if one.cell.rounds is not None]
    named = _names([one.model_copy(update={"cell": one.cell.model_copy(update={"rounds": None})}) for one in varied])
    lines: dict[str, list[CellSummary]] = {}
    for one, name in zip(varied, named, strict=True):
        lines.setdefault(name, []).append(one)
    return {name: sorted(found, key=lambda o: o.cell.rounds or 0) for name, found in lines.items() if len(found) > 1}


def _names(cells: list[CellSummary]) -> list[str]:
    """What tells them apart: the model and the dataset only where there are several."""
    models, datasets = ({getattr(one.cell, field) for one in cells} for field in ("model", "dataset"))
    return [
        ", ".join(
            (
                one.cell.label,
                *([one.cell.model] if len(models) > 1 else []),
                *([one.cell.dataset] if len(datasets) > 1 else []),
            )
        )
        for one in cells
    ]


def _rounds(axes: Axes, series: dict[str, list[CellSummary]]) -> None:
    for number, (name, cells) in enumerate(series.items()):
        at = [one.cell.rounds or 0 for one in cells]
        colour = COLOURS[number % len(COLOURS)]
        axes.plot(at, [100 * one.strict.mean for one in cells], marker="o", color=colour, label=name)
        lows, highs = ([100 * getattr(one.strict, side) for one in cells] for side in ("low", "high"))
        axes.fill_between(at, lows, highs, color=colour, alpha=0.15)
    axes.set_xticks(sorted({one.cell.rounds or 0 for cells in series.values() for one in cells}))
    axes.set_xlabel("rounds")
    axes.legend(fontsize=7, frameon=False)


def _scatter(axes: Axes, cells: list[CellSummary], axis: str, value: str) -> None:
    for number, (one, name) in enumerate(zip(cells, _names(cells), strict=True)):
        low = max(0.0, 100 * (one.strict.mean - one.strict.low))
        high = max(0.0, 100 * (one.strict.high - one.strict.mean))
        at = getattr(one, value)
        colour, marker = COLOURS[number % len(COLOURS)], MARKERS[number // len(COLOURS) % len(MARKERS)]
        drawn: dict[str, Any] = {"linestyle": "none", "color": colour, "marker": marker, "capsize": 2}
        axes.errorbar([at], [100 * one.strict.mean], yerr=[[low], [high]], label=name, **drawn)
    axes.set_xscale("log")
    for ticks in (axes.xaxis.set_major_formatter, axes.xaxis.set_minor_formatter):
        ticks(lambda value, _: f"{value:g}")
    axes.set_xlabel(axis)
    axes.legend(fontsize=7, frameon=False, loc="center left", bbox_to_anchor=(1.0, 0.5))


def _measured(summary: Summary) -> dict[str, list[CellSummary]]:
    """By dataset, the cells whose retrieval is known."""
    found: dict[str, list[CellSummary]] = {}
    for one in summary.cells:
        if JUDGED in one.retrieval:
            found.setdefault(one.cell.dataset, []).append(one)
    return found


def _bars_of(cells: list[CellSummary]) -> Callable[[Axes], None]:
    return lambda axes: _bars(axes, cells)


def _bars(axes: Axes, cells: list[CellSummary]) -> None:
    """One a cell, the first on top."""
    means = [one.retrieval[JUDGED] for one in cells]
    errors = [[max(0.0, m.mean - m.low) for m in means], [max(0.0, m.high - m.mean) for m in means]]
    places = range(len(cells))
    axes.barh(places, [m.mean for m in means], xerr=errors, color=COLOURS[0], height=0.65, capsize=2)
    axes.set_yticks(places, _names(cells))
    axes.invert_yaxis()
    for place, mean in zip(places, means, strict=True):
        axes.text(0.01, place, f"{mean.mean:.3f}", va="center", color="white", fontsize=8)
    axes.set_xlim(0, 1)
    axes.set_xlabel(JUDGED)


def _drawn(draw: Callable[[Axes], None], axis: str = "accuracy, %", height: float = 4.0) -> bytes:
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(8.0, height), layout="constrained")
    axes = figure.subplots()
    draw(axes)
    axes.set_ylabel(axis)
    axes.spines[["top", "right"]].set_visible(False)
    FigureCanvasAgg(figure)  # no display is looked for
    written = io.BytesIO()
    figure.savefig(written, format="png", dpi=110)
    return written.getvalue()
