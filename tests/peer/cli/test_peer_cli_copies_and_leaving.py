"""`anonml peer leave` beside `anonml peer run` in processes of their own, and what `backup` tells."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.support.peer_command import Command, Served

ROOT = Path(__file__).resolve().parents[3]


@pytest.mark.slow
def test_leave_beside_a_run_is_delivered_by_it_and_told_truthfully(command: Command, served: Served) -> None:
    command("budget", "--minimum-cohort", "3")
    assert command("join", served.link, "--yes").code == 0
    running = subprocess.Popen([sys.executable, "-m", "anonml", "peer", "run", "--home", command.home], cwd=ROOT,
                               stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    try:
        while command("status", "--json").json[0]["state"] != "enrolled":
            assert running.poll() is None
            time.sleep(0.1)
        left = command("leave")
        assert (left.code, left.err) == (0, "")
        assert "withdrawn" in left.out
        assert "not answered yet" not in left.out
        assert served.aggregator.enrolments == {}
        out, _ = running.communicate(timeout=20)  # nothing is left to run
        assert running.returncode == 0, out
    finally:
        running.kill()
        running.wait()


def test_a_backup_tells_that_it_fixed_the_answers(
    command: Command, served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("peer.store.backup.archive.evaluation_allowance", lambda _table: 0.5)
    command("budget", "--minimum-cohort", "3")
    assert command("join", served.link, "--yes").code == 0
    assert "1 study answers from your data as they are now" in command("backup", command.home.parent / "first").out
    assert "answers" not in command("backup", command.home.parent / "second").out
