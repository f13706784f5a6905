"""Which numbers go into which chart. Under each accounting the same measurements lie at other places of the axis."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from benchmarks.figures import Figure
from benchmarks.paper.findings import Findings, number
from benchmarks.paper.plots import Line, Panel, draw

EPSILON_TICKS = (0.1, 0.25, 0.5, 1, 2, 4, 8, 16, 32)
ACCOUNTINGS = (("epsilon_eq6", "per-attribute (AnonML eq. 6)"), ("epsilon_record", "record-level"))
AUC = "ROC AUC"


def write_all(found: Findings, folder: Path) -> list[str]:
    """Every chart for which there are numbers; returns the file names."""
    charts: list[tuple[str, Callable[[Findings], Sequence[Sequence[Panel]]]]] = [
        ("figure2", figure_2),
        ("figure3", figure_3),
        ("figure5", figure_5),
        ("figure6", figure_6),
        ("figure7", figure_7),
        ("utility", utility),
    ]
    written = []
    for name, panels in charts:
        grid = panels(found) if found.rows(name) else []
        if grid:
            draw(folder / f"{name}.svg", grid)
            written.append(name)
    return written


def figure_2(found: Findings) -> list[list[Panel]]:
    """p and q of eq. 5 against m."""
    names = (("p", "p of eq. 5"), ("q", "q of eq. 5"), ("p_rappor", "p, RAPPOR"), ("q_rappor", "q, RAPPOR"))
    rows = found.rows("figure2")
    lines = [
        Line(label, [(number(row, "m"), number(row, key), 0.0) for row in rows], dashed="rappor" in key)
        for key, label in names
    ]
    ticks = (2, 4, 8, 16, 32, 64, 128)
    return [[Panel("Least error at epsilon 1", "categories m", "probability", lines, log_x=True, ticks=ticks)]]


def figure_3(found: Findings) -> list[list[Panel]]:
    """The error of every mechanism: lines by eq. 4, marks with bars as drawn."""
    panels = []
    for panel, key, title, ticks in (
        ("epsilon", "epsilon", "m = 16", (0.25, 0.5, 1, 2, 4)),
        ("m", "m", "epsilon = 1", (2, 4, 8, 16, 32, 64, 128)),
    ):
        lines = []
        for name in dict.fromkeys(str(row["mechanism"]) for row in found.rows("figure3")):
            rows = found.rows("figure3", panel=panel, mechanism=name)
            lines.append(Line(name, [(number(row, key), number(row, "rmse"), number(row, "rmse_se")) for row in rows]))
        panels.append(Panel(title, key, "l2 error, 10,000 peers", lines, log_x=True, log_y=True, ticks=ticks))
    return [panels]


def figure_5(found: Findings) -> list[list[Panel]]:
    """Both designs, one row of panels for each accounting."""
    grid = []
    for key, accounting in ACCOUNTINGS:
        row = []
        for partitions, size in ((5, 3), (20, 1)):
            rows = found.rows("figure5", partitions=partitions, subset_size=size)
            title = f"{partitions} partitions, {size} per subset, 2 subsets"
            row.append(_panel(rows, key, f"{title}\n{accounting}", "set", str))
        grid.append(row)
    return grid


def figure_6(found: Findings) -> list[list[Panel]]:
    """Subset size: against epsilon for each accounting, and against the size at some epsilons."""
    grid = []
    for key, accounting in ACCOUNTINGS:
        row = []
        for partitions in (5, 20):
            rows = found.rows("figure6", partitions=partitions)
            row.append(_panel(rows, key, f"{partitions} partitions\n{accounting}", "subset_size", _sized))
        grid.append(row)
    grid.append([_against(found.rows("figure6", partitions=p), "subset_size", f"{p} partitions") for p in (5, 20)])
    return grid


def figure_7(found: Findings) -> list[list[Panel]]:
    """Partitions at three features per subset."""
    rows = found.rows("figure7")
    first = [_panel(rows, key, accounting, "partitions", _parted) for key, accounting in ACCOUNTINGS]
    return [first, [_against(rows, "partitions", "3 features per subset")]]


def utility(found: Findings) -> list[list[Panel]]:
    """Every design with all peers, one panel for each data set."""
    panels = []
    for row in found.rows("ceilings"):
        cells = found.rows("utility", set=row["set"], peers=None)
        if not cells:
            continue
        lines = []
        for design in dict.fromkeys(str(cell["design"]) for cell in cells):
            chosen = [cell for cell in cells if cell["design"] == design]
            points = [(number(c, "epsilon"), number(c, "auc"), number(c, "auc_se")) for c in chosen]
            if len(points) > 1:
                lines.append(Line(design, points, dashed=design.startswith("paper")))
        lines.append(Line("no privacy, same bins", level=number(row, "auc_binned")))
        title = f"{row['set']}, {row['peers']} peers"
        panels.append(Panel(title, "record-level epsilon", AUC, lines, log_x=True, ticks=(0.25, 0.5, 1, 2, 4)))
    return [panels[start : start + 2] for start in range(0, len(panels), 2)]


def _panel(rows: Sequence[Figure], key: str, title: str, by: str, label: Callable[[object], str]) -> Panel:
    lines = []
    for value in dict.fromkeys(row[by] for row in rows):
        chosen = [row for row in rows if row[by] == value]
        points = [(number(row, key), number(row, "auc"), number(row, "auc_se")) for row in chosen if row["epsilon"]]
        level = [number(row, "auc") for row in chosen if row["epsilon"] is None]
        lines.append(Line(label(value), points, level[0] if level else None))
    x_label = "epsilon_T" if key == "epsilon_eq6" else "epsilon of the whole record"
    return Panel(title, x_label, AUC, lines, log_x=True, ticks=EPSILON_TICKS)


def _against(rows: Sequence[Figure], key: str, title: str) -> Panel:
    lines = []
    for epsilon in dict.fromkeys(row["epsilon"] for row in rows):
        chosen = [row for row in rows if row["epsilon"] == epsilon]
        name = "no perturbation" if epsilon is None else f"epsilon_h = {epsilon:g}"
        points = [(number(row, key), number(row, "auc"), number(row, "auc_se")) for row in chosen]
        lines.append(Line(name, points, dashed=epsilon is None))
    ticks = sorted({number(row, key) for row in rows})
    return Panel(title, key.replace("_", " "), AUC, lines, log_x=key == "partitions", ticks=ticks)


def _sized(value: object) -> str:
    return f"{value} per subset"


def _parted(value: object) -> str:
    return f"{value} partition" + ("" if value == 1 else "s")
