"""Run by Windows' Python alone: hostile queries in children there meet the limits that they meet on Linux."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest

from anon.queries import process
from tests.attacks.test_evaluation_in_a_child import FOREVER, MEMORY, TRIMMED, asking, table

ROOT = Path(__file__).resolve().parents[2]
HOG = (
    "from anon.queries.windows import confine\nconfine(100 * 2**20)\nkept = []\n"
    "while len(kept) < 2000: kept.append(bytearray(2**20))\n"
)
ORPHAN = """
import os, subprocess, sys
class Noted(subprocess.Popen):
    def __init__(self, *words, **named):
        super().__init__(*words, **named)
        print(self.pid, flush=True)
subprocess.Popen = Noted
from pathlib import Path
from anon.queries import process
from anon.queries.lint import Bounds
from tests.attacks.test_evaluation_in_a_child import FOREVER, asking, table
request = asking(table(Path(sys.argv[1]) / "data.sqlite"), FOREVER)._replace(bounds=Bounds(steps=10**12))
channel = process._SERVER.begin(120.0)
channel.sendall(process._framed(process.queries(request)))
sys.stdin.readline()
os._exit(9)
"""


@pytest.mark.parametrize("query", [FOREVER, MEMORY, TRIMMED], ids=["steps", "memory", "trim"])
def test_a_hog_is_over_and_the_next_query_is_answered(tmp_path: Path, query: str) -> None:
    assert process.has_children()
    request = asking(table(tmp_path / "data.sqlite"), query, "select age from person")
    message = process.in_a_child(process.queries(request), 60.0)
    assert len(message) == request.size and process.parse_answers(request, message) == (None, 60.0)


def test_a_child_that_waits_for_ever_is_ended_at_its_deadline() -> None:
    with process._SERVER.begin(2.0) as channel:
        channel.settimeout(30.0)
        assert _ended(channel)


def _ended(channel: socket.socket) -> bool:
    try:
        return channel.recv(1) == b""
    except ConnectionResetError:
        return True


def test_a_child_that_takes_more_memory_than_it_may_is_ended() -> None:
    done = subprocess.run([sys.executable, "-c", HOG], cwd=ROOT, check=False, timeout=60, capture_output=True)
    assert done.returncode == 1


def test_a_child_ends_with_its_parent(tmp_path: Path) -> None:
    """In the midst of a query, where it looks at no socket."""
    import ctypes

    kernel = ctypes.WinDLL("kernel32")  # type: ignore[attr-defined]
    kernel.OpenProcess.restype = ctypes.c_void_p
    kernel.WaitForSingleObject.argtypes = (ctypes.c_void_p, ctypes.c_uint32)
    pipe = subprocess.PIPE
    command = [sys.executable, "-c", ORPHAN, str(tmp_path)]
    with subprocess.Popen(command, cwd=ROOT, stdin=pipe, stdout=pipe, stderr=pipe, text=True) as parent:
        assert parent.stdout is not None and parent.stdin is not None
        child = kernel.OpenProcess(0x100000, False, int(parent.stdout.readline()))
        assert child and kernel.WaitForSingleObject(child, 3000) == 0x102, "it lives"
        parent.stdin.write("\n")
        parent.stdin.flush()
        assert kernel.WaitForSingleObject(child, 30_000) == 0, "it ends long before its 120 seconds"


def test_a_child_inherits_no_file_that_is_open(tmp_path: Path) -> None:
    descriptor = os.open(tmp_path / "key", os.O_RDWR | os.O_CREAT)
    os.set_inheritable(descriptor, True)
    with process._SERVER.begin(30.0):
        time.sleep(0.1)
        os.close(descriptor)
        (tmp_path / "key").unlink()  # which Windows refuses while any process has it open
