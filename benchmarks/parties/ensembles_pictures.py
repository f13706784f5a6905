"""Figures 6.1 to 6.9 of Asplund and Froystad (2015), drawn again from the tables of docs/ensembles.md."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from benchmarks.paper.plots import Line, Panel, draw
from benchmarks.paper.sections import section_of, tables_of

ERROR, NONE = "error", "none"
WAYS = {2: "local", 3: "published alone", 4: "to the group", 5: "to all"}
"""The columns of a table."""
Lines = Sequence[Sequence[str]]


def draw_all(page: str, folder: Path) -> None:
    """Write every figure whose table is on the page."""
    rest = section_of(page, "## Epsilon, peers and lambda")
    epsilon, peers = _under(rest, "set", "epsilon"), _under(rest, "set", "peers")
    lambdas, parts = _under(rest, "epsilon", "lambda"), _under(section_of(page, "## Epsilon in parts"), "epsilon")
    records = _under(section_of(page, "## Records of each peer"), "records")
    grids = {
        "1": [[_panel(name, "epsilon", _of(epsilon, 0, name), 1, (2, 3, 4)) for name in ("Adult", "Spambase")]],
        "2-to-4": [[Panel("Spambase", "lambda", ERROR, [
            _line(f"epsilon {cost}", _of(lambdas, 0, cost), 1, 2) for cost in dict.fromkeys(line[0] for line in lambdas)
        ], log_x=True)]],
        "5-to-7": [[_panel(f"epsilon {cost}", "records of each peer", _of(records, 1, cost), 0, (2, 3, 4))
                    for cost in pair] for pair in (("0.1", "0.5"), ("1", "4"))],
        "8": [[_panel("Adult", "peers", _of(peers, 0, "Adult"), 1)]],
        "9": [[_panel(f"epsilon {cost}", "parts", _of(parts, 0, cost), 1) for cost in ("1", "0.1")]],
    }  # fmt: skip
    for name, grid in grids.items():
        if all(line.points for row in grid for panel in row for line in panel.lines):
            draw(folder / f"groups-figure-{name}.svg", grid)


def _under(section: str, *first: str) -> Lines:
    """The lines of the table whose header begins so."""
    return next((lines for header, *lines in tables_of(section) if tuple(header[: len(first)]) == first), [])


def _of(lines: Lines, column: int, value: str) -> Lines:
    return [line for line in lines if line[column] == value]


def _panel(title: str, across: str, lines: Lines, column: int, ways: Sequence[int] = (2, 3, 4, 5)) -> Panel:
    ticks = [float(line[column]) for line in lines if line[column] != NONE]
    drawn = [_line(WAYS[way], lines, column, way) for way in ways]
    return Panel(title, across, ERROR, drawn, log_x=True, ticks=ticks)


def _line(name: str, lines: Lines, column: int, value: int) -> Line:
    """Bars of a chart are two errors long on either side; a cell tells its deviation over runs."""
    told = [(line[column], *_read(line[value])) for line in lines]
    points = [(float(at), error, spread / 2) for at, error, spread in told if at != NONE]
    return Line(name, points, next((error for at, error, _ in told if at == NONE), None))


def _read(cell: str) -> tuple[float, float]:
    """The error and its deviation over runs."""
    error, _, rest = cell.partition(" (")
    return float(error), float(rest.split(" / ")[0].rstrip(")"))
