"""What a test needs of the machine, and what is said when it is not there."""

from __future__ import annotations

import pytest

from anon.errors import AnonmlError

HINT = "tor is missing: install it (Debian: apt-get install tor; macOS: brew install tor)"


def _has_tor() -> bool:
    try:
        from anon.route.tor import find_tor

        find_tor()
    except AnonmlError:
        return False
    return True


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Skip, each by its name, the tests that need tor where there is none."""
    marked = [item for item in items if item.get_closest_marker("tor")]
    if marked and not _has_tor():
        for item in marked:
            item.add_marker(pytest.mark.skip(reason=HINT))
