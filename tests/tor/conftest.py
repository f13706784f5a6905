"""Commands that go through the private Tor network of the session."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from anon.kit.testnet import PrivateNetwork
from tests.support import command_line


@pytest.fixture(scope="session")
def through_tor(private_tor: PrivateNetwork) -> Iterator[PrivateNetwork]:
    """Every command of `command_line` that starts a tor joins the session's private network."""
    command_line.ENVIRONMENT["ANONML_TORRC"] = str(private_tor.torrc_file)
    yield private_tor
    del command_line.ENVIRONMENT["ANONML_TORRC"]
