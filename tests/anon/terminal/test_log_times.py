"""Lines of a command that serves have a time, which tells of no single member more than they did without."""

from __future__ import annotations

import ast
import logging
import multiprocessing
import os
import re
import sys
from pathlib import Path

import pytest

from aggregator.cli import fellows
from anon.kit.terminal import logs
from anon.kit.terminal.logs import Plain, beginning, moment, with_times
from anon.machine.clock import OF_ONE

ROOT = Path(__file__).resolve().parents[3]
AT = 1_800_000_000.9
SECOND, HOUR = "2027-01-15T08:00:00Z ", "2027-01-15T08Z "
SERVED = ("aggregator", "anon/machine", "anon/serving", "anon/teller")
TO_THE_SECOND = {
    ("aggregator/cli/fellows.py", "_serve_beside"): "a process ended",
    ("aggregator/cli/serve.py", "watch"): "the machine's clock was set",
    ("aggregator/rules/faults.py", "tell"): "the clockwork met it at its own turn",
    ("aggregator/rules/faults.py", "tell_end"): "the same",
    ("aggregator/store/duplicate_home.py", "demand_known"): "at the start",
    ("aggregator/study/effects.py", "_leave_out"): "at the end of a phase",
    ("aggregator/study/effects.py", "publish_roster"): "at the end of a phase",
    ("aggregator/study/sums.py", "finish_tellers"): "at the end of a study",
    ("aggregator/study/sums.py", "publish_no_sum"): "at the end of a round",
    ("anon/machine/guard.py", "_failed"): "a loop met it at its own turn",
    ("anon/machine/guard.py", "_tell"): "the same",
    ("anon/teller/service.py", "_note"): "an aggregator called, once a phase has ended",
}
"""The lines whose moment is nobody's act, and why. Each other one of a server is to the hour."""


def test_a_line_has_its_time_in_utc_and_one_that_may_come_of_a_members_act_has_the_hour() -> None:
    assert (moment(AT), moment(AT, of_one=True)) == (SECOND, HOUR)
    for name, extra, begins in (
        ("aggregator.app", {}, SECOND),
        ("anon.machine.guard", {}, SECOND),
        ("aggregator.intake.batcher", OF_ONE, HOUR),
        ("asyncio", {}, HOUR),
        ("aiohttp.server", {}, HOUR),
    ):
        record = logging.makeLogRecord({"name": name, "levelname": "ERROR", "msg": "said", "created": AT, **extra})
        assert Plain(timed=True).format(record) == f"{begins}ERROR {name}: said"
        assert Plain().format(record) == f"ERROR {name}: said"


def test_each_log_line_of_a_server_is_to_the_hour_or_is_nobodys_act() -> None:
    found = {}
    for path in sorted(path for side in SERVED for path in (ROOT / side).rglob("*.py")):
        for function in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef):
                calls = [ast.unparse(node) for node in ast.walk(function) if isinstance(node, ast.Call)]
                if lines := [call for call in calls if call.startswith("_LOG.")]:
                    found[path.relative_to(ROOT).as_posix(), function.name] = all("OF_ONE" in line for line in lines)
    assert {place for place, to_the_hour in found.items() if not to_the_hour} == set(TO_THE_SECOND)
    assert sum(found.values()) == 3, "what comes in, a request, a document"


def test_the_journal_of_the_system_has_times_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(logs.time, "time", lambda: AT)
    with (tmp_path / "journal").open("w") as journal, (tmp_path / "file").open("w") as file:
        there = os.fstat(journal.fileno())
        assert beginning(journal) == SECOND
        monkeypatch.setenv("JOURNAL_STREAM", f"{there.st_dev}:{there.st_ino}")
        assert beginning(journal) == "" and beginning(file) == SECOND, "a pipe out of a unit is no journal"
        handler, root = logging.StreamHandler(), logging.getLogger()
        root.addHandler(handler)
        try:
            for stream, timed in ((journal, False), (file, True)):
                monkeypatch.setattr(sys, "stderr", stream)
                handler.setFormatter(Plain())
                with_times()
                record = logging.makeLogRecord({"name": "anon.x", "msg": "said", "created": AT})
                assert handler.format(record).startswith(SECOND) is timed
        finally:
            root.removeHandler(handler)


@pytest.mark.process
def test_a_further_process_logs_in_the_same_form_and_ends_with_no_text_of_others(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """It is spawned: without a form of its own Python would print the text of any exception."""
    (tmp_path / "signing.key").write_bytes(b"short")
    spawned = multiprocessing.get_context("spawn").Process(
        target=fellows._serve_beside, args=(tmp_path, "127.0.0.1", 0, 0)
    )
    spawned.start()
    spawned.join(60)
    said = capfd.readouterr().err
    line = r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ ERROR aggregator\.cli\.fellows: a further process ended: .*damaged"
    assert spawned.exitcode == 1 and re.match(line, said) and "Traceback" not in said, said
