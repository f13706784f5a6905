"""Line charts as SVG files, the same bytes for the same numbers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import matplotlib as mpl
from attrs import frozen
from matplotlib.axes import Axes
from matplotlib.figure import Figure as Drawing

mpl.use("svg")
STYLE = {
    "svg.hashsalt": "anonml",
    "svg.fonttype": "none",
    "font.family": "sans-serif",
    "font.size": 9,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "grid.alpha": 0.25,
    "lines.markersize": 3.5,
    "lines.linewidth": 1.3,
    "legend.frameon": False,
    "legend.fontsize": 8,
}


@frozen
class Line:
    """One line of a chart. `points` are (x, y, standard error); `level` draws a dotted line across at that height."""

    label: str
    points: Sequence[tuple[float, float, float]] = ()
    level: float | None = None
    dashed: bool = False


@frozen
class Panel:
    """One pair of axes."""

    title: str
    x_label: str
    y_label: str
    lines: Sequence[Line]
    log_x: bool = False
    log_y: bool = False
    ticks: Sequence[float] = ()


def draw(file: Path, grid: Sequence[Sequence[Panel]]) -> None:
    """Write the panels, row by row, as one SVG file."""
    with mpl.rc_context(STYLE):  # type: ignore[arg-type, unused-ignore]
        rows, columns = len(grid), max(len(row) for row in grid)
        drawing = Drawing(figsize=(4.6 * columns, 3.3 * rows), layout="constrained")
        axes = drawing.subplots(rows, columns, squeeze=False)
        for line, row in zip(axes, grid, strict=True):
            for place, panel in zip(line, row, strict=False):
                _panel(place, panel)
        file.parent.mkdir(parents=True, exist_ok=True)
        drawing.savefig(file, format="svg", metadata={"Date": None, "Creator": None})


def _panel(axes: Axes, panel: Panel) -> None:
    colours: Mapping[int, str] = {place: f"C{place}" for place in range(10)}
    for place, line in enumerate(panel.lines):
        colour = colours[place % 10]
        if line.points:
            x, y, error = (list(part) for part in zip(*sorted(line.points), strict=True))
            axes.errorbar(
                x, y, yerr=[2 * one for one in error], label=line.label, color=colour, marker="o",
                linestyle="--" if line.dashed else "-", elinewidth=0.8,
            )  # fmt: skip
        if line.level is not None:
            name = None if line.points else line.label
            axes.axhline(line.level, color=colour, linestyle=":", linewidth=1, label=name)
    axes.set_title(panel.title, fontsize=9)
    axes.set_xlabel(panel.x_label)
    axes.set_ylabel(panel.y_label)
    if panel.log_x:
        axes.set_xscale("log")
    if panel.log_y:
        axes.set_yscale("log")
    if panel.ticks:
        axes.set_xticks(list(panel.ticks), [f"{tick:g}" for tick in panel.ticks])
        axes.set_xticks([], minor=True)
    axes.legend()
