"""Which code a number came from, as a digest: what other code measured is neither reused nor shown.

Comments, docstrings and layout do not count. The data files are not part of it: they are the caller's.
"""

from __future__ import annotations

import ast
import hashlib
from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from functools import cache
from pathlib import Path

from benchmarks.figures import Figure

ROOT = Path(__file__).resolve().parents[2]

_PAPER, _LEARNER, _ADDITIVE = "benchmarks/paper", "aggregator/protocols/histogram", "aggregator/protocols/additive"
_PEERS = ("anon/ldp/*.py", "anon/protocols/histogram/*.py")
_DATA = tuple(f"{_PAPER}/{name}.py" for name in ("datasets", "courses", "studies"))
_PIPELINE = (*_PEERS, *_DATA, *(f"{_PAPER}/{name}.py" for name in ("pipeline", "fitting", "population")),
             f"{_LEARNER}/classifiers.py", f"{_ADDITIVE}/reconstruct.py")  # fmt: skip
_OURS = (*_PEERS, *_DATA, f"{_LEARNER}/*.py", f"{_ADDITIVE}/*.py", "aggregator/lab/simulation/*.py",
         "aggregator/lab/planning/ranking.py", f"{_PAPER}/trials.py")  # fmt: skip
_PLAN = (*_OURS, *(f"aggregator/lab/planning/{name}.py" for name in ("candidates", "plan", "population")))

KINDS: Mapping[str, Sequence[str]] = {
    "mechanisms": (*_PEERS, f"{_PAPER}/errors.py"),
    "pipeline": _PIPELINE,
    "unperturbed": (*_PIPELINE, f"{_PAPER}/unperturbed.py"),
    "ours": _OURS,
    "plan": _PLAN,
    "calibrated": (*_PLAN, "benchmarks/utility.py", "examples/census/study.toml"),
}
_APART = {"tally.py", "inference.py", "__init__.py"}
"""Counting reports of the wire, studies inferred from files, folders' first lines: no number here comes from them."""

_CALIBRATING = {"ASSUMED_RELATION", "UNCERTAIN_RELATION"}
"""Constants that change probabilities and no ranking: a ROC AUC does not depend on them."""

_OF_FIGURE = {"figure2": "mechanisms", "figure3": "mechanisms", "crossovers": "mechanisms", "figure4": "unperturbed",
              "figure5": "pipeline", "figure6": "pipeline", "figure7": "pipeline", "figure8d": "pipeline",
              "ceilings": "ours", "plan": "plan", "adult": "calibrated"}  # fmt: skip


def kind_of(figure: str, design: str = "") -> str:
    """Which code a row of this figure, and of the utility tables this design, depends on."""
    return _OF_FIGURE.get(figure) or ("pipeline" if design.startswith("paper") else "ours")


def is_current(figure: str, row: Figure) -> bool:
    """True if the code as it is now would measure this row."""
    return row.get("source") == digest(kind_of(figure, str(row.get("design", ""))))


@cache
def digest(kind: str) -> str:
    """Of every file that the kind names, as it is now. Twelve hex digits."""
    found = hashlib.sha256()
    for pattern in KINDS[kind]:
        for file in sorted(ROOT.glob(pattern)):
            if file.name not in _APART:
                text = file.read_text(encoding="utf-8")
                said = text if file.suffix != ".py" else meaning(text, set() if kind == "calibrated" else _CALIBRATING)
                found.update(f"{file.relative_to(ROOT)}\n{said}\n".encode())
    return found.hexdigest()[:12]


def meaning(source: str, without: AbstractSet[str] = frozenset()) -> str:
    """The code without comments, docstrings and layout, and without what is assigned to these names."""
    tree = ast.parse(source)
    tree.body = [line for line in tree.body if not _assigned(line) & without]
    for node in ast.walk(tree):
        if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)):
            node.body = [line for line in node.body if not _is_text(line)] or [ast.Pass()]
    return ast.dump(tree)


def _assigned(line: ast.stmt) -> set[str]:
    targets = line.targets if isinstance(line, ast.Assign) else []
    return {node.id for target in targets for node in ast.walk(target) if isinstance(node, ast.Name)}


def _is_text(line: ast.stmt) -> bool:
    return isinstance(line, ast.Expr) and isinstance(line.value, ast.Constant) and isinstance(line.value.value, str)
