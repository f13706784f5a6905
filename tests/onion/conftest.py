"""Makes the modules of this folder, and the command line of the integration tests, importable by its tests."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE), str(HERE.parent / "integration")]

import command_line  # noqa: E402

from anon.route.testnet import PrivateNetwork  # noqa: E402


@pytest.fixture(scope="session")
def through_tor(private_tor: PrivateNetwork) -> Iterator[PrivateNetwork]:
    """Every command of `command_line` that starts a tor joins the session's private network."""
    command_line.ENVIRONMENT["ANONML_TORRC"] = str(private_tor.torrc_file)
    yield private_tor
    del command_line.ENVIRONMENT["ANONML_TORRC"]
