"""Starting an owner in the background, and ending it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

from anon.errors import Refused, Unreachable
from anon.kit.testnet.owner import is_running
from anon.kit.testnet.state import NetworkState, NetworkStatement
from anon.machine.environment import Child, for_child
from anon.storage.private_files import new_private

ROOT = Path(__file__).resolve().parents[2]
LONGEST = 150.0
ENDING = 10.0
POLL = 0.05


def start(state: NetworkState, address: str) -> NetworkStatement:
    """Leave an owner in the background; what it told once its network was ready.

    Raises `Refused` when one runs already, `Unreachable` when the network did not come up (nothing is left of it). An
    interrupt ends the owner.
    """
    state.prepare()
    if state.is_owned():
        raise Refused(f"a private network runs in {state.folder} already; `anonml testnet status` or `down`")
    state.log.unlink(missing_ok=True)
    with new_private(state.log) as log:
        command = [sys.executable, "-m", "anon.kit.testnet.owner", "--folder", str(state.folder.resolve())]
        owner = subprocess.Popen(  # noqa: S603
            [*command, "--address", address],
            stdin=subprocess.DEVNULL, stdout=log, stderr=log, cwd=ROOT, start_new_session=True,
            env=for_child(Child.OWN),
        )  # fmt: skip
    try:
        return _await_ready(state, owner)
    except BaseException:
        _end(owner)
        raise


def _await_ready(state: NetworkState, owner: subprocess.Popen[bytes]) -> NetworkStatement:
    deadline = time.monotonic() + LONGEST
    while time.monotonic() < deadline:
        ended = owner.poll() is not None
        standing = state.told()
        if standing and standing.phase == "ready" and standing.pid == owner.pid:
            return standing
        if ended:
            last = state.log.read_text("utf-8", "replace").strip().rpartition("\n")[2]
            raise Unreachable(f"no private network: {last or 'its owner ended without a word'}")
        time.sleep(POLL)
    raise Unreachable(f"no private network within {LONGEST:g} s; its owner's log is {state.log}")


def _end(owner: subprocess.Popen[bytes]) -> None:
    owner.terminate()
    try:
        owner.wait(ENDING)
    except subprocess.TimeoutExpired:
        owner.kill()
        owner.wait()


def stop(state: NetworkState) -> NetworkStatement | None:
    """End the network of this folder, and remove what one left that was killed; None when none ran.

    Raises `Unreachable` when a process of it is left, with the ids.
    """
    standing = state.told()
    if not state.is_owned():
        if state.folder.is_dir() and standing:
            state.clean()
        return None
    if standing is None:
        raise Unreachable(f"{state.folder} has an owner that says nothing; try again in a moment")
    _signal(standing.pid, signal.SIGTERM)
    if not _gone(state, standing):
        _signal(standing.pid, signal.SIGKILL)
        if not _gone(state, standing):
            left = ", ".join(str(pid) for pid in standing.pids if is_running(pid))
            raise Unreachable(f"processes are left of the private network: {left}; end them with kill")
    state.clean()
    return standing


def _gone(state: NetworkState, standing: NetworkStatement) -> bool:
    deadline = time.monotonic() + ENDING
    while state.is_owned() or any(map(is_running, standing.pids)):
        if time.monotonic() > deadline:
            return False
        time.sleep(POLL)
    return True


def _signal(pid: int, number: signal.Signals) -> None:
    with suppress(ProcessLookupError):
        os.kill(pid, number)
