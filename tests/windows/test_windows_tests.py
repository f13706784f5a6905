"""A peer's own tests, run by Windows' Python: rules, homes, page, imports, backups, children, and attacks on them.

Each group is a program of its own.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import pytest

from tests.windows.wine import WINDOWS, booted, needs_windows

pytestmark = [pytest.mark.process, pytest.mark.timeout(1800), needs_windows]
GROUPS = {
    "system": ("windows/children_there", "windows/system_there", "peer/test_peer_session"),
    "homes": (
        "peer/test_peer_backup", "attacks/test_damaged_homes", "attacks/test_restored_homes",
        "attacks/test_erased_data",
    ),
    "studies": ("peer/test_peer_checks", "peer/test_peer_release", "peer/cli/test_peer_cli_own"),
    "files": (
        "peer/data/test_importing_files", "peer/data/formats/test_formats_text", "peer/data/formats/test_formats_excel",
        "attacks/test_import_bombs", "attacks/test_excel_bombs", "attacks/test_wrong_file",
        "attacks/test_page_takes_back",
    ),
}  # fmt: skip
NOT_THERE = {
    "test_the_file_of_a_final_backup_is_on_the_disk_before_the_home_is_closed": "Windows syncs no folder",
    "test_a_backup_is_the_owners_alone": "modes of files",
    "test_an_imported_table_is_the_owners_alone": "modes of files",
    "test_an_app_that_was_open_before_a_restore_goes_on_with_the_restored_file": (
        "an open file is not replaced on Windows"
    ),
    "test_the_log_of_a_damaged_ledger_is_overwritten_when_a_home_begins_anew": "the test holds a file open",
    "test_data_imported_just_after_all_was_erased_stay": "an open file is removed there once it is closed",
    "test_a_home_that_cannot_be_is_refused and proc": "/proc is a folder of Linux",
    "test_a_backup_with_an_emptied_ledger_brings_no_budget_back and x": (
        "a file of one byte is damaged for the newer SQLite of Windows' Python, and refused as that"
    ),
}
"""Each with its reason: at most ten."""
COMMON = "not (soak or slow or process or tor or browser or postgres or timed)"


@pytest.mark.parametrize("group", GROUPS)
def test_a_peers_tests_pass_on_windows(group: str) -> None:
    assert len(NOT_THERE) <= 10
    assert passed(GROUPS[group], COMMON) > len(GROUPS[group])


@pytest.mark.soak
def test_a_home_on_windows_lives_beside_a_program_that_shares_nothing() -> None:
    assert passed(("windows/system_there",), "soak") == 1


def passed(files: Sequence[str], marked: str) -> int:
    """The number of tests in these files, all of which passed on Windows."""

    async def run() -> str:
        plugins = ("-p", "no:cacheprovider", "-p", "tests.support.wakeful")
        words = (*plugins, "-o", "timeout_method=thread", "--tb=short", "-m", marked)
        left_out = " and ".join(f"not ({name})" for name in NOT_THERE)
        named = [f"tests/{name}.py" for name in files]
        done = await WINDOWS.done("-m", "pytest", *words, "-k", left_out, *named)
        assert done.code == 0, done.out[-6000:] + done.err[-2000:]
        return done.out

    with booted():
        said = asyncio.run(run())
    assert "skipped" not in said, said[-2000:]
    return int(said.rpartition(" passed")[0].split()[-1])
