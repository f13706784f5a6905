"""The rooms of the three packages, drawn from the imports of the code into docs/pictures/rooms.svg.

    python -m benchmarks.rooms

A room is a file or a folder of a package's root. `ORDER` declares it: each room imports from lower rows alone. The
same data are what tests/test_house.py holds the code to. An arrow that follows from two others is left out. An import
counts wherever in a file it stands, and so does a string that names a module (`strings`).
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PICTURE = ROOT / "docs" / "pictures" / "rooms.svg"
PACKAGES = ("anon", "peer", "aggregator")
Graph = Mapping[str, frozenset[str]]
SAID = frozenset({"peer.predict", "peer.run.inclusion"})
"""Modules that `anon.protocols.kinds` names as those that check a kind of document, and that it does not import."""

ORDER: Mapping[str, tuple[tuple[str, ...], ...]] = {
    "anon": (
        ("teller",),
        ("protocols", "kit"),
        ("accounting",),
        ("sharing", "serving", "transparency"),
        ("route", "study", "tables"),
        ("wire", "machine", "queries"),
        ("vdaf", "credential", "ldp", "storage"),
        ("crypto",),
        ("noise", "errors"),
        ("text", "values"),
    ),
    "peer": (
        ("ledger", "pairing"),
        ("cli", "desktop", "web"),
        ("opening",),
        ("app",),
        ("predict", "run", "view"),
        ("network",),
        ("store",),
        ("data",),
        ("rules", "release"),
        ("protocols", "published_report", "threads"),
    ),
    "aggregator": (
        ("desk", "estimator", "notebook"),
        ("cli", "lab", "auditor"),
        ("opening",),
        ("app",),
        ("audit", "network"),
        ("study",),
        ("report", "intake", "tellers"),
        ("protocols", "store"),
        ("rules", "compute"),
    ),
}
"""Of each package its rooms in rows, the highest first."""

SHELLS: Mapping[str, frozenset[str]] = {
    "anon.kit.page": frozenset(),
    "anon.kit.diagnosis": frozenset(),
    "anon.kit.terminal": frozenset({"anon.kit.diagnosis"}),
    "anon.kit.testnet": frozenset({"anon.kit.terminal"}),
    "anon.teller": frozenset({"anon.kit.terminal", "anon.kit.diagnosis"}),
    "peer.opening": frozenset({"anon.kit.terminal"}),
    "peer.cli": frozenset({"anon.kit.terminal", "peer.opening"}),
    "peer.desktop": frozenset({"anon.kit.page", "anon.kit.terminal", "peer.opening"}),
    "peer.web": frozenset({"anon.kit.page", "anon.kit.diagnosis", "anon.kit.terminal", "peer.opening"}),
    "peer.pairing": frozenset({"anon.kit.page", "anon.kit.terminal", "peer.opening", "peer.web"}),
    "peer.ledger": frozenset({"anon.kit.terminal", "peer.opening", "peer.web"}),
    "aggregator.auditor": frozenset({"anon.kit.terminal"}),
    "aggregator.opening": frozenset({"anon.kit.terminal"}),
    "aggregator.cli": frozenset({"anon.kit.page", "anon.kit.terminal", "aggregator.opening"}),
    "aggregator.lab": frozenset({"anon.kit.terminal", "aggregator.opening"}),
    "aggregator.desk": frozenset({"anon.kit.page", "anon.kit.terminal", "aggregator.opening", "aggregator.lab"}),
    "aggregator.estimator": frozenset({"anon.kit.terminal", "aggregator.opening", "aggregator.lab"}),
    "aggregator.notebook": frozenset({"aggregator.lab"}),
}
"""The shells, and on which others each stands. All other rooms are the core, which imports none of them.

Some are kits that exist for others: those of `anon.kit` but the testnet, and each side's `opening`. Beyond these, a
paired phone reads the owner's page, which answers federated jobs too. Desk, estimator and notebook show what the lab
computes.
"""


@cache
def modules() -> Mapping[str, Path]:
    """Every module of the three packages by its dotted name."""
    found = {}
    for package in PACKAGES:
        for path in sorted((ROOT / package).rglob("*.py")):
            parts = path.relative_to(ROOT).with_suffix("").parts
            found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return found


@cache
def _read(path: Path) -> tuple[tuple[ast.Import | ast.ImportFrom, ...], tuple[str, ...]]:
    """The imports of a file, and its strings without the docstrings."""
    nodes = list(ast.walk(ast.parse(path.read_text(encoding="utf-8"))))
    docstrings = {id(node.value) for node in nodes if isinstance(node, ast.Expr)}
    texts = (node.value for node in nodes if isinstance(node, ast.Constant) and id(node) not in docstrings)
    found = tuple(node for node in nodes if isinstance(node, ast.Import | ast.ImportFrom))
    return found, tuple(text for text in texts if isinstance(text, str))


def statements(path: Path) -> tuple[ast.Import | ast.ImportFrom, ...]:
    """Every import of a file, wherever in the file the import stands. A relative one raises `ValueError`."""
    found, _ = _read(path)
    if any(isinstance(node, ast.ImportFrom) and node.level for node in found):
        raise ValueError(f"{path}: relative import")
    return found


@cache
def imports(path: Path) -> frozenset[str]:
    """Every dotted name that a file imports, by strings too."""
    found = set(strings(path))
    for node in statements(path):
        found |= {alias.name for alias in node.names} if isinstance(node, ast.Import) else _named(node)
    return frozenset(found)


@cache
def strings(path: Path) -> frozenset[str]:
    """Every module of ours that a file names in a string, as a whole (`"peer.web"`, `"peer.web.cli:join"`) or in the
    text of a program for a child. Docstrings are left out, and names that are only said (`SAID`)."""
    named = {name for text in _read(path)[1] for name in _named_in(text)}
    return frozenset(named & modules().keys() - SAID)


_WHOLE = re.compile(r"([a-z_0-9]+(?:\.[a-z_0-9]+)+)(?::\w+)?")
_STATEMENT = re.compile(r"(?:^|[\n;])[ \t]*(?:from|import)[ \t]+([\w.]+)")


def _named_in(text: str) -> Iterator[str]:
    if whole := _WHOLE.fullmatch(text):
        yield whole[1]
    yield from _STATEMENT.findall(text)


def _named(node: ast.ImportFrom) -> set[str]:
    return {f"{node.module}.{alias.name}" for alias in node.names} | {str(node.module)}


@cache
def arrows() -> frozenset[tuple[str, str]]:
    """Every import of one module of ours by another. Importing a name of a module imports that module alone."""
    known = modules()
    pairs = set()
    for name, path in known.items():
        named = imports(path) & known.keys()
        folders = {one.rpartition(".")[0] for one in named}
        pairs |= {(name, one) for one in named - {name} if one not in folders or _takes_name(path, one)}
    return frozenset(pairs)


def _takes_name(path: Path, package: str) -> bool:
    """True if a file imports something of a package that is no module of it, or the package itself."""
    for node in statements(path):
        if isinstance(node, ast.ImportFrom) and node.module == package:
            if any(f"{package}.{alias.name}" not in modules() for alias in node.names):
                return True
        elif isinstance(node, ast.Import) and any(alias.name == package for alias in node.names):
            return True
    return package in strings(path)


def between(folder: str) -> Graph:
    """Which entries of a folder (files and folders, by their names) import which others."""
    graph: dict[str, set[str]] = {}
    for one, other in arrows():
        if one.startswith(folder + ".") and other.startswith(folder + "."):
            first, second = (name[len(folder) + 1 :].partition(".")[0] for name in (one, other))
            graph.setdefault(first, set())
            graph.setdefault(second, set())
            if first != second:
                graph[first].add(second)
    return {name: frozenset(targets) for name, targets in graph.items()}


def reachable(graph: Graph, start: str) -> set[str]:
    """Every room that a room imports, directly or by others."""
    found: set[str] = set()
    open_ends = list(graph.get(start, ()))
    while open_ends:
        name = open_ends.pop()
        if name not in found:
            found.add(name)
            open_ends.extend(graph.get(name, ()))
    return found


def needs(starts: set[str]) -> set[str]:
    """Every module that some modules may ever load: what they import, and the packages that each lies in."""
    targets: dict[str, set[str]] = {}
    for one, other in arrows():
        targets.setdefault(one, set()).add(other)
    found, open_ends = set[str](), [*starts]
    while open_ends:
        name = open_ends.pop()
        if name not in found:
            found.add(name)
            open_ends += targets.get(name, set()) | {name.rpartition(".")[0]} & modules().keys()
    return found


def circle(graph: Graph) -> list[str]:
    """Rooms that import each other in a circle; empty when there is none."""
    return sorted(name for name in graph if name in reachable(graph, name))


def rooms(package: str) -> set[str]:
    """The files and folders of a package's root that hold code."""
    entries = {name.split(".")[1] for name in modules() if name.startswith(package + ".")}
    return entries


def rises(package: str) -> list[str]:
    """The arrows of a package that do not lead to a lower row, and the rooms that no row declares."""
    row_of = {name: row for row, names in enumerate(ORDER[package]) for name in names}
    graph = between(package)
    strange = [f"{package}/{name}: in no row" for name in sorted(rooms(package) ^ row_of.keys())]
    return strange + [
        f"{package}/{one} -> {package}/{other}"
        for one in sorted(graph)
        for other in sorted(graph[one])
        if one in row_of and other in row_of and row_of[other] <= row_of[one]
    ]


def shell_of(module: str) -> str | None:
    """The shell that a module belongs to; None in the core."""
    return next((name for name in SHELLS if f"{module}.".startswith(f"{name}.")), None)


def trespasses() -> list[str]:
    """The imports of a shell by the core, and by a shell that does not stand on it."""
    return [
        f"{one} -> {other}"
        for one, other in sorted(arrows())
        if (entered := shell_of(other)) is not None
        and (home := shell_of(one)) != entered
        and (home is None or entered not in SHELLS[home])
    ]


def standing_on(shell: str) -> set[str]:
    """A shell and all that cannot be without it."""
    found = {shell}
    while more := {name for name, under in SHELLS.items() if under & found} - found:
        found |= more
    return found


# The picture

_BOX, _GAP, _ROW, _EDGE, _TITLE = 116, 16, 78, 24, 40
_COLOURS = {"core": ("#e8eef5", "#3a6ea5"), "shell": ("#fbeee4", "#c2571a")}


def shortest(graph: Graph) -> set[tuple[str, str]]:
    """The arrows of a graph without circles that do not follow from two others."""
    return {
        (one, other)
        for one, targets in graph.items()
        for other in targets
        if not any(other in reachable(graph, between_them) for between_them in targets - {other})
    }


def picture() -> str:
    """All three packages side by side as SVG, from `ORDER` and the imports of the code."""
    drawn, left, tallest = [], _EDGE, 0
    for package in PACKAGES:
        rows = ORDER[package]
        width = max(len(row) for row in rows) * (_BOX + _GAP) - _GAP
        drawn += _package(package, left, width)
        left += width + 3 * _EDGE
        tallest = max(tallest, len(rows))
    width, height = left - 2 * _EDGE, _TITLE + tallest * _ROW + 2 * _EDGE
    legend = "Blue: the core. Orange: shells. A room imports from lower rows alone. Arrows that follow are left out."
    return "\n".join([
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}"',
        '     font-family="sans-serif" font-size="13">',
        '<defs><marker id="end" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" orient="auto">',
        '<path d="M0 0 8 4 0 8z" fill="#777"/></marker></defs>',
        f'<rect width="{width}" height="{height}" fill="#fff"/>',
        *drawn,
        f'<text x="{_EDGE}" y="{height - _EDGE / 2}" fill="#555">{legend}</text>',
        "</svg>",
        "",
    ])


def _package(package: str, left: float, width: float) -> list[str]:
    places = {}
    for level, row in enumerate(ORDER[package]):
        start = left + (width - len(row) * (_BOX + _GAP) + _GAP) / 2
        for number, name in enumerate(row):
            places[name] = (start + number * (_BOX + _GAP), _TITLE + level * _ROW + _EDGE)
    lines = [f'<text x="{left}" y="{_TITLE - 8}" font-size="18" font-weight="bold">{package}/</text>']
    for one, other in sorted(shortest(between(package))):
        (x, y), (to_x, to_y) = places[one], places[other]
        lines.append(
            f'<path d="M{x + _BOX / 2:g} {y + 30} C{x + _BOX / 2:g} {y + 58} {to_x + _BOX / 2:g} {to_y - 28} '
            f'{to_x + _BOX / 2:g} {to_y - 1}" fill="none" stroke="#777" marker-end="url(#end)"/>'
        )
    for name, (x, y) in places.items():
        is_shell = any(f"{shell}.".startswith(f"{package}.{name}.") for shell in SHELLS)
        fill, edge = _COLOURS["shell" if is_shell else "core"]
        lines.append(f'<rect x="{x:g}" y="{y}" width="{_BOX}" height="30" rx="5" fill="{fill}" stroke="{edge}"/>')
        lines.append(f'<text x="{x + _BOX / 2:g}" y="{y + 20}" text-anchor="middle">{name}</text>')
    return lines


if __name__ == "__main__":
    PICTURE.write_text(picture(), encoding="utf-8")
