"""Long tests in pieces: a run that was stopped goes on with the pieces that are not finished."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
TESTED = ("anon", "peer", "tests/attacks", "tests/support")


@cache
def _program() -> str:
    """The digest of what is tested: a piece finished by other code counts for nothing."""
    found = hashlib.sha256()
    for folder in TESTED:
        for path in sorted((ROOT / folder).rglob("*.py")):
            found.update(path.relative_to(ROOT).as_posix().encode() + b"\0" + path.read_bytes() + b"\0")
    return found.hexdigest()[:16]


@contextmanager
def piece(config: pytest.Config, what: str, number: int, of: int) -> Iterator[None]:
    """One piece: skipped when it was finished before. When all are finished, the next run begins anew."""
    assert config.cache is not None
    folder = Path(config.cache.mkdir(f"soak-{what}"))
    mark = folder / f"{_program()}-{number}"
    if mark.exists():
        pytest.skip("finished by an earlier run of the same code")
    yield
    mark.touch()
    if len(list(folder.glob(f"{_program()}-*"))) == of:
        for finished in folder.iterdir():
            finished.unlink()
