"""Runs sessions of what is left of a tree; `test_house.py` starts it once, and it goes into each tree by itself.

    python tests/without_shells.py TREE...

The libraries are loaded once: each tree is entered by a fork. The exit code is 1 when any tree fails.
"""

from __future__ import annotations

import importlib
import os
import pkgutil
import sys
import traceback
from pathlib import Path

LIBRARIES = (
    "aiohttp.web", "aiosqlite", "hypothesis", "jinja2", "pytest_asyncio", "rich", "sklearn.ensemble", "sqlalchemy",
    "typer",
)
PEERS = "tests/peer/test_peer_session.py"
STAFFS = "tests/aggregator/test_whole_study.py::test_a_study_runs_to_its_model[quantile]"


def alone(tree: Path) -> None:
    """Import every module and every command that is left, and run a session of that side. Raises on any failure."""
    os.chdir(tree)
    sys.path[0] = str(tree)
    # An editable installation would find in the checkout what is gone from the tree.
    sys.meta_path[:] = [finder for finder in sys.meta_path if "__editable__" not in getattr(finder, "__module__", "")]
    for side in ("anon", "peer", "aggregator"):
        package = importlib.import_module(side)
        assert Path(str(package.__file__)).is_relative_to(tree), package.__file__
        for module in pkgutil.walk_packages(package.__path__, f"{side}."):
            importlib.import_module(module.name)
    import anonml

    for command, (module_name, _) in anonml.COMMANDS.items():
        if not module_name.startswith("examples."):
            anonml.application(command)
    import pytest

    session = STAFFS if tree.name.startswith("aggregator.") else PEERS
    code = pytest.main(
        ["-q", "-x", "-p", "no:cacheprovider", "-p", "no:xdist", f"--basetemp={tree}/temporary", session]
    )
    assert code == 0, code


def main() -> int:
    """How many trees failed."""
    for name in LIBRARIES:
        importlib.import_module(name)
    failed = 0
    for tree in map(Path, sys.argv[1:]):
        if (child := os.fork()) == 0:
            try:
                alone(tree)
            except BaseException:
                traceback.print_exc()
                print(f"without {tree.name}: fails", flush=True)
                os._exit(1)
            os._exit(0)
        failed += os.waitpid(child, 0)[1] != 0
    return failed


if __name__ == "__main__":
    sys.exit(main())
