"""A row of figures for each hostile query: its time and memory, and the bound that ends it.

    python -m tests.windows.bombs           on this system
    python -m tests.windows.bombs wine      by Windows' Python, under Wine

Each is evaluated in a child as a peer does it, with 30 seconds. The figures are of that child: seconds of its processor
time, and the most memory that it ever had. Its own bounds have ended it when its message came; the system has when
none came.
"""

from __future__ import annotations

import asyncio
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from anon.queries import process
from tests.attacks.test_evaluation_in_a_child import FOREVER, MEMORY, TRIMMED, asking, children, table

SECONDS = 30.0
QUERIES = {"counts for ever": FOREVER, "keeps ever longer texts": MEMORY, "trims a long text for ever": TRIMMED}
HEAD = "| the query | processor, s | memory, MB | ended by |"


def windows_figures() -> Callable[[], tuple[float, int]]:
    """The processor time (s) and the most memory (bytes) of the last child, looked at until it ends."""
    import ctypes

    class Counted(ctypes.Structure):
        _fields_ = (("size", ctypes.c_uint32), ("faults", ctypes.c_uint32), ("peak", ctypes.c_size_t),
                    ("more", ctypes.c_size_t * 8))  # fmt: skip

    kernel = ctypes.WinDLL("kernel32", use_last_error=True)  # type: ignore[attr-defined]
    kept: list[Any] = []

    class Noted(subprocess.Popen):  # type: ignore[type-arg]
        def __init__(self, *words: Any, **named: Any) -> None:
            super().__init__(*words, **named)
            kept.append(self)

    subprocess.Popen = Noted  # type: ignore[misc]

    def figures() -> tuple[float, int]:
        child = kept.pop()  # its handle is closed with it
        handle, most = ctypes.c_void_p(int(child._handle)), 0
        times, counted = [ctypes.c_uint64() for _ in range(4)], Counted(size=ctypes.sizeof(Counted))
        while kernel.WaitForSingleObject(handle, 10) == 0x102:  # of a process that has ended Wine knows no memory
            kernel.K32GetProcessMemoryInfo(handle, ctypes.byref(counted), ctypes.sizeof(counted))
            most = max(most, counted.peak)
        kernel.GetProcessTimes(handle, *map(ctypes.byref, times))
        return (times[2].value + times[3].value) / 1e7, most

    return figures


def linux_figures() -> tuple[float, int]:
    """The same, of the child that runs now; looked at until it ends."""
    seconds, most = 0.0, 0
    while alive := children():
        try:
            status = Path(f"/proc/{alive[0]}/status").read_text()
            spent = Path(f"/proc/{alive[0]}/stat").read_text().rpartition(")")[2].split()
        except OSError:
            break
        if "VmHWM" in status:
            most = 1024 * int(status.partition("VmHWM:")[2].split()[0])
            seconds = (int(spent[11]) + int(spent[12])) / 100
        time.sleep(0.01)
    return seconds, most


def row(name: str, query: str, figures: Callable[[], tuple[float, int]], folder: Path) -> str:
    """A row of the table."""
    work = process.queries(asking(table(folder / f"{name}.sqlite"), query))
    with process._SERVER.begin(SECONDS) as channel:
        channel.settimeout(2 * SECONDS)
        channel.sendall(process._framed(work))
        while sys.platform != "win32" and not children():
            time.sleep(0.01)
        seconds, most = figures()
        message = process._message(channel, work.size, time.monotonic() + 1)
    ended = "its own bounds" if len(message) == work.size else "the system"
    return f"| {name} | {seconds:.1f} | {most / 1e6:.0f} | {ended} |"


def main() -> None:
    """Print the table."""
    figures = windows_figures() if sys.platform == "win32" else linux_figures
    print(HEAD)
    with TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        for name, query in QUERIES.items():
            print(row(name, query, figures, Path(folder)), flush=True)


async def _there() -> str:
    from tests.windows.wine import WINDOWS, booted

    with booted():
        done = await WINDOWS.done("-m", "tests.windows.bombs")
    assert done.code == 0, done.err
    return done.out


if __name__ == "__main__":
    if sys.argv[1:] == ["wine"]:
        print(asyncio.run(_there()))
    else:
        main()
