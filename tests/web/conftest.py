"""Makes `village`, `visiting` and `peer_command` importable, and a page of a peer whose clock tests move."""

from __future__ import annotations

import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

_TESTS = Path(__file__).parents[1]
sys.path[:0] = [str(Path(__file__).parent), str(_TESTS / "peer"), str(_TESTS / "peer_cli")]

from visiting import Visited, visited  # noqa: E402


@pytest.fixture
async def page(tmp_path: Path) -> AsyncIterator[Visited]:
    """An entered page of a home with data and without studies; its peer's clock stands until a test moves it."""
    async with visited(tmp_path) as found:
        yield found
