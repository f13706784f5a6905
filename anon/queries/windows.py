"""Children on Windows: each is a program of its own, in a job of its own, with no handle but its input and one socket.

The parent makes the job before the child hears anything: it holds one process, takes a bounded amount of memory and
processor time, and ends with its last handle, so with the parent at the latest. A child finds a message of a fixed size
and one end of a pair of sockets on its input. Before it runs what somebody else wrote it makes a second job around
itself, and a thread that looks at its memory: not every system that calls itself Windows keeps a job's limits (Wine).

Not given up, as on POSIX it is: files. The form of a query forbids them (`anon.queries.lint`).
"""

from __future__ import annotations

import sys

if sys.platform == "win32":
    import ctypes
    import os
    import socket
    import struct
    import subprocess
    import threading
    import time
    from contextlib import suppress
    from ctypes import wintypes
    from functools import cache
    from typing import BinaryIO

    LENGTH = struct.Struct("<I")
    PROCESS_TIME, ACTIVE_PROCESSES, PROCESS_MEMORY, NO_REPORT, ENDS_WITH_ITS_HANDLE = 0x2, 0x8, 0x100, 0x400, 0x2000
    EXTENDED_LIMITS = 9
    BELOW_NORMAL, NO_WINDOW = 0x4000, 0x8000000
    TICKS = 10**7
    """Of Windows' processor time, in a second."""
    GRACE = 2
    LOOK = 0.02

    class _Limits(ctypes.Structure):
        _fields_ = (
            ("process_time", ctypes.c_int64), ("job_time", ctypes.c_int64), ("flags", wintypes.DWORD),
            ("least", ctypes.c_size_t), ("most", ctypes.c_size_t), ("processes", wintypes.DWORD),
            ("affinity", ctypes.c_size_t), ("priority", wintypes.DWORD), ("scheduling", wintypes.DWORD),
            ("input_and_output", ctypes.c_uint64 * 6), ("process_memory", ctypes.c_size_t),
            ("job_memory", ctypes.c_size_t), ("peak", ctypes.c_size_t), ("job_peak", ctypes.c_size_t),
        )  # fmt: skip

    class _Memory(ctypes.Structure):
        _fields_ = (
            ("size", wintypes.DWORD), ("faults", wintypes.DWORD), *((name, ctypes.c_size_t) for name in "abcdef"),
            ("private", ctypes.c_size_t), ("peak", ctypes.c_size_t),
        )  # fmt: skip

    @cache
    def _kernel() -> ctypes.WinDLL:
        found = ctypes.WinDLL("kernel32", use_last_error=True)
        found.CreateJobObjectW.restype = found.GetCurrentProcess.restype = wintypes.HANDLE
        found.CreateJobObjectW.argtypes = (ctypes.c_void_p, wintypes.LPCWSTR)
        found.SetInformationJobObject.argtypes = (wintypes.HANDLE, ctypes.c_int, ctypes.c_void_p, wintypes.DWORD)
        found.AssignProcessToJobObject.argtypes = (wintypes.HANDLE, wintypes.HANDLE)
        found.CloseHandle.argtypes = (wintypes.HANDLE,)
        found.K32GetProcessMemoryInfo.argtypes = (wintypes.HANDLE, ctypes.c_void_p, wintypes.DWORD)
        return found

    def job(process: int, memory: int, seconds: float | None = None) -> int:
        """The handle of a new job around a process: of so many bytes, seconds of processor time, and one process.
        Raises `OSError`."""
        flags = ACTIVE_PROCESSES | PROCESS_MEMORY | NO_REPORT | ENDS_WITH_ITS_HANDLE
        limits = _Limits(flags=flags, processes=1, process_memory=memory)
        if seconds is not None:
            limits.flags, limits.process_time = flags | PROCESS_TIME, int((seconds + GRACE) * TICKS)
        handle = _done(_kernel().CreateJobObjectW(None, None))
        _done(_kernel().SetInformationJobObject(handle, EXTENDED_LIMITS, ctypes.byref(limits), ctypes.sizeof(limits)))
        _done(_kernel().AssignProcessToJobObject(handle, process))
        return handle

    def _done(result: int) -> int:
        if not result:
            raise ctypes.WinError(ctypes.get_last_error())
        return result

    def spawn(command: list[str], first: bytes, channel: socket.socket, seconds: float, memory: int) -> None:
        """Start a child that finds `first` and this end of a pair on its input, and ends after so many seconds.

        Raises `OSError`; then there is no child.
        """
        process = subprocess.Popen(  # noqa: S603, our own program
            command, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
            # Windows loads its own libraries by this variable (CPython's documentation of subprocess).
            env={"SYSTEMROOT": os.environ["SYSTEMROOT"]}, cwd=os.environ["SYSTEMROOT"], close_fds=True,
            creationflags=NO_WINDOW | BELOW_NORMAL,
        )
        try:
            handle = job(int(process._handle), memory, seconds)  # type: ignore[attr-defined]
            assert process.stdin is not None
            shared = channel.share(process.pid)
            with process.stdin as told:
                told.write(first + LENGTH.pack(len(shared)) + shared)
        except BaseException:
            process.kill()
            process.wait()
            raise
        threading.Thread(target=_ended, args=(process, handle, seconds), daemon=True).start()

    def _ended(process: subprocess.Popen[bytes], handle: int, seconds: float) -> None:
        with suppress(subprocess.TimeoutExpired):
            process.wait(seconds)
        _kernel().CloseHandle(handle)
        process.kill()
        process.wait()

    def handed(told: BinaryIO, size: int) -> tuple[bytes, socket.socket]:
        """In the child: the message of this size, and the socket. Raises `struct.error` where there is none."""
        first = told.read(size)
        (length,) = LENGTH.unpack(told.read(LENGTH.size))
        return first, socket.fromshare(told.read(length))

    def confine(memory: int) -> None:
        """In the child: at most so many bytes more than now, from now on, and no other process. Raises `OSError`."""
        most = private_bytes() + memory
        job(_kernel().GetCurrentProcess(), most)
        threading.Thread(target=_watch, args=(most,), daemon=True).start()

    def _watch(most: int) -> None:
        while private_bytes() <= most:
            time.sleep(LOOK)
        os._exit(1)

    def private_bytes() -> int:
        """Bytes of memory that are this process's alone."""
        counted = _Memory(size=ctypes.sizeof(_Memory))
        size, process = ctypes.sizeof(counted), _kernel().GetCurrentProcess()
        _done(_kernel().K32GetProcessMemoryInfo(process, ctypes.byref(counted), size))
        return int(counted.private)
