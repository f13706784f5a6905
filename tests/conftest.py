"""What a test needs of the machine, and what is said when it is not there."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

from anon.errors import AnonmlError

if TYPE_CHECKING:
    from anon.route.testnet import PrivateNetwork

HINT = "tor is missing: install it (Debian: apt-get install tor; macOS: brew install tor)"


def _has_tor() -> bool:
    try:
        from anon.route.tor import find_tor

        find_tor()
    except AnonmlError:
        return False
    return True


def pytest_configure() -> None:
    """Programs that tests interrupt inherit this process's answer to Ctrl-C, and in the background of a shell that is to
    ignore it."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Skip, each by its name, the tests that need tor where there is none."""
    marked = [item for item in items if item.get_closest_marker("tor")]
    if marked and not _has_tor():
        for item in marked:
            item.add_marker(pytest.mark.skip(reason=HINT))


@pytest.fixture(scope="session")
def private_tor(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PrivateNetwork]:
    """One private Tor network for all tests of the session that need no more than that. `torrc_file` lets others in."""
    from examples.private_tor import private_tor as standing

    with standing(tmp_path_factory.mktemp("tor") / "net") as network:
        yield network
