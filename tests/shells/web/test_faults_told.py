"""A fault of ours is told by its kind and places: what was in the data is in no line of it, as a program starts it."""

from __future__ import annotations

import logging
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from anon.kit.terminal.logs import Plain, places, to_stderr

ROOT = Path(__file__).resolve().parents[3]
CANARY = "Papageienkanarie"
_BROKEN = """
import asyncio, gc, sys
async def forgotten(error):
    async def fail():
        raise error
    asyncio.create_task(fail())
    await asyncio.sleep(0.01)
    gc.collect()
def wrong(*words, **more):
    secret = "Papageienkanarie"
    try:
        float(secret)
    except ValueError as error:
        {ends}
import peer.data.importing
peer.data.importing.import_file = wrong
import anonml
sys.argv = ["anonml", "peer", "import", {file!r}, "--home", {home!r}]
anonml.main()
"""
ENDS = {
    "in another": "raise RuntimeError(f'no number: {secret}') from error",
    "in a group": "raise ExceptionGroup(secret, [error, KeyError(secret)])",
    "in a task that nobody waits for": "asyncio.run(forgotten(error)); raise SystemExit(1)",
}


@pytest.mark.slow
@pytest.mark.parametrize("how", ENDS)
def test_a_crash_says_kind_and_place_and_no_value(tmp_path: Path, how: str) -> None:
    file = tmp_path / "mine.csv"
    file.write_text(f"a\n{CANARY}\n")
    code = (
        _BROKEN.replace("{ends}", ENDS[how])
        .replace("{file!r}", repr(str(file)))
        .replace("{home!r}", repr(str(tmp_path / "home")))
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, timeout=60)
    said = done.stdout + done.stderr
    assert done.returncode == 1 and "ValueError" in said and "in wrong" in said, said
    assert CANARY not in said and str(tmp_path) not in said


def _failed() -> ValueError:
    try:
        float(CANARY)
    except ValueError as error:
        return error
    raise AssertionError


def test_places_name_every_exception_of_a_chain_once() -> None:
    error = _failed()
    error.__context__ = KeyError(CANARY)
    group = ExceptionGroup(CANARY, [error, error, TypeError(CANARY)])
    error.__context__.__context__ = group  # a ring
    said = places(group)
    assert said.count("ValueError") == 1 and "KeyError" in said and "TypeError" in said and "in _failed" in said
    assert CANARY not in said


def test_a_record_is_formatted_without_its_faults_text_also_when_another_handler_wrote_it_before() -> None:
    error = _failed()
    record = logging.LogRecord(
        "asyncio", logging.ERROR, "", 1, "future: %s", (repr(error),), (ValueError, error, error.__traceback__)
    )
    assert CANARY in logging.Formatter().format(record)
    said = Plain().format(record)
    assert said.splitlines()[0] == "ERROR asyncio: a task failed" and "ValueError" in said and CANARY not in said
    plain = logging.LogRecord("peer.app", logging.ERROR, "", 1, "study %s", ("ab",), None)
    assert Plain().format(plain) == "ERROR peer.app: study ab"


class Holder:
    """Fails when it is collected, and shows what it holds."""

    def __repr__(self) -> str:
        return CANARY

    def __del__(self) -> None:
        raise ValueError(CANARY)


def test_a_thread_that_fails_and_what_cannot_be_raised_are_told_without_their_text(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]
) -> None:
    """Python prints both with their texts, to what is a service's log."""
    for where, name in ((threading, "excepthook"), (sys, "unraisablehook")):
        monkeypatch.setattr(where, name, getattr(where, name))
    to_stderr()
    thread = threading.Thread(target=lambda: float(CANARY))
    thread.start()
    thread.join()
    Holder()
    said = "\n".join(Plain().format(record) for record in caplog.records)
    assert "a thread failed" in said and "a fault could not be raised" in said and said.count("ValueError") == 2
    assert CANARY not in said + "".join(capfd.readouterr())
