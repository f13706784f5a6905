"""A peer's own tests, run by Windows' Python: its rules, homes, page, imports, backups and children."""

from __future__ import annotations

import asyncio

import pytest

from tests.support.command_line import finish
from tests.windows.wine import CODE_PAGE, LONGEST, WINDOWS, needs_windows

pytestmark = [pytest.mark.process, pytest.mark.timeout(1800), needs_windows]
FILES = tuple(
    f"tests/{name}.py"
    for name in (
        *("windows/children_there", "windows/system_there"),
        *("peer/test_peer_checks", "peer/test_peer_release", "peer/test_peer_session", "peer/test_peer_backup"),
        *("peer/cli/test_peer_cli_own", "peer/data/test_importing_files"),
        *("attacks/test_damaged_homes", "attacks/test_wrong_file"),
    )
)
NOT_THERE = {
    "test_the_file_of_a_final_backup_is_on_the_disk_before_the_home_is_closed": "Windows syncs no folder",
    "test_a_backup_is_the_owners_alone_and_overwrites_nothing": "modes of files",
    "test_an_app_that_was_open_before_a_restore_goes_on_with_the_restored_file": (
        "an open file is not replaced on Windows"
    ),
    "test_an_emptied_file_is_not_taken_for_a_budget_that_nobody_spent": "an open file is not removed on Windows",
    "test_the_log_of_a_damaged_ledger_is_overwritten_when_a_home_begins_anew": "an open file is not removed on Windows",
    "test_a_bit_of_a_key_in_the_ledger_is_damage": "the test removes a folder with files that it left open",
    "test_csv": "modes of files",
    "test_sqlite_views_only_and_colliding_names": "the test removes a file that it holds open",
    "test_a_home_that_cannot_be_is_refused": "/proc is a folder of Linux",
}
"""Each with its reason: at most ten."""
COMMON = "not (soak or slow or process or tor or browser or postgres or timed)"


def test_a_peers_tests_pass_on_windows() -> None:
    async def run() -> str:
        plugins = ("-p", "no:cacheprovider", "-p", "tests.windows.wakeful")
        words = (*plugins, "-o", "timeout_method=thread", "--tb=short", "-m", COMMON)
        left_out = " and ".join(f"not {name}" for name in NOT_THERE)
        done = await finish(await WINDOWS.start("-m", "pytest", *words, "-k", left_out, *FILES), CODE_PAGE, LONGEST)
        assert done.code == 0, done.out[-6000:] + done.err[-2000:]
        return done.out

    assert len(NOT_THERE) <= 10
    assert int(asyncio.run(run()).rpartition(" passed")[0].split()[-1]) > 150
