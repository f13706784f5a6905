"""Makes `phoning`, `visiting`, `village` and `peer_command` importable, and a listener that one phone may enter."""

from __future__ import annotations

import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

_TESTS = Path(__file__).parents[1]
sys.path[:0] = [str(Path(__file__).parent), *(str(_TESTS / name) for name in ("peer", "peer_cli", "web"))]

from phoning import Phoned, phoned  # noqa: E402


@pytest.fixture
async def phone(tmp_path: Path) -> AsyncIterator[Phoned]:
    """A phone that has entered, at the listener's socket itself; another one that has not yet."""
    async with phoned(tmp_path) as found:
        yield found
