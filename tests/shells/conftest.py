"""Fixtures of the shells' tests: an owner's page, a phone that entered, a desk. Each is real HTTP on loopback."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.support.desk_browser import Desk, opened
from tests.support.phoning import Phoned, phoned
from tests.support.visiting import Visited, visited
from tests.support.world import in_memory, study_text

if TYPE_CHECKING:
    from tests.support.browsing import Browser


@pytest.fixture
async def page(tmp_path: Path) -> AsyncIterator[Visited]:
    """An entered page of a home with data and without studies; its peer's clock stands until a test moves it."""
    async with visited(tmp_path) as found:
        yield found


@pytest.fixture
async def phone(tmp_path: Path) -> AsyncIterator[Phoned]:
    """A phone that has entered, at the listener's socket itself; another one that has not yet."""
    async with phoned(tmp_path) as found:
        yield found


@pytest.fixture
async def desk(tmp_path: Path) -> AsyncIterator[Desk]:
    """A desk beside an aggregator with one study that enrols."""
    async with in_memory(tmp_path / "home", study_text()) as running, opened(running.app, running) as found:
        yield found


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    """One window for the tests of a file."""
    from tests.support.browsing import chromium

    with chromium(tmp_path_factory.mktemp("profile")) as found:
        yield found


@pytest.fixture(scope="module")
def axe() -> str:
    """The accessibility checker's script."""
    from tests.support.browsing import axe_source

    source = axe_source()
    if source is None:
        pytest.skip("axe-core is missing: install npm, which fetches the version in locks/axe")
    return source
