"""The repository's own texts, for tests over all of them."""

from __future__ import annotations

from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
FOLDERS = ("anon", "peer", "aggregator", "benchmarks", "examples", "bundle", "locks", "tests")


def modules(*folders: str) -> list[Path]:
    """All Python files of the folders."""
    return sorted(path for folder in folders for path in (ROOT / folder).rglob("*.py"))


def sources() -> list[Path]:
    """All Python files of the project."""
    return [ROOT / "anonml.py", *modules(*FOLDERS)]


def pages() -> list[Path]:
    """All documents: at the root, in `docs/`, and beside the examples."""
    return sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), *(ROOT / "examples").rglob("*.md")])
