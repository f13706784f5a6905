"""The guard of a loop: a turn that fails is told and met again, and only what the loop names ends it."""

from __future__ import annotations

import ast
import errno
from pathlib import Path

import pytest

from anon.errors import FAULT_IN_THIS_PROGRAM, Damaged, Refused, Unreachable
from anon.machine.guard import FIRST_PAUSE, LONGEST_PAUSE, SAID_AGAIN, Guard, disk_fault, told

ROOT = Path(__file__).resolve().parents[2]
UNGUARDED = {
    ("aggregator/intake/batcher.py", "_collect"): "it waits for its own queue alone",
    ("aggregator/store/packets.py", "relayed"): "it ends with its rows",
    ("aggregator/store/postgres.py", "_hold"): "it is within one turn of `_stand`",
    ("aggregator/tellers/study_tellers.py", "aligned"): "it ends with its rows",
    ("anon/route/tor/following.py", "_follow"): "it ends with the work that it tells of",
    ("anon/route/tor/process.py", "_until_done"): "it ends with one start of tor",
    ("anon/serving/door.py", "_accept"): "it meets every fault of a socket itself",
    ("anon/serving/onion_service.py", "_probe"): "it is within one turn of the service",
    ("anon/kit/testnet/probe.py", "answered"): "no command of a study",
    ("peer/run/supervisor.py", "run"): "`_run_once` keeps every fault for the owner's page",
}
"""Loops without an end that need no guard, and why."""


def test_a_turn_that_fails_is_told_and_only_what_is_named_ends_the_loop() -> None:
    lines: list[str] = []
    guard = Guard("the lines", ends=(Refused,), say=lines.append)
    pauses = []
    for _ in range(8):
        with guard.turn():
            raise Unreachable("the server is away.")
        pauses.append(guard.pause)
    assert pauses == [5, 10, 20, 30, 30, 30, 30, 30] and (pauses[0], pauses[-1]) == (FIRST_PAUSE, LONGEST_PAUSE)
    assert lines[0] == "the lines cannot go on: the server is away. It is tried again by itself." and len(lines) == 1
    for _ in range(9, SAID_AGAIN + 1):
        with guard.turn():
            raise Unreachable("the server is away.")
    assert len(lines) == 2, "the same is said again after minutes"
    with guard.turn():
        raise ZeroDivisionError("a value")
    assert FAULT_IN_THIS_PROGRAM in lines[2] and "a value" not in lines[2]
    for _ in range(2):
        with guard.turn():
            pass
    assert guard.pause == 0 and lines[3:] == ["the lines can go on again."]
    with pytest.raises(Refused), guard.turn():
        raise Refused("no")


def test_a_fault_that_another_loop_says_is_met_again_in_silence() -> None:
    lines: list[str] = []
    guard = Guard("the lines", say=lines.append, elsewhere=(Unreachable,))
    with guard.turn():
        raise Unreachable("the server is away")
    assert not lines and guard.pause == FIRST_PAUSE
    with guard.turn():
        pass
    assert not lines, "nor that it is over"
    with guard.turn():
        raise Damaged("a file is cut")
    assert len(lines) == 1


def test_a_loop_whose_turns_last_says_by_itself_that_it_goes_on() -> None:
    lines: list[str] = []
    guard = Guard("the onion address", say=lines.append, tells_end=False)
    with guard.turn():
        raise Unreachable("the network is away")
    with guard.turn():
        pass
    assert len(lines) == 1 and guard.pause == 0


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EROFS])
def test_a_disk_that_takes_nothing_is_told(number: int, tmp_path: Path) -> None:
    said = told(OSError(number, "x", str(tmp_path / "file")))
    assert str(tmp_path / "file") in said and "Make room" in said and said != told(OSError(number, "x"))
    assert told(PermissionError(errno.EACCES, "x")) == FAULT_IN_THIS_PROGRAM, "a connection that is not permitted"
    assert told(Damaged("a file is cut")) == "a file is cut"


def test_a_folder_is_tried_without_a_trace(tmp_path: Path) -> None:
    assert disk_fault(tmp_path) == "" and list(tmp_path.iterdir()) == []
    assert str(tmp_path / "gone") in disk_fault(tmp_path / "gone")


def _endless(side: str) -> dict[tuple[str, str], bool]:
    """Each loop without an end that waits, with whether a guard has its turns."""
    found = {}
    for path in sorted((ROOT / side).rglob("*.py")):
        for function in ast.walk(ast.parse(path.read_text("utf-8"))):
            if not isinstance(function, ast.AsyncFunctionDef):
                continue
            for loop in (node for node in ast.walk(function) if isinstance(node, ast.While)):
                endless = (
                    isinstance(loop.test, ast.Constant)
                    or "stopped" in ast.unparse(loop.test)
                    or "done()" in ast.unparse(loop.test)
                )
                if endless and any(isinstance(node, ast.Await) for node in ast.walk(loop)):
                    found[path.relative_to(ROOT).as_posix(), function.name] = "guard.turn()" in ast.unparse(loop)
    return found


@pytest.mark.slow
def test_every_loop_without_an_end_has_a_guard() -> None:
    loops = {name: guarded for side in ("anon", "peer", "aggregator") for name, guarded in _endless(side).items()}
    assert {name for name, guarded in loops.items() if not guarded} == set(UNGUARDED)
    assert sum(loops.values()) >= 8
